# SPDX-License-Identifier: Apache-2.0
"""A graph for each worker, under every strategy, in TensorFlow servers on the loopback.

The chief initialises, saves and restores; a step is one call on each worker at the same time, which is fed its rows.
"""

import concurrent.futures
import functools
import itertools
import json
import os
import tempfile
import threading

import compare
import harness
import models
import models_habits
import numpy as np
import pytest
import tensorflow.compat.v2 as tf
from covering import covering
from models import BATCH, Spec, tf1
from models_batches import SOURCES
from strategies import SMALL, STRATEGIES, declared
from test_workers import cluster

TIMEOUT_MS = 30000


def jobs_of(workers, servers):
    addresses = cluster(workers + servers)["worker"]
    jobs = {"worker": addresses[:workers]}
    if servers:
        jobs["ps"] = addresses[workers:]
    return jobs


def rewrite(path, workers, servers, *extra, strategy="ps"):
    """The files of all workers, and what was said."""
    folder = tempfile.mkdtemp(dir=harness.workdir())
    file = os.path.join(folder, "cluster.json")
    with open(file, "w") as f:
        json.dump({"cluster": jobs_of(workers, servers)}, f)
    out = os.path.join(folder, "worker-%d.meta")
    said = harness.run_graft(
        [path, "-o", out, "--mode=between-graph", f"--cluster={file}", f"--strategy={strategy}", "--device-type=CPU", *extra]
    ).stderr
    return [out.replace("%d", str(i)) for i in range(workers)], said


@functools.lru_cache(maxsize=None)
def servers_of(workers, servers, local):
    """Servers never give their threads back, so tests of one form share them."""
    jobs = jobs_of(workers, servers)
    config = tf1.ConfigProto(device_count={"CPU": local}, inter_op_parallelism_threads=4, intra_op_parallelism_threads=1)
    return [
        tf1.train.Server(jobs, job_name=job, task_index=i, config=config)
        for job, addresses in jobs.items()
        for i in range(len(addresses))
    ]


class Cluster:
    """The graphs of all workers, each in a session of its own server, beside parameter servers."""

    def __init__(self, paths, servers, local=1, variables=None):
        self.servers = servers_of(len(paths), servers, local)
        self.pool = concurrent.futures.ThreadPoolExecutor(len(paths))
        self.graphs, self.sessions, self.savers, self.copies = [], [], [], {}
        for path, server in zip(paths, self.servers):
            with tf.Graph().as_default() as graph:
                self.savers.append(tf1.train.import_meta_graph(path))
                self.variables = variables or {v.op.name: harness.read_name(v) for v in tf1.global_variables()}
                self.add_copies(graph)
            self.graphs.append(graph)
            self.sessions.append(tf1.Session(server.target, graph=graph))

    def add_copies(self, graph):
        """Reads of every copy, by name: a variable, or a part of one, that the file has for a replica."""
        handles = [op for op in graph.get_operations() if op.type in ("VarHandleOp", "VariableV2")]
        self.copies = {}
        for op in handles:
            base, word, number = op.name.rpartition("/replica_")
            if not word or not number.isdigit():
                continue
            values = []
            for each in (graph.get_operation_by_name(base), op):
                with tf1.device(each.device):
                    is_handle = each.type == "VarHandleOp"
                    dtype = each.get_attr("dtype")
                    values.append(
                        tf.raw_ops.ReadVariableOp(resource=each.outputs[0], dtype=dtype)
                        if is_handle
                        else tf.identity(each.outputs[0])
                    )
            self.copies[op.name] = values

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for session in self.sessions:
            session.close()
        self.pool.shutdown()
        # The state of the servers: variables and queues.
        tf1.Session.reset(self.servers[0].target)

    def one(self, i, what, feeds=None):
        return self.sessions[i].run(what, feeds, options=tf1.RunOptions(timeout_in_ms=TIMEOUT_MS))

    def run(self, fetches, feeds=None):
        """The same on all workers; feeds(i) is what worker i is fed."""
        return list(self.pool.map(lambda i: self.one(i, fetches, feeds(i) if feeds else None), range(len(self.sessions))))

    def rows(self, batch):
        share = len(batch[0]) // len(self.sessions)
        return lambda i: {f"{n}:0": v[i * share : (i + 1) * share] for n, v in zip("xy", batch)}

    def check(self, want, what, copies=True):
        for i in range(len(self.sessions)):
            harness.assert_all_close(self.one(i, self.variables), want, f"{what}, worker {i}")
        for name, (first, copy) in self.one(-1, self.copies if copies else {}).items():
            harness.assert_close(copy, first, f"{what}: {name}")


CASES = [
    (Spec("linear", "ref"), 3, 1, 1),
    (Spec("linear", "resource", BATCH, "sum"), 2, 0, 1),
    (Spec("mlp_adam", "resource"), 2, 2, 1),
    (Spec("mlp_adam", "ref", BATCH), 2, 1, 2),
    (Spec("mlp_clip", "resource"), 3, 2, 1),
    (Spec("embedding", "resource"), 2, 1, 1),
    (Spec("embedding", "ref"), 3, 2, 1),
    (Spec("embedding", "ref", BATCH), 2, 1, 2),
    (Spec("cnn_nobn", "resource"), 2, 1, 1),
    (Spec("adamw_assign", "ref"), 2, 1, 1),
]


@pytest.mark.parametrize("spec,workers,servers,local", CASES, ids=str)
def test_steps(spec, workers, servers, local):
    """Losses and variables of three steps are those of the single device on the global batch."""
    want = harness.reference(spec)
    paths, said = rewrite(harness.export(spec), workers, servers, f"--replicas={local}", "--verify-output")
    assert said == ""
    with Cluster(paths, servers, local) as all_of_them:
        all_of_them.one(0, "init")
        all_of_them.check(want.variables[0], "after init")
        for i, batch in enumerate(models.batches(spec.model, spec.dtype), start=1):
            for loss, _ in all_of_them.run(["loss:0", "train_op"], all_of_them.rows(batch)):
                harness.assert_close(loss, want.losses[i - 1], f"loss of step {i}")
            all_of_them.check(want.variables[i], f"after step {i}")


STEPS_OF = ["mlp_adam", "mlp_clip", "embedding", "cnn_nobn", "adamw_assign"]
FACTORS = {
    "strategy": STRATEGIES,
    "model": STEPS_OF,
    "workers": [2, 3],
    "servers": [0, 1, 2],
    "local": [1, 2],
    "kind": ["resource", "ref"],
}


def strategy_cases(full):
    if full:
        return [dict(zip(FACTORS, values)) for values in itertools.product(*FACTORS.values())]
    return covering(FACTORS, 2)


def pytest_generate_tests(metafunc):
    if "of_strategies" in metafunc.fixturenames:
        chosen = strategy_cases(metafunc.config.getoption("--full"))
        metafunc.parametrize("of_strategies", chosen, ids=lambda f: "-".join(str(v) for v in f.values()))


def test_strategies(of_strategies):
    """Every strategy, with copies and parts of variables: the step of the single device, and all copies are equal."""
    f = of_strategies
    spec = Spec(f["model"], f["kind"])
    want, path = harness.reference(spec), harness.export(spec)
    flags = [f"--replicas={f['local']}", "--verify-output", *SMALL]
    paths, said = rewrite(path, f["workers"], f["servers"], *flags, strategy=f["strategy"])
    assert said == ""
    with Cluster(paths, f["servers"], f["local"], declared(path)[0]) as all_of_them:
        all_of_them.one(0, "init")
        all_of_them.check(want.variables[0], "after init")
        for i, batch in enumerate(models.batches(spec.model, spec.dtype), start=1):
            for loss, _ in all_of_them.run(["loss:0", "train_op"], all_of_them.rows(batch)):
                harness.assert_close(loss, want.losses[i - 1], f"loss of step {i}")
            all_of_them.check(want.variables[i], f"after step {i}")


# The samples of the replicas are not those of the single device; and this test gives workers rows of the first axis.
LEFT_OUT = ("dropout", "steps_first")
HABITS = [(name, 2 + (i % 2)) for i, name in enumerate(models_habits.HABITS) if name not in LEFT_OUT]


@pytest.mark.parametrize("name,workers", HABITS)
def test_more_steps(name, workers):
    """The idioms of training steps: each of them between graphs."""
    more_steps(models_habits.HABITS[name], Spec(name), workers, "ps")


@pytest.mark.parametrize("name,workers", HABITS)
def test_more_steps_with_copies(name, workers):
    """The same with a copy of each variable on each worker."""
    more_steps(models_habits.HABITS[name], Spec(name), workers, "all-reduce")


def more_steps(model, spec, workers, strategy, rows=()):
    """Each worker has its own rows of the tensors that `rows` names."""
    data = models_habits.batches(model.data, len(model.steps))
    path = compare.export(spec, model.build)
    want = compare.run(path, data, model.steps, model.fetches, model.after)
    fetches = [f"--fetch={f.split(':')[0]}" for f in (*model.fetches, *model.after)]
    paths, said = rewrite(path, workers, 1, *model.flags, *fetches, strategy=strategy)
    with Cluster(paths, 1) as all_of_them:
        all_of_them.one(0, "init")
        for i, (batch, step) in enumerate(zip(data, model.steps), start=1):
            feeds = all_of_them.rows(batch)
            got = all_of_them.run([[*model.fetches], step], feeds)
            later = all_of_them.run([*model.after], feeds)
            for k, ((fetched, _), after) in enumerate(zip(got, later)):
                for name, ours, theirs in zip((*model.fetches, *model.after), (*fetched, *after), want[i][0] + want[i][2]):
                    own = np.split(theirs, workers)[k] if name in rows else theirs
                    harness.assert_close(ours, own, f"{name} of step {i}")
            # Each worker has its part of a metric.
            all_of_them.check(want[i][1], f"after step {i}", copies=spec.model != "metrics")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_checkpoints(strategy):
    """The chief saves and restores for all; the files are those of the single device."""
    spec = Spec("mlp_random", "resource")
    path = harness.export(spec)
    paths, _ = rewrite(path, 2, 2, *SMALL, strategy=strategy)
    batches = models.batches(spec.model, spec.dtype)
    with Cluster(paths, 2, variables=declared(path)[0]) as both, harness.Session(path) as single:
        both.one(0, "init")
        prefix = os.path.join(tempfile.mkdtemp(dir=harness.workdir()), "model")
        both.one(0, "save/control_dependency:0", {"save/Const:0": prefix})
        single.restart(init=False)
        single.restore(prefix)
        both.check(single.values(), "saved")
        single.step(batches[0])
        want, saved = single.values(), single.save()
        both.run("train_op", both.rows(batches[0]))
        both.check(want, "after a step")
        both.run("train_op", both.rows(batches[1]))
        both.one(0, "save/restore_all", {"save/Const:0": saved})
        both.check(want, "restored by the chief")


REFRESHED = [("all-reduce", ()), ("ps", ("--local-replication",)), ("parallax", ()), ("parallax", ("--local-replication",))]


@pytest.mark.parametrize("kind", ["resource", "ref"])
@pytest.mark.parametrize("strategy,flags", REFRESHED)
def test_refresh(strategy, flags, kind):
    """The chief alone brings the copies up to date, also those that are proxies of what is on a server. A proxy is a
    resource, of a variable that may be a reference."""
    spec = Spec("embedding", kind)
    path = harness.export(spec)
    paths, _ = rewrite(path, 2, 1, *flags, strategy=strategy)
    want, batches = harness.reference(spec), models.batches(spec.model, spec.dtype)
    with Cluster(paths, 1, variables=declared(path)[0]) as both:
        with both.graphs[0].as_default():
            own = [v.assign(tf.zeros_like(v)) for v in tf1.global_variables()]
            back = {v.op.name: tf1.placeholder(v.dtype.base_dtype) for v in tf1.global_variables()}
            restore = [v.assign(back[v.op.name]) for v in tf1.global_variables()]
        both.one(0, "init")
        both.run("train_op", both.rows(batches[0]))
        both.one(0, own)
        both.one(0, restore, {back[name]: value for name, value in want.variables[1].items()})
        both.one(0, "graft/refresh_copies")
        both.check(want.variables[1], "refreshed")
        both.run("train_op", both.rows(batches[1]))
        both.check(want.variables[2], "after a step")


def test_no_worker_runs_ahead():
    """A worker that is alone waits for the others, and nothing is written before all have given their part."""
    spec = Spec("linear", "resource")
    paths, _ = rewrite(harness.export(spec), 2, 1)
    batch = models.batches(spec.model, spec.dtype)[0]
    with Cluster(paths, 1) as both:
        both.one(0, "init")
        before = both.one(0, both.variables)
        first = both.pool.submit(both.one, 1, "train_op", both.rows(batch)(1))
        with pytest.raises(concurrent.futures.TimeoutError):
            first.result(timeout=1)
        harness.assert_all_close(both.one(0, both.variables), before, "before the chief's part")
        both.one(0, "train_op", both.rows(batch)(0))
        first.result(timeout=20)
        both.check(harness.reference(spec).variables[1], "after the step")


# The rows of each worker, in three steps of one session.
UNEVEN = {2: [(3, 5), (4, 4), (1, 6)], 3: [(1, 2, 5), (2, 2, 2), (7, 1, 1)]}


def uneven(batch, counts):
    """Returns the rows of all workers, and the feeds of each. The batch is repeated if it has fewer rows."""
    ends = np.cumsum((0, *counts))
    rows = [np.concatenate([part] * -(-ends[-1] // len(part)))[: ends[-1]] for part in batch]
    return rows, lambda i: {f"{n}:0": v[ends[i] : ends[i + 1]] for n, v in zip("xy", rows)}


def failures(both, fetches, feeds):
    """Returns how a run ends on each worker. It fails on one; the others wait for a message of the step."""
    calls = [both.pool.submit(rejoined, both, i, fetches, feeds(i)) for i in range(len(both.sessions))]
    errors = [call.exception(timeout=60) for call in calls]
    assert all(isinstance(error, tf.errors.OpError) for error in errors), errors
    return errors


def rejoined(both, i, fetches, feeds):
    """Runs worker i. If its last step did not end, it may first rejoin the step that another worker has given up."""
    options = tf1.RunOptions(timeout_in_ms=3000)
    while True:
        try:
            return both.sessions[i].run(fetches, feeds, options=options)
        except tf.errors.OpError as error:
            if "run this step again" not in str(error):
                raise


# Models whose steps need equally many rows, and the reasons. The model `tiled_support` itself needs 8 rows.
DENIED = {
    "fed_behind": "splits a tensor that one worker computes",
    "fed_rows": "feeds the batch size",
    "gram": "every worker needs the number of all rows",
    "hardest": "every worker needs the number of all rows",
    "losses_module": "every worker needs the number of all rows",
    "masked_words": "every worker needs the number of all rows",
    "warm_up": "splits a tensor that one worker computes",
}


@pytest.mark.parametrize("name,workers", [h for h in HABITS if h[0] not in (*DENIED, "tiled_support")])
def test_uneven_workers(name, workers):
    """Workers feed different numbers of rows, and other ones in each step: the step is that of the single device."""
    model = models_habits.HABITS[name]
    data = models_habits.batches(model.data, len(model.steps))
    counts = list(itertools.islice(itertools.cycle(UNEVEN[workers]), len(model.steps)))
    fed = [uneven(batch, each) for batch, each in zip(data, counts)]
    path = compare.export(Spec(name), model.build)
    want = compare.run(path, [rows for rows, _ in fed], model.steps, model.fetches, model.after)
    fetches = [f"--fetch={f.split(':')[0]}" for f in (*model.fetches, *model.after)]
    strategy = ["ps", "all-reduce", "parallax"][len(name) % 3]
    paths, _ = rewrite(path, workers, 1, "--verify-output", *model.flags, *fetches, strategy=strategy)
    with Cluster(paths, 1) as all_of_them:
        all_of_them.one(0, "init")
        for i, ((_, feeds), step) in enumerate(zip(fed, model.steps), start=1):
            for fetched, _ in all_of_them.run([[*model.fetches], step], feeds):
                for name, ours, theirs in zip(model.fetches, fetched, want[i][0]):
                    harness.assert_close(ours, theirs, f"{name} of step {i}")
            later = all_of_them.run([*model.after], feeds)
            for after in later:
                for name, ours, theirs in zip(model.after, after, want[i][2]):
                    harness.assert_close(ours, theirs, f"{name} after step {i}")
            all_of_them.check(want[i][1], f"after step {i}", copies=model is not models_habits.HABITS["metrics"])


@pytest.mark.parametrize("name,strategy", list(zip(DENIED, itertools.cycle(["ps", "all-reduce"]))))
def test_denied_rows(name, strategy):
    """Such a step fails if the numbers of rows differ, changes nothing, and the next step is right."""
    model, workers = models_habits.HABITS[name], 2
    path = compare.export(Spec(name), model.build)
    paths, _ = rewrite(path, workers, 1, *model.flags, strategy=strategy)
    first, second = models_habits.batches(model.data, 2)
    want = compare.run(path, [first, second], model.steps[:2], model.fetches, model.after)
    with Cluster(paths, 1) as both:
        both.one(0, "init")
        for fetches in (model.steps[0], [*model.fetches, model.steps[0]]):
            errors = failures(both, fetches, uneven(first, (3, 5))[1])
            if "number of all rows" in DENIED[name]:
                assert "workers feed different numbers of rows" in str(errors[0]), errors[0]
        both.check(want[0][1], "after steps that failed")
        for number, (batch, step) in enumerate(zip((first, second), model.steps), 1):
            feeds = both.rows(batch)
            list(both.pool.map(lambda i, step=step, feeds=feeds: rejoined(both, i, step, feeds(i)), range(workers)))
            both.check(want[number][1], f"step {number}")


def test_no_rows():
    """A step, or a fetched loss, in which a worker has no rows fails with the reason, and changes nothing."""
    spec = Spec("mlp_adam", "resource")
    paths, _ = rewrite(harness.export(spec), 2, 1)
    batch = models.batches(spec.model, spec.dtype)[0]
    with Cluster(paths, 1) as both:
        both.one(0, "init")
        before = both.one(0, both.variables)
        for fetches in ("train_op", "loss:0", ["loss:0", "train_op"]):
            errors = failures(both, fetches, uneven(batch, (8, 0))[1])
            assert "a worker feeds no rows to" in str(errors[0]), errors
        harness.assert_all_close(both.one(0, both.variables), before, "after steps that failed")


def test_rows_of_a_table():
    """A lookup's value says that it has been, without another message; rows go to the table and not by the chief."""
    paths, _ = rewrite(harness.export(Spec("embedding", "resource", None, "sum")), 2, 1)
    for path in paths:
        nodes = {n.name: n for n in harness.read_meta(path).graph_def.node}
        lookups = {name for name, n in nodes.items() if n.op == "ResourceGather" and "ps" in n.device}
        assert lookups, path
        waits = {name for n in nodes.values() if "ps" not in n.device for name in n.input if name.startswith("^")}
        assert not waits & {"^" + name for name in lookups}, path
        joined = [n for n in nodes.values() if n.op == "ConcatV2" and "gather" in n.name]
        assert bool(joined) == (path == paths[0]) and all("/job:ps" in n.device for n in joined), joined


@pytest.mark.parametrize("strategy", ["ps", "all-reduce"])
def test_entries_of_sparse_feeds(strategy):
    """Workers are all fed the sparse tensors, and each reads the entries of its rows."""
    source = SOURCES["sparse_fields"]
    path = compare.export(Spec("sparse_fields"), source.build)
    with harness.Session(path) as session:
        session.restart()
        rng, want = np.random.default_rng(7), [session.values()]
        for _ in range(2):
            session.run("train_op", {f"{key}:0": value for key, value in source.feeds(rng).items()})
            want.append(session.values())
    paths, said = rewrite(path, 2, 1, "--verify-output", "--min-spread=95", strategy=strategy)
    assert said == "", said
    with Cluster(paths, 1) as both:
        both.one(0, "init")
        rng = np.random.default_rng(7)
        for i, values in enumerate(want):
            both.check(values, f"after step {i}")
            fed = source.feeds(rng)
            whole = {f"{key}:0": value for key, value in fed.items() if key != "y"}
            both.run("train_op", lambda worker: {**whole, "y:0": fed["y"][worker * BATCH // 2 : (worker + 1) * BATCH // 2]})


def test_one_file_is_that_of_all():
    """--worker=I writes the same bytes."""
    path = harness.export(Spec("mlp_adam", "resource"))
    paths, _ = rewrite(path, 2, 1)
    for i, file in enumerate(paths):
        one = file + ".one"
        file_of_cluster = os.path.join(os.path.dirname(file), "cluster.json")
        harness.run_graft([
            path, "-o", one, "--mode=between-graph", f"--cluster={file_of_cluster}", "--strategy=ps", "--device-type=CPU",
            f"--worker={i}"
        ])
        with open(file, "rb") as a, open(one, "rb") as b:
            assert a.read() == b.read()


@pytest.mark.parametrize("strategy", ["ps", "all-reduce", "parallax"])
def test_monitored_sessions(strategy):
    """MonitoredTrainingSession is all that a script needs: the chief initialises, the other waits until it has."""
    model = models_habits.HABITS["averaged"]
    data = models_habits.batches(model.data, len(model.steps))
    path = compare.export(Spec("averaged"), model.build)
    want = compare.run(path, data, model.steps, model.fetches, model.after)
    paths, _ = rewrite(path, 2, 1, "--fetch=loss", strategy=strategy)
    jobs = jobs_of(2, 1)
    servers = [
        tf1.train.Server(jobs, job_name=job, task_index=i) for job, addresses in jobs.items() for i in range(len(addresses))
    ]
    initialised = threading.Event()

    def work(i):
        if i != 0:
            assert initialised.wait(60)
        losses = []
        with tf.Graph().as_default():
            tf1.train.import_meta_graph(paths[i])
            config = tf1.ConfigProto()
            with tf1.train.MonitoredTrainingSession(
                master=servers[i].target,
                is_chief=i == 0,
                config=config,
                save_summaries_steps=None,
                save_summaries_secs=None,
                log_step_count_steps=None,
                hooks=[tf1.train.StopAtStepHook(num_steps=len(data))],
            ) as session:
                initialised.set()
                for batch in data:
                    share = len(batch[0]) // 2
                    feeds = {f"{n}:0": v[i * share : (i + 1) * share] for n, v in zip("xy", batch)}
                    losses.append(session.run(["loss:0", "train_op"], feeds)[0])
                assert session.should_stop()
        return losses

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for losses in pool.map(work, range(2)):
            for i, loss in enumerate(losses, start=1):
                harness.assert_close(loss, want[i][0][0], f"loss of step {i}")
