# SPDX-License-Identifier: Apache-2.0
"""The files of workers that do not wait (--async): each is the step of the input, and all update the same variables under
their locks. Broken ones are refused, in a line that names the node and the file. That together they are no step of a single
device is a declared departure: a warning, which --strict refuses. With --staleness nothing is certified."""

import re
import subprocess

import compare
import harness
import pytest
import tensorflow.compat.v2 as tf
from models import BATCH, Spec, tf1
from tensorflow.core.protobuf import meta_graph_pb2
from test_between_proof import certify, rewrite

SAID = "no single device has the result of all"
WRITTEN = [
    (Spec("mlp_adam", "resource"), 2, 1, 1),
    (Spec("mlp_adam", "ref", BATCH), 3, 0, 2),
    (Spec("mlp_clip", "resource"), 3, 2, 2),
    (Spec("embedding", "resource"), 2, 2, 1),
    (Spec("embedding", "ref"), 2, 1, 2),
    (Spec("cnn_nobn", "resource"), 2, 1, 1),
    (Spec("adamw_assign", "ref"), 2, 1, 1),
    (Spec("mlp_random", "resource"), 3, 1, 1),
]


def rows(b):
    """Rows that are scattered, a variable of each worker, and a draw."""
    x = tf1.placeholder(tf.float32, [None, 4], name="x")
    y = tf1.placeholder(tf.int32, [None], name="y")
    table = tf1.get_variable("table", [8, 4], initializer=tf1.zeros_initializer())
    tf1.get_variable(
        "seen",
        [],
        initializer=tf1.zeros_initializer(),
        trainable=False,
        collections=[tf1.GraphKeys.LOCAL_VARIABLES],
    ).assign_add(1.0, name="count")
    drawn = tf1.nn.dropout(x, rate=0.5, seed=3)
    loss = tf.reduce_mean(drawn * tf.gather(table, y), name="loss")
    tf1.train.GradientDescentOptimizer(1.0).minimize(loss, tf1.train.get_or_create_global_step(), name="train_op")


@pytest.mark.parametrize("spec,workers,servers,local", WRITTEN, ids=str)
def test_accepted(spec, workers, servers, local):
    path = harness.export(spec)
    files = rewrite(path, workers, servers, "ps", f"--replicas={local}", "--async", "--verify-output")
    for order in (files, files[::-1]):
        ran = certify(order, path)
        assert ran.returncode == 0 and ran.stderr.count("\n") == 1 and SAID in ran.stderr, ran.stderr
    strict = subprocess.run(
        [harness.graft_opt(), "--strict", "--certify", *files, f"--against={path}"], capture_output=True, text=True
    )
    assert strict.returncode == 1 and SAID in strict.stderr


def test_no_variables(tmp_path):
    """Who has no variable has a file of its own all the same."""
    path = str(tmp_path / "no_variables.meta")
    with tf.Graph().as_default():
        tf.reduce_mean(tf1.placeholder(tf.float32, [None, 4], name="x") * 2.0, name="loss")
        tf1.train.export_meta_graph(path)
    files = rewrite(path, 2, 1, "ps", "--async", "--verify-output")
    ran = certify(files, path)
    assert ran.returncode == 0 and SAID in ran.stderr, ran.stderr


def test_staleness_is_refused():
    """How steps are counted is not proved, and said so in a line."""
    path = harness.export(Spec("mlp_adam", "resource"))
    ran = certify(rewrite(path, 2, 1, "ps", "--staleness=2"), path)
    assert ran.returncode == 1 and ran.stderr.count("\n") == 1 and "--staleness" in ran.stderr, ran.stderr


def mutants(node):
    """What makes a node wrong, by a word."""

    def lock(n):
        n.attr["use_locking"].b = False

    def name(n):
        n.attr["shared_name"].s = b"private"

    def task(n):
        n.device = re.sub("(job:[a-z]+/task:)[0-9]+", r"\g<1>7", n.device)

    def seed(n):
        n.attr["seed2"].i += 1

    def dropped(n):
        del n.input[:]
        n.op, n.device = "NoOp", ""
        n.attr.clear()

    def local(n):
        n.attr["_graft_part"].s = b"local" if n.attr["_graft_part"].s == b"shared" else b"shared"

    def worker(n):
        n.attr["_graft_worker"].i += 1

    applies = "Apply" in node.op or "Scatter" in node.op
    if applies and "use_locking" in node.attr:
        yield "an update without its lock", lock
    if applies or node.op.startswith("AssignAdd"):
        yield "an update is dropped", dropped
    if node.op in ("VarHandleOp", "VariableV2"):
        yield "shared_name made private", name
        yield "device of another task", task
        yield "a variable of all is each worker's, or the other way round", local
        yield "file of another worker", worker
    if "seed2" in node.attr:
        yield "another seed", seed


@pytest.mark.parametrize("kind", ["resource", "ref"])
def test_mutants(kind):
    path = compare.export(Spec("async_rows", kind), rows)
    files = rewrite(path, 2, 1, "ps", "--async")
    ran = certify(files, path)
    assert ran.returncode == 0 and SAID in ran.stderr, ran.stderr
    seen = set()
    for i, file in enumerate(files):
        with open(file, "rb") as f:
            read = meta_graph_pb2.MetaGraphDef.FromString(f.read())
        for k, node in enumerate(read.graph_def.node):
            for word, edit in mutants(node):
                broken = meta_graph_pb2.MetaGraphDef()
                broken.CopyFrom(read)
                edit(broken.graph_def.node[k])
                mutant = file + ".mutant"
                with open(mutant, "wb") as f:
                    f.write(broken.SerializeToString(deterministic=True))
                ran = certify([*files[:i], mutant, *files[i + 1 :]], path)
                line = next((each for each in ran.stderr.splitlines() if "error:" in each), "")
                assert ran.returncode == 1 and ("node '" in line or "worker" in line), (node.name, word, ran.stderr)
                seen.add(word)
    assert len(seen) == 7, seen


@pytest.mark.parametrize("chosen,said", [((0,), "2 workers"), ((0, 0), "two files"), ((1,), "2 workers")])
def test_files_are_missing(chosen, said):
    path = harness.export(Spec("linear", "resource"))
    files = rewrite(path, 2, 1, "ps", "--async")
    ran = certify([files[i] for i in chosen], path)
    assert ran.returncode == 1 and said in ran.stderr, ran.stderr
