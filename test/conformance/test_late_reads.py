# SPDX-License-Identifier: Apache-2.0
"""Reads before an update that are used after it: a reference variable has the written value, in every process."""

import os

import compare
import harness
import models_habits
import pytest
import tensorflow.compat.v2 as tf
from harness import Options
from models import Spec, tf1
from models_late import MODELS, UNKNOWN, regress
from test_between_graph import Cluster, rewrite, servers_of
from test_between_mutants import broken
from test_between_proof import certify

STRATEGIES = ("ps", "all-reduce", "partitioned-ps", "parallax")
NAMES = sorted(MODELS)
KEPT = ("--fetch=late", "--fetch=loss")


def written(name, model=None, kind="ref"):
    model = model or MODELS[name]
    return compare.export(Spec(name, kind), model.build), models_habits.batches(model.data, len(model.steps))


def wanted(name):
    path, data = written(name)
    model = MODELS[name]
    return path, data, compare.run(path, data, model.steps, model.fetches)


def check(got, want, name, i, who):
    for fetch, ours, theirs in zip(MODELS[name].fetches, got, want[i][0]):
        harness.assert_close(ours, theirs, f"{fetch} of step {i}, {who}")


@pytest.mark.parametrize("name", NAMES)
def test_one_process(name):
    """With copies of the variables, and with one that all replicas read."""
    model = MODELS[name]
    path, data = written(name)
    for strategy in ("ps", "all-reduce"):
        compare.same_steps(path, Options(2, strategy, "auto", KEPT), data, model.steps, model.fetches)


def cases():
    """Each model on a parameter server, and each other strategy and flag with a few."""
    for name in NAMES:
        yield name, "ps", ()
    for i, name in enumerate(NAMES):
        yield name, STRATEGIES[1 + i % 3], ()
    for name in ("of_rows", "looked_up", "summed", "written_again"):
        yield name, "ps", ("--local-replication",)


# An average of a table stays colocated with it, on another task: refused.
REFUSED = {("averaged", "parallax")}


@pytest.mark.parametrize("name,strategy,flags", [c for c in cases() if c[:2] not in REFUSED])
def test_between_graphs(name, strategy, flags):
    """Each worker has what the single device has, and all files are proved together."""
    path, data, want = wanted(name)
    paths, said = rewrite(path, 2, 1, *KEPT, *flags, strategy=strategy)
    assert harness.without_spread(said) == ""
    with Cluster(paths, 1) as both:
        both.one(0, "init")
        for i, batch in enumerate(data, start=1):
            for k, (got, _) in enumerate(both.run([list(MODELS[name].fetches), "train_op"], both.rows(batch))):
                check(got, want, name, i, f"worker {k}")
            both.check(want[i][1], f"after step {i}")


@pytest.mark.parametrize("name", ["summed", "of_rows", "averaged"])
def test_one_graph_of_several_tasks(name):
    """One session drives replicas in two tasks and a parameter server."""
    path, data, want = wanted(name)
    cluster = os.path.join(os.path.dirname(rewrite(path, 2, 1)[0][0]), "cluster.json")
    out = cluster + ".meta"
    harness.run_graft([path, "-o", out, f"--cluster={cluster}", "--strategy=ps", "--replicas=1", "--device-type=CPU", *KEPT])
    server = servers_of(2, 1, 1)[0]
    with tf.Graph().as_default() as graph:
        tf1.train.import_meta_graph(out)
        with tf1.Session(server.target, graph=graph) as session:
            session.run("init")
            for i, batch in enumerate(data, start=1):
                feeds = {f"{n}:0": v for n, v in zip("xy", batch)}
                got, _ = session.run([list(MODELS[name].fetches), "train_op"], feeds)
                check(got, want, name, i, "in one graph")
        tf1.Session.reset(server.target)


@pytest.mark.parametrize("name", ["passed_on", "of_rows", "written_again"])
def test_asynchronous(name):
    """A worker that is alone has what the single device has."""
    path, data, want = wanted(name)
    paths, _ = rewrite(path, 2, 1, "--async")
    with Cluster(paths, 1) as both:
        both.one(0, "init")
        for i, batch in enumerate(data, start=1):
            feeds = {f"{n}:0": v for n, v in zip("xy", batch)}
            got, _ = both.one(0, [list(MODELS[name].fetches), "train_op"], feeds)
            check(got, want, name, i, "alone")


def early(n):
    """The node uses the value that was read before the update."""
    for k, i in enumerate(n.input):
        n.input[k] = i[: -len("/late")] if n.op != "Identity" and i.endswith("read/late") else i


def unordered(n):
    """The variable is read again, and not after the update."""
    if n.name.endswith("read/late"):
        kept = [i for i in n.input if not i.startswith("^")]
        del n.input[:]
        n.input.extend(kept)


@pytest.mark.parametrize("edit", [early, unordered], ids=lambda e: e.__name__)
def test_mutants_are_refused(edit):
    path, data, want = wanted("summed")
    paths = rewrite(path, 2, 1, *KEPT)[0]
    assert certify(broken(paths, lambda metas: None), path).returncode == 0
    mutants = broken(paths, lambda metas: [edit(n) for meta in metas for n in meta.graph_def.node])
    ran = certify(mutants, path)
    assert ran.returncode == 1 and "node '" in ran.stderr, ran.stderr
    with Cluster(mutants, 1) as both:
        both.one(0, "init")
        got = both.run(["late:0", "train_op"], both.rows(data[0]))[0][0]
    with pytest.raises(AssertionError):
        harness.assert_close(got, want[1][0][1], "late")


@pytest.mark.parametrize("name", sorted(UNKNOWN))
def test_unknown_memory_is_refused(name):
    """Which of both it is depends on how TensorFlow lays out memory, and another process has a copy in any case."""
    path, _ = written(name, UNKNOWN[name])
    with pytest.raises(harness.GraftError, match="uses a read of the variable .(w|table). from before an update"):
        rewrite(path, 2, 1)
    rewrite(path, 2, 1, strategy="all-reduce")


def beside(order):
    """An average of the weights in one group with the update, after it or in no order."""

    def build(b):
        _, _, w, table, step = regress(b)
        average = tf1.train.ExponentialMovingAverage(0.5)
        update = step()
        with tf.control_dependencies([update] if order == "after" else []):
            follow = average.apply([w, table])
        tf.group(update, follow, name="train_op")

    return build


@pytest.mark.parametrize("kind", ["ref", "resource"])
@pytest.mark.parametrize("order", ["none", "after"])
def test_average_beside_update(order, kind):
    path = compare.export(Spec("beside", kind), beside(order))
    said = harness.rewrite(path, Options(2))[1]
    assert ("reads a variable, and nothing in the input orders this read" in said) == (order == "none"), said
