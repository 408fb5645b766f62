# SPDX-License-Identifier: Apache-2.0
# The image of every millrace node and of its client, and that of the private broker.
#
#     docker build -t millrace .
#     docker build -t millrace-broker --target broker .
#     millrace compose -c cluster.ini --output boxes     # docs/howto/containers.md
#
# BASE is any Debian 12.
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS build
WORKDIR /src
# Packages are a layer of their own: it is made again only when ./dev changes.
COPY dev .
RUN ./dev packages
COPY . .
RUN ./dev install /usr/local

# What a node needs to run.
FROM ${BASE} AS running
RUN apt-get -qq update && \
    apt-get -qq install -y --no-install-recommends libcurl4 libinih1 libjansson4 \
        libmicrohttpd12 libpcre2-8-0 librabbitmq4 libsodium23 >/dev/null && \
    apt-get clean && rm -rf /var/lib/apt/lists/* && \
    useradd --system --uid 10001 --home-dir /var/lib/millrace --create-home millrace
WORKDIR /var/lib/millrace
ENTRYPOINT ["millrace"]
CMD ["--help"]
# For people who look at `docker ps`; monitors do not ask it. MILLRACE_CONFIG and MILLRACE_NODE say
# which node this is.
HEALTHCHECK --interval=5s --timeout=5s --start-period=10s CMD ["millrace", "health"]

# The private broker is a node too: `millrace broker` keeps a RabbitMQ.
FROM running AS broker
RUN apt-get -qq update && \
    apt-get -qq install -y --no-install-recommends rabbitmq-server >/dev/null && \
    apt-get clean && rm -rf /var/lib/apt/lists/*
COPY --from=build /usr/local /usr/local
USER millrace

FROM running AS node
COPY --from=build /usr/local /usr/local
USER millrace
