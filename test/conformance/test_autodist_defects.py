# SPDX-License-Identifier: Apache-2.0
"""The faults of AutoDist, by the numbers of the list of its defects, each as a case that must be right here.

Those that belong to one pass are named in the tests of that pass: A2 in test_partition.py, A5, A6 and A7 with the
reductions, A8, A16, A23 and A24 with the parameter servers.
"""

import re

import harness
import models
import numpy as np
import pytest
import tensorflow.compat.v2 as tf
from models import BATCH, Spec, tf1
from strategies import SMALL, Distributed, Placed, Strategic, servers, temporary


def write(fill) -> str:
    path = temporary(".meta")
    graph = tf.Graph()
    with graph.as_default():
        tf1.get_variable_scope().set_use_resource(True)
        fill()
        tf1.variables_initializer(tf1.global_variables(), name="init")
        saver = tf1.train.Saver()
        tf1.train.export_meta_graph(path, graph=graph, saver_def=saver.as_saver_def())
    return path


def two_optimizers():
    """A GAN's shape: two losses, two optimizers, a counter, and a rate that decays by it."""
    x = tf1.placeholder(tf.float32, [None, 4], "x")
    rng = np.random.RandomState(4)

    def variable(name, *shape):
        return tf1.get_variable(name, initializer=rng.standard_normal(shape).astype("float32") / 2)

    g = [variable("g/w", 4, 6), variable("g/b", 6)]
    d = [variable("d/w", 6, 5), variable("d/v", 5, 1)]
    made = tf.nn.tanh(tf.matmul(x, g[0]) + g[1])
    score = tf.matmul(tf.nn.tanh(tf.matmul(made, d[0])), d[1])
    step = tf1.train.get_or_create_global_step()
    rate = tf1.train.exponential_decay(0.1, step, 1, 0.7)
    loss_d = tf.reduce_mean(tf.square(score - 1.0), name="loss_d")
    loss_g = tf.reduce_mean(tf.square(score), name="loss_g")
    tf.group(tf1.train.AdamOptimizer(rate).minimize(loss_d, var_list=d), name="train_d")
    tf.group(tf1.train.MomentumOptimizer(rate, 0.9).minimize(loss_g, var_list=g, global_step=step), name="train_g")


@pytest.mark.parametrize("strategy", ["partitioned-ps", "uneven-partitioned-ps", "partitioned-all-reduce"])
def test_a13_partitions_keep_the_counter_both_optimizers_and_the_schedule(strategy):
    path = write(two_optimizers)
    feeds = {"x:0": np.random.RandomState(5).standard_normal((BATCH, 4)).astype("float32")}

    def run(session):
        session.restart()
        rows = []
        for train in ("train_d", "train_g") * 3:
            session.run([train], feeds)
            rows.append(session.values())
        return rows

    with harness.Session(path) as single, Distributed(path, Placed(2, strategy, "add", SMALL)) as ours:
        assert ours.parts
        for i, (got, want) in enumerate(zip(run(ours), run(single))):
            harness.assert_all_close(got, want, f"after step {i}")
        assert want["global_step"] == 3


@pytest.mark.parametrize("strategy", ["ps", "partitioned-ps", "all-reduce", "parallax"])
def test_a14_a_late_session_does_not_initialize_again(strategy):
    """Another session on the servers has the values of the first, without an initializer."""
    spec = Spec("embedding")
    want = harness.reference(spec)
    with Strategic(spec, Placed("2x2", strategy, "add", SMALL)) as ours:
        names, batches = ours.variables, ours.batches
        config = tf1.ConfigProto()  # sessions that share the state of the servers
        with tf1.Session(servers("2x2")[0].target, graph=ours.graph, config=config) as first:
            first.run("init")
            x, y = batches[0]
            first.run("train_op", {"x:0": x, "y:0": y})
            with tf1.Session(servers("2x2")[1].target, graph=ours.graph, config=config) as late:
                harness.assert_all_close(late.run(names), want.variables[1], "what the late session finds")
                x, y = batches[1]
                late.run("train_op", {"x:0": x, "y:0": y})
            harness.assert_all_close(first.run(names), want.variables[2], "after its step")


@pytest.mark.parametrize("kind", ["ref", "resource"])
@pytest.mark.parametrize("strategy", ["all-reduce", "partitioned-all-reduce"])
def test_a15_random_initial_values_are_drawn_once_for_all_machines(strategy, kind):
    spec = Spec("mlp_random", kind)
    batches = models.batches(spec.model)
    with Strategic(spec, Placed("2x2", strategy, "add", SMALL)) as ours, harness.Session(harness.export(spec)) as single:
        ours.restart()
        ours.check_copies("after init")
        single.restore(ours.save())
        for i, batch in enumerate(batches):
            harness.assert_close(ours.step(batch), single.step(batch), f"loss of step {i}")
            ours.check(single.values(), f"after step {i}")


def table(rows: int, columns: int = 4) -> str:
    def fill():
        x = tf1.placeholder(tf.int32, [None], "x")
        w = tf1.get_variable("w", [rows, columns], initializer=tf1.zeros_initializer())
        loss = tf.reduce_mean(tf.nn.embedding_lookup(w, x))
        tf1.train.GradientDescentOptimizer(0.1).minimize(loss, name="train_op")

    return write(fill)


def emitted(path: str, strategy: str, *flags: str, where=4) -> str:
    record = temporary(".pbtxt")
    arguments = Placed(where, strategy, "auto", flags).arguments()
    harness.run_graft([path, "-o", temporary(".meta"), *arguments, f"--emit-strategy={record}"])
    with open(record, encoding="utf-8") as file:
        return file.read()


@pytest.mark.parametrize("rows", [138493, 50257, 793471, 30522])
@pytest.mark.parametrize("strategy", ["partitioned-ps", "uneven-partitioned-ps", "partitioned-all-reduce"])
def test_a18_shards_are_few(strategy, rows):
    """A prime number of rows does not give a part for each row."""
    text = emitted(table(rows, 64), strategy)
    parts = int(re.search(r'partitioner: "(\d+),1"', text)[1]) if "partitioner:" in text else 1
    assert 1 < parts <= 64, text


def test_a19_one_destination_has_no_parts():
    text = emitted(table(1000), "partitioned-ps", "--min-shard-size=16", where=1)
    assert not re.search(r'partitioner: "[2-9]', text), text
    assert re.search(r'partitioner: "[2-9]', emitted(table(1000), "partitioned-ps", "--min-shard-size=16"))


def test_a20_random_axes_are_those_of_the_seed():
    path = harness.export(Spec("mlp_clip"))
    flags = ("--min-shard-size=16",)
    draws = [emitted(path, "random-axis-partition-all-reduce", *flags, f"--seed={seed}") for seed in (1, 1, 2, 3, 4)]
    assert draws[0] == draws[1]
    assert len(set(draws)) > 1
