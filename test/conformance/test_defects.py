# SPDX-License-Identifier: Apache-2.0
"""Defects that other rewriters of training graphs have had, each by name: graft does not have them."""

import re

import compare
import harness
import models
import models_habits
import pytest
import tensorflow.compat.v1 as tf1
from harness import Options, Rewritten
from models import BATCH, Builder, Spec
from models_habits import HABITS, ROWS

tf = models.tf


def same(fill, data, options, kind="resource", batch=None, steps=("train_op",) * 3, fetches=("loss:0",), after=()):
    path = compare.export(Spec("defect", kind, batch), fill)
    return compare.same_steps(path, options, models_habits.batches(data, len(steps)), steps, fetches, after)


def same_model(name, options, kind="resource"):
    model = HABITS[name]
    return same(model.build, model.data, options, kind, None, model.steps, model.fetches, model.after)


def test_unknown_axis_zero_is_split():
    """A feed of unknown batch is handed to nobody whole."""
    with Rewritten(Spec("linear"), Options(3)) as session:
        session.check_spread()


@pytest.mark.parametrize("reduction", ["add", "collective"])
def test_sparse_and_dense_gradients_have_one_scale(reduction):
    """A sum over replicas for tables and a mean for dense layers would train the tables N times as fast."""
    same_model("sparse_sgd", Options(3, "all-reduce", reduction))
    same_model("clip_global_norm", Options(3, "all-reduce", reduction))


@pytest.mark.parametrize("strategy", ["all-reduce", "ps"])
def test_control_dependency_on_a_sparse_gradient(strategy):
    """A node that waits for the values and the indices of a sparse gradient still waits for them."""

    def fill(b: Builder):
        x, y = b.inputs([3], [], x_dtype=tf.int32)
        table = b.variable("table", [11, 5], 0.7)
        count = b.constant("count", [], 0.0)
        error = tf.reduce_sum(tf.nn.embedding_lookup(table, x), axis=[1, 2]) - y
        loss = b.loss(b.total(tf.square(error)))
        gradient = tf.gradients(loss, [table])[0]
        optimizer = tf1.train.GradientDescentOptimizer(0.1)
        with tf.control_dependencies([gradient.values, gradient.indices]):
            counted = count.assign_add(1.0)
        tf.group(optimizer.apply_gradients([(gradient, table)]), counted, name="train_op")

    same(fill, models.lookups, Options(2, strategy))


@pytest.mark.parametrize("model", ["wgan_clip", "target_network", "averaged"])
def test_several_writers_of_one_variable(model):
    same_model(model, Options(2))


def renamed(outer, fill):
    """The model inside a name scope; the names that tests fetch are made outside it."""

    def build(b: Builder):
        x, y = b.inputs([5], [1])
        with tf1.name_scope(outer), tf1.variable_scope(outer):
            loss, step = fill(b, x, y)
        tf.identity(loss, name="loss")
        tf.group(step, name="train_op")

    return build


def momentum(b: Builder, x, y):
    error = tf.matmul(x, b.variable("w", [5, 1])) + b.constant("bias", [1], 0.1, True) - y
    loss = tf.reduce_mean(tf.square(error))
    return loss, tf1.train.MomentumOptimizer(0.1, 0.9).minimize(loss)


def by_hand(b: Builder, x, y):
    """Adam without an optimizer op."""
    w = b.variable("w", [5, 1])
    m, v = b.constant("m", [5, 1], 0.0), b.constant("v", [5, 1], 0.0)
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
    g = tf.gradients(loss, [w])[0]
    next_m, next_v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * tf.square(g)
    update = next_m / (tf.sqrt(next_v) + 0.05) + 0.1 * w
    return loss, tf.group(w.assign(w - 0.05 * update), m.assign(next_m), v.assign(next_v))


NAMES = ["AdamWeightDecay/AdamWeightDecay", "save", "layer/save", "gradients", "Adam/group_deps", "init_1", "replica_1"]


@pytest.mark.parametrize("fill", [momentum, by_hand])
@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_recognised_by_its_name(name, fill):
    same(renamed(name, fill), ROWS, Options(2))


def test_train_op_behind_several_groups():
    def fill(b: Builder):
        _, _, rows = models_habits.regress(b)
        loss = b.loss(b.total(rows))
        step = tf1.train.get_or_create_global_step()
        train = tf1.train.FtrlOptimizer(0.1).minimize(loss, global_step=step, name="anything")
        tf.group(tf.group(train, name="inner"), tf.no_op(), name="train_op")

    same(fill, ROWS, Options(2))


def test_nested_loops():
    """A loop in a loop, of values that all replicas have: the rate; in a scope whose name says gradients."""

    def fill(b: Builder):
        _, _, rows = models_habits.regress(b)
        step = tf1.train.get_or_create_global_step()

        def outer(i, total):
            _, inner = tf1.while_loop(lambda j, _: j < 2, lambda j, t: (j + 1, t * 0.9), [tf.constant(0), total])
            return i + 1, inner

        with tf1.name_scope("gradients"):
            start = tf.cast(step + 1, b.dtype) * 0.05
            _, rate = tf1.while_loop(lambda i, _: i < 3, outer, [tf.constant(0), start])
        b.train(tf1.train.GradientDescentOptimizer(rate), b.loss(b.total(rows)), global_step=step)

    same(fill, ROWS, Options(2))


def test_collective_keys_are_distinct_and_devices_in_order():
    """With more than ten devices a list sorted as text would put 10 before 2."""
    out = same_model("dense_adam", Options(12, "all-reduce", "collective"))
    graph = tf1.MetaGraphDef()
    with open(out, "rb") as file:
        graph.ParseFromString(file.read())
    members = {}
    for node in graph.graph_def.node:
        if node.op == "CollectiveReduce":
            key = node.attr["instance_key"].i
            device = int(re.search(r"CPU:(\d+)$", node.device)[1])
            replica = re.match(r"replica_(\d+)/", node.name)
            assert replica is None or int(replica[1]) == device, node.name
            members.setdefault(key, []).append(device)
            assert node.attr["group_size"].i == 12
    assert members, "no collectives"
    for key, devices in members.items():
        assert sorted(devices) == list(range(12)), f"instance {key}: {devices}"


@pytest.mark.parametrize("sparse", [False, True])
def test_adagrad_v2_reads_the_gradient_behind_epsilon(sparse):
    """Its slot 3 is epsilon, its gradient slot 4."""

    def fill(b: Builder):
        x, y = b.inputs([3], [], x_dtype=tf.int32)
        table, accumulator = b.variable("table", [11, 5], 0.7), b.constant("accumulator", [11, 5], 0.1)
        error = tf.reduce_sum(tf.nn.embedding_lookup(table, x), axis=[1, 2]) - y
        gradient = tf.gradients(b.loss(b.total(tf.square(error))), [table])[0]
        scalars = {"lr": tf.constant(0.1), "epsilon": tf.constant(0.01)}
        handles = {"var": table.handle, "accum": accumulator.handle}
        ids, position = tf.unique(gradient.indices)  # as optimizers do: a row is updated once
        if sparse:
            rows = tf.math.unsorted_segment_sum(gradient.values, position, tf.shape(ids)[0])
            update = tf.raw_ops.ResourceSparseApplyAdagradV2(**handles, **scalars, grad=rows, indices=ids)
        else:
            rows = tf.math.unsorted_segment_sum(gradient.values, gradient.indices, 11)
            update = tf.raw_ops.ResourceApplyAdagradV2(**handles, **scalars, grad=rows)
        tf.group(update, name="train_op")

    same(fill, models.lookups, Options(2))


@pytest.mark.parametrize("loss", ["mean", "sum"])
def test_fetched_loss_is_the_whole_batch(loss):
    """Not that of replica 0, and not a mean of means."""
    spec = Spec("linear", loss=loss)
    with Rewritten(spec, Options(4)) as session:
        session.restart()
        harness.assert_close(session.step(session.batches[0]), session.reference.losses[0], "loss")


def test_uneven_batch_is_refused():
    """10 rows over 4 replicas: a mean of means would be another number, which --even-batches must not make."""
    with Rewritten(Spec("linear"), Options(4, extra=("--even-batches",))) as session:
        session.restart()
        x, y = session.batches[0]
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.step((x[:10], y[:10]))


@pytest.mark.parametrize("model", ["clip_value", "clip_norm", "clip_global_norm"])
def test_reduced_before_clipping(model):
    """A reduction behind the clip would be of gradients that each replica clipped by its own norm."""
    same_model(model, Options(3))
