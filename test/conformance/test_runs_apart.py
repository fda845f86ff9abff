# SPDX-License-Identifier: Apache-2.0
"""Runs stay apart: to run a name takes and does nothing that it does not in the input.

Each mutant puts one node before another, in a program or in a file. The certificate refuses it for that, and TensorFlow
shows that it matters: the run of a name that is right in the input and in the output then asks for another feed, for a
variable that has no value, or changes one that it should not.
"""

import functools
import os
import tempfile

import harness
import mutations
import numpy as np
import pytest
import tensorflow.compat.v1 as tf1
from mutation_score import write_meta
from mutations import Program

X = {"x:0": np.random.RandomState(0).rand(8, 4).astype("f")}
Y = {"y:0": np.random.RandomState(1).rand(8, 4).astype("f")}
WAYS = {
    "add": ("--reduction=add",),
    "collective": ("--reduction=collective",),
    "buckets": ("--reduction=add", "--bucket-bytes=1k"),
    "collective buckets": ("--reduction=collective", "--bucket-bytes=1k"),
    "accumulator": ("--strategy=ps", "--reduction=accumulator"),
    "proxies": ("--strategy=ps", "--local-replication"),
    "checked": ("--reduction=add", "--check-copies"),
}


def write_model(path: str, both: bool):
    """Two losses, of which each has a variable, and that can have one feed or two: `z` is `x`. With `both` a loss needs the
    variable of the other."""
    with tf1.Graph().as_default():
        x = tf1.placeholder(tf1.float32, [None, 4], name="x")
        y = tf1.placeholder(tf1.float32, [None, 4], name="y")
        z = tf1.identity(x, name="z")
        start = np.linspace(-0.4, 0.5, 12, dtype="f").reshape(4, 3)
        v = tf1.get_variable("v", initializer=start, use_resource=True)
        w = tf1.get_variable("w", initializer=2 * start[:, :2], use_resource=True)
        of_v, of_w = (tf1.reduce_sum(v), tf1.reduce_sum(w)) if both else (1.0, 1.0)
        one = tf1.reduce_mean(tf1.square(tf1.matmul(x, v) * of_w - 0.3), name="one")
        two = tf1.reduce_mean(tf1.square(tf1.matmul(z, w) * of_v - 0.1), name="two")
        tf1.reduce_mean(tf1.square(y), name="three")
        sgd = tf1.train.GradientDescentOptimizer(0.1)
        sgd.minimize(one, var_list=[v], name="train_v")
        sgd.minimize(two, var_list=[w], name="train_w")
        tf1.group(v.initializer, w.initializer, name="init")
        saver = tf1.train.Saver()
        tf1.train.export_meta_graph(path, saver_def=saver.saver_def)


def part(meta):
    """The second loss has the feed y, which the first does not have."""
    for node in meta.graph_def.node:
        scope, _, name = node.name.rpartition("/")
        if name == "z":
            node.input[0] = node.input[0].replace("x", "y", 1)
    return meta


@functools.lru_cache(maxsize=None)
def graphs(way: str):
    """The input, the program and the file of a model whose losses have feeds of their own. Where there are buckets, they
    were made for one feed."""
    handle, path = tempfile.mkstemp(suffix=".meta", dir=harness.workdir())
    os.close(handle)
    same = "buckets" in way
    write_model(path, same)
    given = path if same else write_meta(part(harness.read_meta(path)))
    flags = ["--replicas=2", "--device-type=CPU", *WAYS[way]]
    pipeline = harness.run_graft([given, *flags, "--print-pipeline-passes"]).stdout.strip()
    ending = ",check-replication,expand-replicas"
    assert pipeline.endswith(ending)
    results = [given]
    for passes in (pipeline[: -len(ending)], pipeline):
        out = given.replace(".meta", f".{len(results)}.meta")
        harness.run_graft([given, f"--passes={passes}", "-o", out], verify=False)
        results.append(out)
    return [write_meta(part(harness.read_meta(p))) for p in results] if same else results


def refusal(path: str, original: str) -> str:
    done = harness.run_graft([path, f"--passes=check-replication{{input={original}}}", "--emit=none"], check=False)
    return done.stderr if done.returncode else ""


def run(path: str, name: str, feeds, first=(), replicas: int = 2):
    """The variables after `name` was run, or the class of its error. `first` is run before it."""
    with harness.Session(path, replicas) as session:
        session.restart(init=False, grappler=False)  # which drops reads that are only waited for
        for other in first:
            session.session.run(other)
        try:
            session.session.run(name, feeds, options=tf1.RunOptions(timeout_in_ms=20000))
        except tf1.errors.OpError as error:
            return type(error)
        return {v: session.session.run(read) for v, read in session.variables.items()} if "init" in first else {}


def wait(q: Program, name: str, *controls: str):
    """`name` and its copies wait for `controls`, too."""
    copies = [n for n in q.nodes if n == name or mutations.copy_of(n) in ((name, 0), (name, 1))]
    assert copies, f"there is no {name}"
    for copy in copies:
        for control in controls:
            number = mutations.copy_of(copy)
            control = control.replace("%", f"replica_{number[1] if number else 0}")
            assert control in q.nodes, f"there is no {control}"
            q.nodes[copy].input.append("^" + control)


def find(q: Program, op: str, *parts: str):
    """The nodes of an op in whose names all parts are."""
    found = [n for n, node in q.nodes.items() if node.op == op and all(p in n for p in parts)]
    assert found, f"no {op} is called {parts}"
    return found


def cross_gates(q: Program):
    """The gate of the first gradient holds the members of the second one's, too."""
    one, two = find(q, "NoOp", "gate")[:2]
    wait(q, one, *[n for n in q.nodes if q.nodes[n].op == "CollectiveReduce" and ("^" + n) in q.nodes[two].input])


def wait_for_gate(q: Program):
    """A reader of the first reduced gradient waits at the gate of the second."""
    one, two = find(q, "NoOp", "gate")[:2]
    for node in q.nodes.values():
        if "^" + one in node.input:
            node.input.append("^" + two)


def tie_proxies(q: Program):
    """The first value of a proxy comes after a read of it."""
    for name in find(q, "AssignVariableOp", "v/Assign/refresh"):
        q.nodes[name].input.append("^" + name.replace("v/Assign/refresh", "v/proxy/Read"))


def refresh_at_read(q: Program):
    for name in find(q, "AssignVariableOp", "train_w", "refresh"):
        q.nodes["v/Read/ReadVariableOp"].input.append("^" + name)


def check_all(q: Program):
    """A loss that does not have the variable whose copies are compared waits for that."""
    [of] = {n.split("/")[2] for n in q.nodes if n.startswith("graft/check_copies/")}
    wait(q, {"v": "two", "w": "one"}[of], "graft/check_copies")


NEEDS_FEED, NO_VALUE = tf1.errors.InvalidArgumentError, tf1.errors.FailedPreconditionError
SAVE = {"save/Const:0": os.path.join(harness.workdir(), "apart")}
# The broken node and the edit; the name that shows it, its feeds, the earlier run, and the error; None: it
# changes variables.
CASES = {
    "bucket": ("buckets", None, "train_v", X, ["init"], NEEDS_FEED),
    "collective bucket": ("collective buckets", None, "train_v", X, ["init"], NEEDS_FEED),
    "gate of two": ("collective", cross_gates, "train_v", X, ["init"], NEEDS_FEED),
    "gate of another": ("collective", wait_for_gate, "train_v", X, ["init"], NEEDS_FEED),
    "fetch trains": ("add", lambda q: wait(q, "one", "train_w"), "one", {**X, **Y}, ["init"], None),
    "fetch asks": ("add", lambda q: wait(q, "one", "train_w"), "one", X, ["init"], NEEDS_FEED),
    "init trains": ("add", lambda q: wait(q, "w/Assign", "train_v"), "w/Assign", X, [], NO_VALUE),
    "save trains": ("add", lambda q: wait(q, "save/SaveV2", "train_v"), "save/SaveV2", SAVE, ["init"], NEEDS_FEED),
    "sum trains": ("accumulator", lambda q: wait(q, "one", "train_w"), "one", {**X, **Y}, ["init"], None),
    "read refreshes": ("proxies", refresh_at_read, "v/Read/ReadVariableOp", {}, ["init"], NEEDS_FEED),
    "refresh reads": ("proxies", tie_proxies, "v/Assign", {}, [], NO_VALUE),
    "check of another": ("checked", check_all, None, None, None, NO_VALUE),
}


@pytest.mark.parametrize("way", WAYS)
def test_good(way):
    """The certificate accepts the unbroken program."""
    if "buckets" not in way:
        original, program, file = graphs(way)
        assert refusal(program, original) == refusal(file, original) == ""


@pytest.mark.parametrize("case", CASES)
def test_mutant(case):
    way, change, name, feeds, first, error = CASES[case]
    original, program, file = graphs(way)
    for path in (program, file):
        q = Program(harness.read_meta(path))
        if change:
            change(q)
        broken = write_meta(q.meta)
        said = refusal(broken, original)
        assert "a run of this node" in said, f"{os.path.basename(path)}: {said or 'accepted'}"
    if name is None:
        name, other = ("one", "v") if "^graft/check_copies" in q.nodes["one"].input else ("two", "w")
        feeds, first = {**X, **Y}, [f"{other}/Assign"]
    want, got = run(original, name, feeds, first, 1), run(broken, name, feeds, first)
    assert not isinstance(want, type), f"the input cannot run {name}: {want}"
    if error is not None:
        assert got is error
        return
    harness.assert_close(got["v"], want["v"], "the variable of the loss")
    assert not np.array_equal(got["w"], want["w"]), "nothing happens"
