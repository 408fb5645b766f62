# SPDX-License-Identifier: Apache-2.0
"""world.py - what the suites of the cluster share: one cluster, data, and the answers to expect.

Jobs are cut into some 130 small chunks and let through slowly enough that there is a middle of
them. The answer of a cluster must be that of one process, byte for byte, audit included.
"""
import contextlib
import os
import pathlib
import re
import shutil
import tempfile
import threading

from cluster import MILLRACE, RABBIT, Cluster, Proxy, run, without_history

CHUNK = ("--chunk-size", "64K")
SCALES = {"movies": 0.01, "coffee": 0.004, "memes": 0.01}
KEYS = {"sync_period": "100ms", "window": 16}
BY_SHARDS = ("--broadcast-limit", "1")  # No table is small enough to be copied for a join.

# Requests at which something may be made to happen.
CHUNKS = r"/chunks/"
RESULTS = r"/results/q"
AUDIT = r"/results/\.audit"

ROWS_TABLES = """CREATE TABLE ratings (userId INT NOT NULL, movieId INT NOT NULL,
    rating DECIMAL(6,3) NOT NULL, timestamp INT NOT NULL) FROM 'ratings.csv';
"""


class World:
    def __init__(self, **options):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="millrace-cluster-"))
        self.options = options
        self.expected = {}
        self.cluster = None

    def __enter__(self):
        maker = threading.Thread(target=self.make_data)
        maker.start()  # While the broker starts.
        try:
            self.cluster = Cluster(self.folder / "cluster", **{**KEYS, **self.options})
            self.cluster.__enter__()
            return self
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        finally:
            maker.join()

    def __exit__(self, *_):
        self.cluster.close()
        if "KEEP" in os.environ:  # For whoever looks for a cause.
            print(f"# {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    def make_data(self):
        for analysis, scale in SCALES.items():
            run("gen", analysis, self.data(analysis), "--scale", scale)
        run("gen", "movies", self.data("tiny"), "--scale", 0.0005)
        rows = self.folder / "rows"
        rows.mkdir()
        (rows / "tables.sql").write_text(ROWS_TABLES)
        (rows / "large.sql").write_text(
            "SELECT userId, movieId, rating, timestamp FROM ratings WHERE rating >= 3")

    def data(self, analysis):
        return self.folder / analysis

    def expect(self, analysis, data=None, *words):
        """What one process answers, made once."""
        key = (str(analysis), str(data), words)
        if key not in self.expected:
            self.expected[key] = without_history(
                run("run", analysis, data or self.data(analysis), "--format", "json", *CHUNK,
                    *words))
        return self.expected[key]

    def submit(self, analysis="movies", *words, data=None, **more):
        return self.cluster.submit(analysis, data or self.data(analysis), *CHUNK, *words, **more)

    def check(self, client, analysis="movies", data=None, *words, seconds=60):
        answer, expected = client.answer(seconds), self.expect(analysis, data, *words)
        if answer != expected:
            raise AssertionError(f"{analysis}: {difference(answer, expected)}")

    def submit_all(self, *words, **more):
        """A client for each analysis, all at once."""
        return {analysis: self.submit(analysis, *words, **more) for analysis in SCALES}

    def check_all(self, clients, *words):
        """Also the rows of those whose options only change the way to them."""
        for analysis, client in clients.items():
            self.check(client, analysis, None, *words)
            usual, other = self.expect(analysis), self.expect(analysis, None, *words)
            assert usual["queries"] == other["queries"], difference(usual, other)
            assert not words or usual["audit"]["stages"] != other["audit"]["stages"], \
                f"{analysis}: {words} changes nothing"

    @contextlib.contextmanager
    def proxied(self):
        proxy = Proxy(self.cluster.ports)
        try:
            yield proxy, f"http://127.0.0.1:{proxy.port}"
        finally:
            proxy.close()

    @contextlib.contextmanager
    def happening(self, *moments):
        """Things happen to those who use the address: (method, pattern, count, action) as of
        Proxy.at. At the end all must have happened, and nothing may be left."""
        with self.proxied() as (proxy, url):
            reached = []
            for method, pattern, count, action in moments:
                def act(action=action):
                    reached.append(action)
                    action()
                proxy.at(method, pattern, count, act)
            yield url
            assert len(reached) == len(moments), f"{len(reached)} of {len(moments)} moments came"
        self.cluster.expect_clean()

    def disturbed(self, *moments, analysis="movies", data=None, seconds=60):
        """A job during which things happen. The answer must be right."""
        with self.happening(*moments) as url:
            client = self.submit(analysis, data=data, gateway=url)
            self.check(client, analysis, data, seconds=seconds)

    def disturbed_all(self, *moments, words=()):
        """The same of all analyses at once."""
        with self.happening(*moments) as url:
            self.check_all(self.submit_all(*words, gateway=url), *words)

    def restart_all(self, names=None, **env):
        """With this in the environment of nodes, also when they are started again."""
        cluster = self.cluster
        cluster.node_env = env
        for name in names or cluster.nodes:
            cluster.restart(name)
        if "MILLRACE_CLUSTER_TOKEN" not in env:
            cluster.wait_ready()

    def state(self):
        return self.cluster.state()

    def repair(self):
        """After a failure: a cluster that the next test can use."""
        cluster = self.cluster
        with cluster.lock:
            for client in cluster.clients:
                if client.process.poll() is None:
                    client.kill()
            if not cluster.broker.is_ready():
                cluster.broker.kill()
                cluster.broker.start()
                cluster.broker.wait()
            cluster.node_env = {}
            for node in cluster.nodes.values():
                node.kill()
                shutil.rmtree(node.folder, ignore_errors=True)
                node.start()
        shutil.rmtree(cluster.folder / "state", ignore_errors=True)
        cluster.wait_ready()


def crash_at(world, plan, must_die=True, words=()):
    """A job, with these options, during which nodes die of crash points, {node: point}, and are
    started again without."""
    cluster = world.cluster
    before = {node: cluster.nodes[node].deaths for node in plan}
    for node, point in plan.items():
        cluster.restart(node, point)
    cluster.wait_ready()
    with world.proxied() as (_, url):
        world.check(world.submit("movies", *words, gateway=url), "movies", None, *words)
    for node, point in plan.items():
        died = cluster.nodes[node].deaths > before[node]
        assert died or not must_die, f"{node} did not die at {point}"
        if not died:
            cluster.restart(node)
    cluster.expect_clean()


def large(world):
    """Data for a job of some 1400 chunks."""
    folder = world.data("large")
    if not folder.exists():
        run("gen", "movies", folder, "--scale", 0.1)
    return folder


class Meanwhile:
    """Does something again and again, until a client has ended."""

    def __init__(self, client, action):
        self.client, self.action = client, action
        self.failure = None
        self.count = 0
        self.thread = threading.Thread(target=self.run)

    def run(self):
        try:
            while self.client.process.poll() is None:
                self.action()
                self.count += 1
        except BaseException as error:
            self.failure = error

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.thread.join()
        if self.failure is not None:
            raise self.failure


# --- Results of many pages. ---

def many_rows(world):
    """What one process answers with half a million rows; makes the data."""
    data = world.data("many")
    if not data.exists():
        run("gen", "movies", data, "--scale", 0.03)
        world.many = run("run", world.folder / "rows", data, "--format", "csv").encode()
        assert world.many.count(b"\n") > 500000
    return world.many


def submit_many_rows(world, **more):
    many_rows(world)
    return world.cluster.submit(world.folder / "rows", world.data("many"), "--format", "csv",
                                **more)


def expect_rows(got, expected):
    if got != expected:
        rows, wanted = got.splitlines(), expected.splitlines()
        place = next((i for i, pair in enumerate(zip(rows, wanted)) if pair[0] != pair[1]),
                     min(len(rows), len(wanted)))
        raise AssertionError(f"{len(rows)} rows, not {len(wanted)}; row {place} is "
                             f"{rows[place:place + 1]}, not {wanted[place:place + 1]}")


def crash_with_many_rows(world, nodes, words):
    """At least one of the nodes must die; those that have only audit to give don't."""
    cluster = world.cluster
    before = cluster.deaths()
    for name in nodes:
        cluster.restart(name, words)
    client = submit_many_rows(world)
    client.wait()
    expect_rows(client.out_path.read_bytes(), many_rows(world))
    assert cluster.deaths() > before, f"nobody died at {words}"
    for name in nodes:
        cluster.restart(name)
    cluster.expect_clean()


def results_asked(cluster, name):
    """Pages that a gateway was asked for since it was started."""
    text = cluster.call("GET", "/metrics", name)[1].decode()
    found = re.search(r'requests_total\{kind="get_result"\} (\d+)', text)
    return int(found.group(1)) if found else 0


# --- For people. ---

def difference(answer, expected, path=""):
    """The first place where two answers differ, for people."""
    if isinstance(answer, dict) and isinstance(expected, dict):
        for key in {**answer, **expected}:
            if answer.get(key) != expected.get(key):
                return difference(answer.get(key), expected.get(key), f"{path}.{key}")
    if isinstance(answer, list) and isinstance(expected, list):
        for index, (one, other) in enumerate(zip(answer, expected)):
            if one != other:
                return difference(one, other, f"{path}[{index}]")
        return f"{path}: {len(answer)} entries, not {len(expected)}"
    return f"{path}: {answer!r}, not {expected!r}"


def missing():
    """Why no cluster can be tested here; None: it can."""
    if not pathlib.Path(RABBIT + "rabbitmq-server").exists():
        return "RabbitMQ is not installed"
    if not pathlib.Path(MILLRACE).exists():
        return f"there is no {MILLRACE}"
    return None
