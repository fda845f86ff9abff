# SPDX-License-Identifier: Apache-2.0
"""Variables in parts on several devices: one pipeline cuts and replicates, and the output is checked as a file."""

import os
import tempfile

import harness
import models
import numpy as np
import pytest
from harness import assert_all_close, assert_close
from models import Spec, tf1
from strategies import SMALL, Distributed, Placed, tf
from test_partition import Parts

CASES = [
    ("linear", ["w=0/2"], 2, "all-reduce", "add"),
    ("mlp_adam", ["hidden/kernel=1:3,13", "hidden/bias=0/4", "output/kernel=0/5"], 3, "all-reduce", "collective"),
    ("mlp_clip", ["hidden/kernel=0/3", "output/kernel=1/2"], 4, "ps", "add"),
    ("cnn_nobn", ["conv2/kernel=2:1,5", "dense/kernel=0/4"], 2, "all-reduce", "add"),
    ("embedding", ["table=0/3", "w=0/2"], 2, "all-reduce", "collective"),
    ("embedding", ["table=0:1,9,1"], 4, "ps", "add"),
    ("embedding", ["table=1:2,3"], 3, "all-reduce", "add"),
    ("adamw_assign", ["hidden/kernel=0/2", "output/kernel/adam_m=0/3"], 2, "all-reduce", "add"),
]


def pipeline(rules, replicas, strategy, reduction):
    """The passes of the strategy, with partition-variables before replicas are made."""
    options = [f"--replicas={replicas}", "--device-type=CPU", f"--strategy={strategy}", f"--reduction={reduction}"]
    done = harness.run_graft([*options, "--print-pipeline-passes"], check=False)
    passes = done.stdout.strip()
    cut = f"partition-variables{{partition='{';'.join(rules)}'}}"
    assert passes.count(",replicate") == 1, done.stdout + done.stderr
    return passes.replace(",replicate", f",{cut},replicate", 1)


@pytest.mark.parametrize("kind", ["ref", "resource"])
@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join([c[0], *c[1][:1], str(c[2]), c[3]]).replace("/", "|"))
def test_same_steps(case, kind):
    model, rules, replicas, strategy, reduction = case
    spec = Spec(model, kind=kind)
    original, want = harness.export(spec), harness.reference(spec)
    handle, out = tempfile.mkstemp(suffix=".meta", dir=harness.workdir())
    os.close(handle)
    passes = pipeline(rules, replicas, strategy, reduction)
    done = harness.run_graft([original, "-o", out, f"--passes={passes}", "--strict", "--verify-output"], check=False)
    assert done.returncode == 0 and harness.without_even_rows(done.stderr) == "", done.stderr
    again = harness.run_graft([out, f"--passes=check-replication{{input={original}}}", "--emit=none"], check=False)
    assert again.returncode == 0 and again.stderr == "", again.stderr
    with Parts(out, original, replicas) as session:
        session.restart()
        assert_all_close(session.values(), want.variables[0], "after init")
        for i, batch in enumerate(models.batches(model, spec.dtype), start=1):
            assert_close(session.step(batch), want.losses[i - 1], f"loss of step {i}")
            assert_all_close(session.values(), want.variables[i], f"after step {i}")


@pytest.mark.parametrize("reduction", ["add", "collective"])
def test_rows_of_a_step_by_hand(reduction):
    """The rows of a gradient are scattered without an optimizer: they are sent to parts by numbers of their own."""
    handle, path = tempfile.mkstemp(suffix=".meta", dir=harness.workdir())
    os.close(handle)
    with tf.Graph().as_default():
        ids = tf1.placeholder(tf.int64, [None, 2], name="ids")
        v = tf1.get_variable("v", [11, 3], initializer=tf1.constant_initializer(np.arange(33.0) / 33))
        loss = tf.reduce_mean(tf.square(tf.reduce_sum(tf.gather(v, ids), [1, 2]) - 1.0), name="loss")
        grad = tf1.gradients(loss, v)[0]
        tf.group(tf1.scatter_sub(v, grad.indices, 0.01 * grad.values), name="train_op")
        tf1.global_variables_initializer()
        tf1.train.export_meta_graph(path)
    feeds = {"ids:0": np.array([[0, 1], [10, 10], [3, 8], [5, 6], [6, 2], [7, 10]])}
    results = []
    extra = (*SMALL, "--strict", "--verify-output")
    with harness.Session(path) as one, Distributed(path, Placed(3, "partitioned-all-reduce", reduction, extra)) as many:
        assert "v/part_1" in many.parts["v"]
        for session in (one, many):
            session.restart()
            for _ in range(2):
                session.run(["train_op"], feeds)
            results.append(session.values()["v"])
    assert_close(results[1], results[0], "v after two steps")
    assert np.max(np.abs(results[0].ravel() - np.arange(33) / 33)) > 0.01
