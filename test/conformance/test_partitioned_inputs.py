# SPDX-License-Identifier: Apache-2.0
"""Graphs whose variables are in parts already (PartitionedVariable) make the same steps on several devices."""

import compare
import models_habits
import numpy as np
import pytest
import tensorflow as tf
from harness import Options
from models import BATCH, Builder, Spec

tf1 = tf.compat.v1
ROWS = 11


def table(b: Builder, name, parts, shape, axis=0):
    """A variable of the model in parts, some of them larger by one."""
    part = tf1.fixed_size_partitioner(parts, axis)
    return tf1.get_variable(
        name, shape, b.dtype, b.initializer(shape, 0.7), partitioner=part, use_resource=b.spec.kind == "resource"
    )


def lookup(strategy, parts, optimizer, combine=None):
    """A table by lookups; sometimes also as a whole, or with rows that are clipped."""

    def build(b: Builder):
        x, y = b.inputs([3], [], x_dtype=tf.int32)
        variable = table(b, "table", parts, [ROWS, 5])
        w = b.variable("w", [5, 1], 0.5)
        norm = 0.9 if combine == "clip" else None
        rows = tf1.nn.embedding_lookup(variable, x, partition_strategy=strategy, max_norm=norm)
        error = tf.squeeze(tf.matmul(tf.reduce_sum(rows, axis=1), w), [1]) - y
        loss = b.total(tf.square(error))
        if combine == "dense":
            loss += 0.1 * b.total(tf.reduce_sum(tf.matmul(tf.one_hot(x[:, 0], ROWS, dtype=b.dtype), variable) ** 2, 1))
        step = tf1.train.get_or_create_global_step()
        b.train(models_habits.OPTIMIZERS[optimizer](b, step), b.loss(loss), global_step=step)

    return build


def wide(axis):
    """A weight in parts along either axis, used as a whole."""

    def build(b: Builder):
        x, y = b.inputs([5], [])
        v = table(b, "v", 2, [5, 4], axis)
        error = tf.matmul(tf.tanh(tf.matmul(x, v)), b.variable("u", [4, 1]))[:, 0] - y
        models_habits.descend(b, b.loss(b.total(tf.square(error))))

    return build


def ids(rng, dtype):
    """The first rows ask for one part only, so a replica has no row of another."""
    x = rng.integers(0, ROWS, (BATCH, 3))
    x[: BATCH // 2] = 0
    return x.astype(np.int32), rng.normal(size=BATCH).astype(dtype)


def one_part(rng, dtype):
    """No replica has a row of the other parts."""
    return np.zeros((BATCH, 3), np.int32), rng.normal(size=BATCH).astype(dtype)


def rows(rng, dtype):
    return rng.normal(size=(BATCH, 5)).astype(dtype), rng.normal(size=BATCH).astype(dtype)


MODELS = {
    "div": (lookup("div", 3, "sgd"), ids),
    "mod": (lookup("mod", 2, "sgd"), ids),
    "div_adagrad": (lookup("div", 2, "adagrad"), ids),
    "mod_adam": (lookup("mod", 4, "adam"), ids),
    "div_momentum": (lookup("div", 4, "momentum"), ids),
    "one_part": (lookup("div", 3, "adagrad"), one_part),
    "dense": (lookup("div", 2, "adam", "dense"), ids),
    "clip": (lookup("mod", 2, "sgd", "clip"), ids),
    "rows": (wide(0), rows),
    "columns": (wide(1), rows),
}
COMBINATIONS = [
    ("resource", None, "mean", Options(2, "all-reduce", "add")),
    ("ref", None, "mean", Options(3, "all-reduce", "collective")),
    ("resource", BATCH, "sum", Options(4, "all-reduce", "collective")),
    ("ref", BATCH, "sum", Options(2, "ps", "add")),
    ("resource", None, "mean", Options(3, "ps", "collective")),
]


@pytest.mark.parametrize("kind,batch,loss,options", COMBINATIONS, ids=str)
@pytest.mark.parametrize("model", MODELS)
def test_same_steps(model, kind, batch, loss, options):
    fill, data = MODELS[model]
    path = compare.export(Spec(f"partitioned-{model}", kind, batch, loss), fill)
    compare.same_steps(path, options, models_habits.batches(data, 3))
