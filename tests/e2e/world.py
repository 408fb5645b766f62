"""world.py - what the suites of the cluster share: one cluster, data, and the answers to expect.

Jobs are cut into some 130 small chunks and let through slowly enough that there is a middle of
them. The answer of a cluster must be that of one process, byte for byte, books included.
"""
import contextlib
import os
import pathlib
import shutil
import tempfile
import threading

from cluster import MILLRACE, RABBIT, Cluster, Proxy, run, without_history

CHUNK = ("--chunk-size", "64K")
SCALES = {"movies": 0.01, "coffee": 0.004, "memes": 0.01}
KEYS = {"sync_period": "100ms", "window": 16}

# Requests at which something may be made to happen.
CHUNKS = r"/chunks/"
RESULTS = r"/results/q"
BOOKS = r"/results/\.books"

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

    @contextlib.contextmanager
    def proxied(self):
        proxy = Proxy(list(self.cluster.ports.values()))
        try:
            yield proxy, f"http://127.0.0.1:{proxy.port}"
        finally:
            proxy.close()

    def disturbed(self, *moments, analysis="movies", data=None, seconds=60):
        """A job during which things happen: (method, pattern, count, action) as of Proxy.at. The
        answer must be right, and nothing may be left."""
        with self.proxied() as (proxy, url):
            reached = []
            for method, pattern, count, action in moments:
                def act(action=action):
                    reached.append(action)
                    action()
                proxy.at(method, pattern, count, act)
            client = self.submit(analysis, data=data, gateway=url)
            self.check(client, analysis, data, seconds=seconds)
            assert len(reached) == len(moments), f"{len(reached)} of {len(moments)} moments came"
        self.cluster.expect_clean()

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


def crash_at(world, plan, must_die=True):
    """A job during which nodes die of crash points, {node: words}, and are started again
    without."""
    cluster = world.cluster
    before = {node: cluster.nodes[node].deaths for node in plan}
    for node, words in plan.items():
        cluster.restart(node, words)
    cluster.wait_ready()
    with world.proxied() as (_, url):
        world.check(world.submit(gateway=url))
    for node, words in plan.items():
        died = cluster.nodes[node].deaths > before[node]
        assert died or not must_die, f"{node} did not die at {words}"
        if not died:
            cluster.restart(node)
    cluster.expect_clean()


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
