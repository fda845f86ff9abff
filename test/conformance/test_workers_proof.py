# SPDX-License-Identifier: Apache-2.0
"""The files of ipu-multi-worker, a replica each: together they are the step of the input. Broken ones are refused, in a line
that names the node. test_workers.py certifies what it runs; here files are broken."""

import re
import subprocess

import compare
import harness
import models_habits
import numpy as np
import pytest
import tensorflow.compat.v2 as tf
from models import BATCH, Spec, tf1
from tensorflow.core.protobuf import meta_graph_pb2
from test_between_proof import certify
from test_workers import effects, rewrite


def test_accepted_in_any_order():
    path = harness.export(Spec("mlp_adam", "ref", BATCH))
    files, _ = rewrite(path, 3)
    for order in (files, files[::-1], files[1:] + files[:1]):
        ran = certify(order, path)
        assert ran.returncode == 0 and ran.stderr == "", ran.stderr


def test_all_files_are_needed():
    path = harness.export(Spec("linear", "resource"))
    files, _ = rewrite(path, 2)
    for given, why in [
        (files[:1], "only the file of one of 2 workers is given"),
        ([files[0], files[0]], "two files are of worker 0"),
        ([*files, files[1]], "there are 3 files"),
    ]:
        ran = certify(given, path)
        assert ran.returncode == 1 and why in ran.stderr and ran.stderr.count("\n") == 1, ran.stderr


@pytest.mark.parametrize("worker", [0, 1])
def test_verify_output(tmp_path, worker):
    """The graphs of the others are made for it; the file is the same as without."""
    path = harness.export(Spec("mlp_random", "resource"))
    written = []
    for flags in [], ["--verify-output"]:
        written.append(str(tmp_path / f"worker{len(flags)}.meta"))
        harness.run_graft(
            [path, "-o", written[-1], "--strategy=ipu-multi-worker", "--workers=2", f"--worker={worker}", *flags]
        )
    with open(written[0], "rb") as plain, open(written[1], "rb") as checked:
        assert plain.read() == checked.read()


def test_own_values_are_refused(tmp_path):
    """Samples that each worker draws are not known to be equal."""
    path = str(tmp_path / "own.meta")
    with tf.Graph().as_default():
        x = tf1.placeholder(tf.float32, [None, 3], name="x")
        w = tf1.get_variable("w", [3], initializer=tf1.zeros_initializer())
        size = tf.random.uniform([], 1, 4, tf.int32, name="size")
        chosen = tf.random.uniform([size], 0, 3, tf.int32, name="chosen")
        loss = tf.reduce_mean(tf.gather(x * w, chosen, axis=1))
        tf1.train.GradientDescentOptimizer(0.1).minimize(loss, name="train_op")
        tf1.train.export_meta_graph(path)
    flags = [path, "-o", str(tmp_path / "worker.meta"), "--strategy=ipu-multi-worker", "--workers=2", "--worker=0", "--verify-output"]
    ran = subprocess.run([harness.graft_opt(), *flags], capture_output=True, check=False)
    said = ran.stderr.decode()
    assert ran.returncode == 1 and "whose value may differ between workers" in said, said


def mutants(node):
    """The edits that make a node wrong, by a word."""

    def attr(name, field, value):
        def edit(n):
            setattr(n.attr[name], field, value)

        return edit

    def more(name):
        def edit(n):
            n.attr[name].i += 1

        return edit

    def task(n):
        n.device = re.sub("(job:[a-z]+/task:)[0-9]+", r"\g<1>7", n.device)

    def dropped(n):
        del n.input[:]
        n.op = "NoOp"
        n.attr.clear()

    def alone(n):
        del n.input[:]

    def other(n):
        value = tf.make_ndarray(n.attr["value"].tensor)
        n.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value + np.ones_like(value), value.dtype))

    yield "device of another task", task
    if node.op.startswith("Collective"):
        yield "another key", more("instance_key")
        yield "another group", more("group_key")
        yield "another size of the group", more("group_size")
    if node.op == "CollectiveReduce":
        yield "another combination", attr("merge_op", "s", b"Mul")
    if node.op == "CollectiveBcastRecv":
        yield "nothing is received", dropped
    if "Apply" in node.op or node.op.startswith("Assign"):
        yield "an update is dropped", dropped
    if "seed2" in node.attr and (node.attr["seed"].i or node.attr["seed2"].i):
        yield "another seed", more("seed2")
    if node.op == "VarHandleOp":
        yield "another variable", attr("shared_name", "s", b"other")
    if node.op == "Const" and node.attr["value"].tensor.dtype == 1:
        yield "another number", other
    if node.op == "NoOp" and node.input:
        yield "waits for nothing", alone
    if "_graft_rows" in node.attr:
        yield "rows along another axis", more("_graft_rows")
    if "_graft_worker" in node.attr:
        yield "file of another worker", more("_graft_worker")


def test_mutants():
    path = compare.export(Spec("effects_mutants", "resource"), effects)
    files, _ = rewrite(path, 2)
    seen, refused = {}, 0
    for i, file in enumerate(files):
        with open(file, "rb") as f:
            read = meta_graph_pb2.MetaGraphDef.FromString(f.read())
        for k, node in enumerate(read.graph_def.node):
            for word, edit in mutants(node):
                if seen.get((word, i), 0) >= 4:  # of each kind in each file
                    continue
                seen[word, i] = seen.get((word, i), 0) + 1
                broken = meta_graph_pb2.MetaGraphDef()
                broken.CopyFrom(read)
                edit(broken.graph_def.node[k])
                mutant = file + ".mutant"
                with open(mutant, "wb") as f:
                    f.write(broken.SerializeToString(deterministic=True))
                ran = certify([*files[:i], mutant, *files[i + 1 :]], path)
                assert ran.returncode == 1 and "error:" in ran.stderr, (node.name, word, ran.stderr)
                refused += 1
    assert len({word for word, _ in seen}) >= 11, seen
    assert refused >= 60, refused
