# SPDX-License-Identifier: Apache-2.0
"""A node that a user named like a copy of graft is no copy: the step is that of the input, whoever makes the sums."""

import os

import harness
import numpy as np
import pytest
import tensorflow as tf
from harness import Options

tf1 = tf.compat.v1

STEPS = 3
COPIES = {"all-reduce": 2, "ps": 1}


def export(kind):
    """Variables w, w/replica_1 and replica_0/w, and ops in the scopes of copies."""
    path = os.path.join(harness.workdir(), f"names-{kind}.meta")
    with tf.Graph().as_default():
        x = tf1.placeholder(tf.float32, [None, 3], name="x")

        def variable(name, *shape):
            initial = np.random.default_rng(len(name)).normal(size=shape).astype(np.float32)
            return tf1.get_variable(name, initializer=initial, use_resource=kind == "resource")

        w, other, last = variable("w", 3, 4), variable("w/replica_1", 4, 4), variable("replica_0/w", 4, 1)
        with tf.name_scope("replica_1"):
            hidden = tf.tanh(tf.matmul(x, w), name="hidden")
        hidden = tf.tanh(tf.matmul(hidden, other), name="hidden")
        with tf.name_scope("replica_0"):
            rows = tf.matmul(hidden, last, name="rows")
        with tf.name_scope("replica"):
            loss = tf.reduce_mean(tf.square(rows), name="loss_1")
        loss = tf.add(loss, 0.0, name="loss")
        tf1.train.MomentumOptimizer(0.1, 0.9).minimize(loss, name="train")
        tf1.train.Saver(name="saver")
        tf1.global_variables_initializer()
        tf1.train.export_meta_graph(path)
    return path


def run(path, replicas=1):
    """The loss of each step, then the variables; and their copies, which are equal."""
    with tf.Graph().as_default() as graph:
        tf1.train.import_meta_graph(path)
        config = tf1.ConfigProto(device_count={"CPU": replicas})
        with tf1.Session(config=config) as session:
            session.run("init")
            x = np.random.default_rng(7).normal(size=(STEPS, 4, 3)).astype(np.float32)
            got = [session.run(["loss:0", "train"], {"x:0": batch})[0] for batch in x]
            variables = tf1.global_variables()
            got += session.run(variables)
            return got, sum(op.type in ("VarHandleOp", "VariableV2") for op in graph.get_operations()), len(variables)


@pytest.mark.parametrize("kind", ["ref", "resource"])
@pytest.mark.parametrize("strategy", COPIES)
def test_names_of_copies(strategy, kind):
    path = export(kind)
    want, _, number = run(path)
    out, _ = harness.rewrite(path, Options(2, strategy))
    got, handles, _ = run(out, 2)
    assert handles >= number * COPIES[strategy]
    assert len(got) == len(want)
    for i, (one, other) in enumerate(zip(got, want)):
        harness.assert_close(one, other, f"value {i}")
