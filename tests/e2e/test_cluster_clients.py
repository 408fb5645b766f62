#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real cluster and its clients: many at once, killed ones, impatient ones, and hostile ones.

Method: as in test_cluster.py. What a wrong request is answered is tried out with a job whose
requests were written down by the proxy, and then sent again with mistakes. Prints TAP; words on the
command line choose tests by parts of their names. MILLRACE is the binary.
"""
import json
import re
import signal
import socket
import sys
import time

from cluster import Suite, poll, run
from timing import scaled, setting
from world import (CHUNKS, World, crash_with_many_rows, expect_rows, many_rows, results_asked,
                   submit_many_rows)

OWNER = "X-Millrace-Owner"
CHECKSUM = "X-Millrace-Checksum"
OTHER_KEY = "f" * 32

suite = Suite()
test = suite.test


# --- Clients that come, go and come again. ---

@test("a client that was killed goes on with --job and does not send again what was taken")
def _(world):
    sizes = []
    with world.proxied() as (proxy, url):
        client = world.submit("movies", gateway=url)

        def journal_size():
            return (world.cluster.folder / "state" / "jobs" / client.job).stat().st_size

        def kill():
            poll("the journal is written", lambda: journal_size() > sizes[0] + 1000)
            client.kill()

        proxy.at("PUT", r"/jobs/[^/]+$", 1, lambda: sizes.append(journal_size()))
        proxy.at("PUT", CHUNKS, 80, kill)
        poll("the client is dead", lambda: client.process.poll() is not None)
        taken = proxy.taken(CHUNKS)
        again = world.submit("movies", "--job", client.job, gateway=url)
        world.check(again)
        known = int(re.search(r"resumed after (\d+) chunks", again.errors).group(1))
        total = len(set(proxy.taken(CHUNKS)))
        later = len(proxy.taken(CHUNKS)) - len(taken)
        in_flight = 8  # When it was killed: taken, and nobody heard of it.
        assert known > 40, f"only {known} chunks were known after {len(taken)} had been taken"
        assert later <= total - known + in_flight, f"{later} sent, not {total} - {known}"
    world.cluster.expect_clean()


@test("Ctrl-C cancels the job, and everything is gone")
def _(world):
    with world.proxied() as (proxy, url):
        client = world.submit("movies", gateway=url)
        proxy.at("PUT", CHUNKS, 40, lambda: client.signal(signal.SIGINT))
        client.wait(code=1)
        assert "cancel" in client.errors or "interrupt" in client.errors, client.errors
    world.cluster.expect_clean()


@test("a job that is cancelled by another command ends its client with an error that says so")
def _(world):
    with world.proxied() as (proxy, url):
        client = world.submit("movies", gateway=url)
        proxy.at("PUT", CHUNKS, 40, lambda: run("cancel", client.job, "-g", world.cluster.url()))
        client.wait(code=1)
        assert "cancelled" in client.errors, client.errors
    world.cluster.expect_clean()


@test("twenty clients share two slots, and all are answered")
def _(world):
    cluster = world.cluster
    tiny = world.data("tiny")
    world.restart_all(MILLRACE_CLUSTER_MAX_JOBS="2")
    try:
        clients = [world.submit("movies", data=tiny) for _ in range(20)]
        for client in clients:
            world.check(client, "movies", tiny, seconds=90)
    finally:
        world.restart_all()
    cluster.expect_clean()


@test("a large result comes whole although every request goes to another gateway")
def _(world):
    rows, data = world.folder / "rows", world.data("movies")
    with world.proxied() as (proxy, url):
        client = world.submit(rows, data=data, gateway=url)
        world.check(client, rows, data)
        pages = [path for method, path, _, _ in proxy.requests if "/results/large" in path]
        assert len(pages) > 1, f"one page is not large: {pages}"
    world.cluster.expect_clean()


@test("gateways may be killed while a large result goes into a pipe that is read slowly")
def _(world):
    cluster = world.cluster
    expected = many_rows(world)
    client = submit_many_rows(world, gateway=cluster.url("g1", "g2"), pipe=True)
    got = client.read(1000)
    asked = {name: results_asked(cluster, name) for name in ("g1", "g2")}
    first, second = sorted(asked, key=asked.get, reverse=True)
    assert asked[first] > 0, asked
    cluster.kill(first)  # And it stays away until the client has gone on without it.
    got += client.read(len(expected) // 2)
    poll("the other one was asked", lambda: results_asked(cluster, second) > asked[second])
    cluster.start(first)
    cluster.wait_ready()
    cluster.kill(second)
    got += client.read(len(expected))
    client.wait()
    cluster.start(second)
    expect_rows(got, expected)
    cluster.expect_clean()


@test("a gateway may die in the middle of a page, and no row of it is lost or doubled")
def _(world):
    cluster = world.cluster
    expected = many_rows(world)
    died = []

    def die(name):
        died.append(name)
        cluster.restart(name)

    with world.proxied() as (proxy, url):
        proxy.cut("/results/large", 2, 0.5, die)
        proxy.cut("/results/large", 4, 0.9, die)
        client = submit_many_rows(world, gateway=url)
        client.wait()
        expect_rows(client.out_path.read_bytes(), expected)
    assert len(died) == 2, died
    cluster.expect_clean()


@test("the worker that has a large result may die before and after it gives a page")
def _(world):
    for point in ("before-result:2", "after-result:3"):
        crash_with_many_rows(world, ("w1", "w2", "w3"), point)


@test("a cluster that cannot be reached is exit code 3, and a job it has can be gone on with")
def _(world):
    client = world.submit("movies", "--retry-for", "1", gateway="http://127.0.0.1:9")
    client.wait(code=3)
    gateways = ("g1", "g2")
    with world.proxied() as (proxy, url):
        client = world.submit("movies", "--retry-for", "1", gateway=url)
        proxy.at("PUT", CHUNKS, 40, lambda: [world.cluster.kill(name) for name in gateways])
        client.wait(code=3)
    assert f"--job {client.job}" in client.errors, client.errors
    for name in gateways:
        world.cluster.start(name)
    world.cluster.wait_ready()
    world.check(world.submit("movies", "--job", client.job))
    world.cluster.expect_clean()


# --- Requests that are wrong. ---

def raw(port, data, seconds=20):
    """Sends bytes and gives the status code of what comes back; 0: the connection was closed."""
    with socket.create_connection(("127.0.0.1", port), timeout=scaled(seconds)) as link:
        try:
            link.sendall(data)
        except OSError:
            pass  # It may have had enough before the end.
        reply = b""
        try:
            while b"\r\n" not in reply:
                more = link.recv(4096)
                if not more:
                    break
                reply += more
        except ConnectionResetError:
            pass
    return int(reply.split()[1]) if reply.startswith(b"HTTP/1.1 ") else 0


class Recorded:
    """The requests of a job that a real client made, to be made again under another id."""

    def __init__(self, world, job):
        with world.proxied() as (proxy, url):
            world.check(world.submit("movies", data=world.data("tiny"), gateway=url), "movies",
                        world.data("tiny"))
            requests = proxy.requests
        self.cluster = world.cluster
        self.job = job
        self.put = next(item for item in requests if re.search(r"/jobs/[^/]+$", item[1]))
        self.chunk = next(item for item in requests if CHUNKS in item[1])
        self.key = next(value for name, value in self.put[2].items() if name.lower() ==
                        OWNER.lower())
        self.checksum = next(value for name, value in self.chunk[2].items()
                             if name.lower() == CHECKSUM.lower())

    def call(self, method, path, body=None, key=True, **headers):
        """Of this job, by its owner unless another key is given; None: without a key."""
        if key is not None:
            headers[OWNER] = self.key if key is True else key
        return self.cluster.call(method, f"/v1/jobs/{self.job}{path}", "g1", body,
                                 {name.replace("_", "-"): value for name, value in headers.items()})

    def put_chunk(self, scan=0, number=0, checksum=None, body=None, key=True):
        return self.call("PUT", f"/scans/{scan}/chunks/{number}", body or self.chunk[3], key,
                         X_Millrace_Checksum=checksum or self.checksum)[0]


def expect(what, found, *codes):
    assert found in codes, f"{what}: {found}, not {codes}"


@test("what is no request is refused by its status code")
def _(world):
    port = world.cluster.ports["g1"]
    call = world.cluster.call
    expect("another method", call("POST", "/v1/jobs/x", body=b"x")[0], 405)
    expect("another method", call("DELETE", "/healthz")[0], 405)
    expect("no path", call("GET", "/")[0], 404)
    expect("no such path", call("GET", "/v1/nothing")[0], 404)
    expect("not an id", call("GET", "/v1/jobs/a%20b")[0], 400)
    expect("no such job", call("GET", "/v1/jobs/nothing")[0], 404)
    expect("no such parameter", call("GET", "/v1/jobs/nothing?until=3")[0], 400)
    expect("a wait too long", call("GET", "/v1/jobs/nothing?wait=3600")[0], 400)
    head = b"PUT /v1/jobs/x HTTP/1.1\r\nHost: x\r\nContent-Length: "
    expect("a body too long", raw(port, head + b"999999999\r\n\r\n"), 413)
    expect("headers too long", raw(port, b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " +
                                   b"y" * 200000 + b"\r\n\r\n"), 431)
    expect("a line too long", raw(port, b"GET /" + b"y" * 200000 + b" HTTP/1.1\r\nHost: x\r\n\r\n"),
           414, 431)
    expect("no HTTP", raw(port, b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n"), 400, 0)
    expect("a length that is none", raw(port, head + b"-5\r\n\r\n"), 400)
    expect("still there", call("GET", "/healthz")[0], 200)


@test("what does not fit a job is refused, and a job that runs is not disturbed")
def _(world):
    running = world.submit("movies")
    job = Recorded(world, "abuse")
    call = job.call
    asked = json.loads(job.put[3])
    other = json.dumps(dict(asked, chunk_bytes=asked["chunk_bytes"] * 2)).encode()

    expect("garbage", call("PUT", "", b"{\"queries\":")[0], 400)
    expect("no JSON object", call("PUT", "", b"[]")[0], 400)
    expect("SQL that is none", call("PUT", "", json.dumps(
        dict(asked, queries=[{"name": "q", "sql": "SELEKT"}])).encode())[0], 400)
    expect("another build", call("PUT", "", json.dumps(dict(asked, build="x")).encode())[0], 400)
    expect("no key", call("PUT", "", job.put[3], key=None)[0], 400, 403)
    expect("a key that is none", call("PUT", "", job.put[3], key="secret")[0], 400)
    expect("a job", call("PUT", "", job.put[3])[0], 201)
    expect("the same job", call("PUT", "", job.put[3])[0], 200)
    expect("another job of that id", call("PUT", "", other)[0], 409)
    expect("another's job", call("PUT", "", job.put[3], key=OTHER_KEY)[0], 403, 409)

    expect("a chunk", job.put_chunk(), 204)
    expect("the same chunk", job.put_chunk(), 204)
    expect("a wrong checksum", job.put_chunk(checksum="0" * 16), 400)
    expect("a checksum that is none", job.put_chunk(checksum="zebra"), 400)
    expect("a number too large", job.put_chunk(number=10 ** 18), 400)
    expect("a number beyond the window", job.put_chunk(number=10 ** 6), 400, 429)
    expect("no number", job.put_chunk(number="x"), 400)
    expect("no such scan", job.put_chunk(scan=99), 404)
    expect("no key", job.put_chunk(key=None), 403)
    expect("a wrong key", job.put_chunk(key=OTHER_KEY), 403)

    end = json.dumps({"count": 1, "sum": "0123456789abcdef"}).encode()
    other_end = json.dumps({"count": 0, "sum": "0123456789abcdef"}).encode()
    far_end = json.dumps({"count": 10 ** 6, "sum": "0123456789abcdef"}).encode()
    expect("an end beyond the files", call("PUT", "/scans/1/end", far_end)[0], 400)
    expect("an end that is none", call("PUT", "/scans/1/end", b"end")[0], 400)
    expect("an end", call("PUT", "/scans/1/end", end)[0], 204)
    expect("the same end", call("PUT", "/scans/1/end", end)[0], 204)
    expect("another end", call("PUT", "/scans/1/end", other_end)[0], 409)

    expect("no such query", call("GET", "/results/q99?from=0")[0], 404)
    expect("a result that is not there", call("GET", "/results/q1?from=0")[0], 409)
    expect("deleted by another", call("DELETE", "", key=OTHER_KEY)[0], 403)
    expect("deleted", call("DELETE", "")[0], 204)
    expect("a chunk of no job", job.put_chunk(), 404)
    world.check(running)
    world.cluster.expect_clean()


@test("a chunk that is not what it says fails its job, and no other")
def _(world):
    running = world.submit("movies")
    job = Recorded(world, "liar")
    expect("a job", job.call("PUT", "", job.put[3])[0], 201)
    expect("a chunk", job.put_chunk(), 204)
    end = json.dumps({"count": 1, "sum": "0123456789abcdef"}).encode()
    expect("a wrong sum", job.call("PUT", "/scans/0/end", end)[0], 204)
    view = poll("the job fails", lambda: next(
        (view for view in [json.loads(job.call("GET", "?wait=1&sent=0:1")[1])]
         if view["state"] == "failed"), None))
    assert "what was applied is not what was sent" in view["text"], view
    expect("deleted", job.call("DELETE", "")[0], 204)
    world.check(running)
    world.cluster.expect_clean()


@test("a cluster with a token wants to hear it, and drops who is too slow")
def _(world):
    cluster = world.cluster
    try:
        world.restart_all(["g2"], MILLRACE_CLUSTER_TOKEN="opensesame",
                          MILLRACE_CLUSTER_HTTP_TIMEOUT=setting(1))
        poll("g2 answers", lambda: cluster.call("GET", "/healthz", "g2")[0] == 401)
        for token, code in ((None, 401), ("Bearer wrong", 401), ("opensesame", 401),
                            ("Bearer opensesame", 200)):
            headers = {"Authorization": token} if token else {}
            poll(f"with {token}: {code}", lambda headers=headers, code=code: cluster.call(
                "GET", "/v1/nodes", "g2", headers=headers)[0] == code)
        world.submit("movies", gateway=cluster.url("g2")).wait(code=2)
        world.check(world.submit("movies", gateway=cluster.url("g2"),
                                 env={"MILLRACE_CLUSTER_TOKEN": "opensesame"}))
        with socket.create_connection(("127.0.0.1", cluster.ports["g2"]),
                                      timeout=scaled(20)) as link:
            try:
                for byte in b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: " + b"y" * 150:
                    link.sendall(bytes([byte]))
                    time.sleep(scaled(0.05))  # A client that never gets on with it.
                raise AssertionError("nobody minds a client that sends twenty bytes a second")
            except OSError:
                pass  # Dropped long before its end.
    finally:
        world.restart_all(["g2"])
    cluster.expect_clean()


if __name__ == "__main__":
    sys.exit(suite.run(sys.argv[1:], World))
