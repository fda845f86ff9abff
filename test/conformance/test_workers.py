# SPDX-License-Identifier: Apache-2.0
"""Several tasks: graphs of workers in TensorFlow servers on the loopback, and one graph for all of them.

Each worker has a server and a session; a run is one call on each of them at the same time. The servers of a test are its
own: what they know of groups and variables outlives a session.
"""

import concurrent.futures
import json
import os
import subprocess
import tempfile

import addresses
import compare
import harness
import models
import models_habits
import numpy as np
import pytest
import test_batches
import tensorflow.compat.v2 as tf
from harness import Options
from models import BATCH, STEPS, Spec, tf1
from models_batches import SOURCES

TIMEOUT_MS = 20000
LEADER = "/job:worker/replica:0/task:0"


def cluster(workers):
    return {"worker": addresses.free(workers)}


def start(jobs, leader):
    config = tf1.ConfigProto(inter_op_parallelism_threads=2, intra_op_parallelism_threads=1)
    if leader:
        config.experimental.collective_group_leader = LEADER
    return [
        tf1.train.Server(jobs, job_name="worker", task_index=i, config=config) for i in range(len(jobs["worker"]))
    ]


def assert_certified(files, path):
    ran = subprocess.run(
        [harness.graft_opt(), "--certify", *files, f"--against={path}"], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stderr


def rewrite(path, workers, *extra):
    """The graph of each worker; what was said is the same for all of them."""
    out, said = [], []
    for i in range(workers):
        out.append(os.path.join(tempfile.mkdtemp(dir=harness.workdir()), "worker.meta"))
        flags = ["--strategy=ipu-multi-worker", f"--workers={workers}", f"--worker={i}", "--device-type=CPU", *extra]
        said.append(harness.run_graft([path, "-o", out[-1], *flags]).stderr.replace(out[-1], ""))
    assert len(set(said)) == 1, said
    if not said[0] and "--batch=per-replica" not in extra:
        assert_certified(out, path)
    return out, said[0]


class Workers:
    """The graphs of all workers, each in a session of its own server."""

    def __init__(self, paths):
        self.servers = start(cluster(len(paths)), leader=True)
        self.pool = concurrent.futures.ThreadPoolExecutor(len(paths))
        self.graphs, self.savers, self.sessions, self.variables = [], [], [], []
        for i, (path, server) in enumerate(zip(paths, self.servers)):
            with tf.Graph().as_default() as graph:
                self.savers.append(tf1.train.import_meta_graph(path))
                self.variables.append({v.op.name: harness.read_name(v) for v in tf1.global_variables()})
            config = tf1.ConfigProto(device_filters=[f"/job:worker/task:{i}"])
            self.graphs.append(graph)
            self.sessions.append(tf1.Session(server.target, graph=graph, config=config))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for session in self.sessions:
            session.close()
        self.pool.shutdown()

    def run(self, fetches, feeds=None):
        """The same on all workers; feeds(i) is what worker i is fed."""
        options = tf1.RunOptions(timeout_in_ms=TIMEOUT_MS)

        def one(i):
            what = fetches(i) if callable(fetches) else fetches
            return self.sessions[i].run(what, feeds(i) if feeds else None, options=options)

        return list(self.pool.map(one, range(len(self.sessions))))

    def values(self):
        return self.run(lambda i: self.variables[i])

    def rows(self, batch):
        """Feeds of each worker: its rows of the global batch."""
        share = len(batch[0]) // len(self.sessions)
        return lambda i: {f"{n}:0": v[i * share : (i + 1) * share] for n, v in zip("xy", batch)}

    def check(self, want, what):
        for i, values in enumerate(self.values()):
            harness.assert_all_close(values, want, f"{what}, worker {i}")


CASES = [
    (Spec("linear", "ref"), 3),
    (Spec("linear", "resource", BATCH, "sum"), 2),
    (Spec("mlp_adam", "resource"), 2),
    (Spec("mlp_adam", "ref", BATCH), 3),
    (Spec("mlp_clip", "resource"), 2),
    (Spec("embedding", "resource"), 2),
    (Spec("embedding", "ref", BATCH), 3),
    (Spec("mlp_adam", "resource"), 2, "--bucket-bytes=0"),
]


def collectives(path):
    """The ops of a file that reduce."""
    return [node.name for node in harness.read_meta(path).graph_def.node if node.op == "CollectiveReduce"]


def test_gradients_travel_together():
    """They are one collective beside those of the loss's two names; without buckets each has its own."""
    path = harness.export(Spec("mlp_adam", "resource"))
    packed, single = ([collectives(file) for file in rewrite(path, 2, *more)[0]] for more in ([], ["--bucket-bytes=0"]))
    assert [len(found) for found in packed] == [3, 3], packed
    assert all(len(found) == 6 for found in single), single


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_steps(case):
    """Initial values, losses and variables of three steps are those of the single device on the global batch."""
    spec, workers, *flags = case
    want = harness.reference(spec)
    paths, said = rewrite(harness.export(spec), workers, *flags)
    assert said == ""
    with Workers(paths) as all_of_them:
        all_of_them.run("init")
        all_of_them.check(want.variables[0], "after init")
        for i, batch in enumerate(models.batches(spec.model, spec.dtype), start=1):
            for loss, _ in all_of_them.run(["loss:0", "train_op"], all_of_them.rows(batch)):
                harness.assert_close(loss, want.losses[i - 1], f"loss of step {i}")
            all_of_them.check(want.variables[i], f"after step {i}")


HABITS = [("accumulated_cond", 2), ("averaged", 3), ("metrics", 2), ("tied_embedding", 3), ("sparse_adam", 2)]


@pytest.mark.parametrize("name,workers", HABITS)
def test_more_steps(name, workers):
    """Conditionals, moving averages, metrics, sparse gradients."""
    model = models_habits.HABITS[name]
    data = models_habits.batches(model.data, len(model.steps))
    path = compare.export(Spec(name), model.build)
    want = compare.run(path, data, model.steps, model.fetches, model.after)
    paths, said = rewrite(path, workers, *model.flags)
    assert said == ""
    with Workers(paths) as all_of_them:
        all_of_them.run("init")
        for i, (batch, step) in enumerate(zip(data, model.steps), start=1):
            feeds = all_of_them.rows(batch)
            got = all_of_them.run([[*model.fetches], step], feeds)
            later = all_of_them.run([*model.after], feeds)
            for (fetched, _), after in zip(got, later):
                for ours, theirs in zip((*fetched, *after), want[i][0] + want[i][2]):
                    harness.assert_close(ours, theirs, f"fetch of step {i}")
            all_of_them.check(want[i][1], f"after step {i}")


def queues(workers, spec, data, steps, *flags):
    """The steps of workers whose queues hold data(i), and the messages."""
    source = SOURCES[spec.model]
    paths, said = rewrite(compare.export(spec, source.build), workers, *flags)
    with Workers(paths) as all_of_them:
        all_of_them.run("init")
        all_of_them.run("fill", lambda i: {f"{name}:0": value for name, value in data(i).items()})
        for _ in range(steps):
            all_of_them.run("train_op")
        return all_of_them.values(), said


@pytest.mark.parametrize("batch", [None, BATCH])
def test_queue(batch):
    """One batch is worker 0's, which sends it when its shape is known; a warning says so when it is not."""
    spec, source = Spec("fifo_queue", batch=batch), SOURCES["fifo_queue"]
    rows = source.filled(np.random.default_rng(11))
    with test_batches.Fed(source, compare.export(spec, source.build)) as session:
        want = session.advance(2)[-1][1]
    other = {name: np.zeros_like(value) for name, value in rows.items()}
    values, said = queues(2, spec, lambda i: other if i and batch else rows, 2)
    assert ("node 'batch': each worker has its own value" in said) == (batch is None), said
    for got in values:
        harness.assert_all_close(got, want, "after two steps")


def test_own_batches():
    """With --batch=per-replica each worker has a queue: the step is that on the batches of all of them."""
    spec, source = Spec("fifo_fixed"), SOURCES["fifo_fixed"]
    rows = source.filled(np.random.default_rng(11))
    with test_batches.Fed(source, compare.export(spec, lambda b: source.build(b, 2 * BATCH))) as session:
        want = session.advance(1)[-1][1]
    own = [{name: value[i * BATCH : (i + 1) * BATCH] for name, value in rows.items()} for i in (0, 1)]
    values, said = queues(2, spec, lambda i: own[i], 1, "--batch=per-replica")
    assert said == "", said
    for got in values:
        harness.assert_all_close(got, want, "after a step")


def test_random_initial_values_and_checkpoints():
    """Worker 0's numbers are everybody's; it alone reads and writes files."""
    spec = Spec("mlp_random", "resource")
    path = harness.export(spec)
    paths, said = rewrite(path, 2)
    assert said == ""
    batches = models.batches(spec.model, spec.dtype)
    with Workers(paths) as both:
        both.run("init")
        first, second = both.values()
        assert any(np.any(value != 0) for value in first.values())
        for name in first:
            assert np.array_equal(first[name], second[name]), name
        # The checkpoint of worker 0 is that of the single device, which goes on from there.
        prefix = [os.path.join(tempfile.mkdtemp(dir=harness.workdir()), "model") for _ in range(2)]
        both.run("save/control_dependency:0", lambda i: {"save/Const:0": prefix[i]})
        assert os.listdir(os.path.dirname(prefix[0])) and not os.listdir(os.path.dirname(prefix[1]))
        with harness.Session(path) as single:
            single.restart(init=False)
            single.restore(prefix[0])
            harness.assert_all_close(single.values(), first, "restored")
            single.step(batches[0])
            want, saved = single.values(), single.save()
        both.run("train_op", both.rows(batches[0]))
        both.check(want, "after a step")
        # Only worker 0 needs the file.
        both.run("train_op", both.rows(batches[1]))
        both.run("save/restore_all", lambda i: {"save/Const:0": saved if i == 0 else "/nowhere"})
        both.check(want, "restored by all")


def effects(b):
    """The prints of worker 0, its samples for all workers, fetched rows and booleans."""
    _, _, rows = models_habits.regress(b)
    step = tf1.train.get_or_create_global_step()
    loss = b.loss(b.total(rows))
    printed = tf1.Print(loss, [loss], "loss is ")
    noise = tf.random.uniform([5], 1.0, 2.0, dtype=b.dtype)  # without a seed
    noisy = tf1.get_variable("noisy", initializer=np.zeros(5, b.dtype.as_numpy_dtype), trainable=False)
    mean = tf1.get_variable("mean", initializer=np.zeros([], b.dtype.as_numpy_dtype), trainable=False)
    tf.reduce_max(rows, name="largest")
    tf.reduce_any(rows > 1e6, name="huge")
    tf.identity(rows, name="own_rows")
    with tf.control_dependencies([printed, tf1.assign(noisy, noise), tf1.assign(mean, loss)]):
        b.train(tf1.train.MomentumOptimizer(0.1, 0.9), loss, global_step=step)


def test_effects(capfd):
    """The counter counts on every worker; what is printed is printed once, with the value of the global batch."""
    path = compare.export(Spec("effects", "resource"), effects)
    batch = models_habits.batches(models_habits.ROWS, 1)[0]
    fetches = ["largest:0", "huge:0", "own_rows:0", "loss:0"]
    want = compare.run(path, [batch], ["train_op"], fetches)[-1]
    capfd.readouterr()
    paths, said = rewrite(path, 2)
    assert said == ""
    with Workers(paths) as both:
        both.run("init")
        got = [values[: len(fetches)] for values in both.run([*fetches, "train_op"], both.rows(batch))]
        assert capfd.readouterr().err.count("loss is ") == 1
        first, second = both.values()
    for i in (0, 1, 3):
        harness.assert_close(got[0][i], want[0][i], fetches[i])
        harness.assert_close(got[1][i], want[0][i], fetches[i])
    harness.assert_close(np.concatenate([got[0][2], got[1][2]]), want[0][2], "rows of the workers")
    assert first["global_step"] == second["global_step"] == 1
    assert np.all(first.pop("noisy") == second.pop("noisy"))
    want[1].pop("noisy")
    harness.assert_all_close(first, want[1], "worker 0")
    harness.assert_all_close(second, want[1], "worker 1")


@pytest.mark.parametrize("workers", [2, 3])
def test_in_graph(workers):
    """One graph and one session, on the devices of two or three tasks; the servers need no configuration."""
    spec = Spec("mlp_adam", "resource")
    want, jobs = harness.reference(spec), cluster(workers)
    config = os.path.join(tempfile.mkdtemp(dir=harness.workdir()), "cluster.json")
    with open(config, "w", encoding="utf-8") as file:
        json.dump({"cluster": jobs, "task": {"type": "worker", "index": 0}}, file)
    out = os.path.join(os.path.dirname(config), "out.meta")
    flags = [f"--cluster={config}", "--replicas=1", "--device-type=CPU", "--verify-output"]
    assert harness.run_graft([harness.export(spec), "-o", out, *flags]).stderr == ""
    servers = start(jobs, leader=False)
    with tf.Graph().as_default() as graph:
        tf1.train.import_meta_graph(out)
        names = {v.op.name: harness.read_name(v) for v in tf1.global_variables()}
        devices = {op.device for op in graph.get_operations() if op.type == "MatMul"}
    assert devices == {f"/job:worker/task:{i}/device:CPU:0" for i in range(workers)}
    options = tf1.RunOptions(timeout_in_ms=TIMEOUT_MS)
    with tf1.Session(servers[0].target, graph=graph) as session:
        session.run("init", options=options)
        for i, (x, y) in enumerate(models.batches(spec.model, spec.dtype), start=1):
            loss, _ = session.run(["loss:0", "train_op"], {"x:0": x, "y:0": y}, options=options)
            harness.assert_close(loss, want.losses[i - 1], f"loss of step {i}")
        harness.assert_all_close(session.run(names, options=options), want.variables[STEPS], "at the end")
