# SPDX-License-Identifier: Apache-2.0
"""Columns of features make the same steps, and all of it is spread: sparse tensors that replicas make of their rows.

Rows without a value, rows with several, values that only one replica has: what a replica finds, and how much, differs.
"""

import dataclasses

import compare
import models_habits
import numpy as np
import pytest
import tensorflow as tf
from harness import Options
from models import BATCH, Builder, Spec

tf1 = tf.compat.v1
fc = tf.feature_column
CLASSES = 9


def columns(b: Builder):
    """Two numbers, and a column of up to three classes; -1 is none."""
    x, y = b.inputs([5], [])
    return {"near": x[:, :1], "far": x[:, 1:2], "kind": tf.cast(x[:, 2:], tf.int64)}, y


def kinds():
    return fc.categorical_column_with_identity("kind", CLASSES)


def buckets(name="near"):
    return fc.bucketized_column(fc.numeric_column(name, dtype=tf.float64), [-0.5, 0.0, 0.7])


def descend(b: Builder, error, optimizer=None):
    optimizer = optimizer or tf1.train.AdagradOptimizer(0.1, initial_accumulator_value=0.1 * b.per**2)
    b.train(optimizer, b.loss(b.total(tf.square(tf.cast(error, b.dtype)))))


def layer(b: Builder, features, *made):
    with tf1.variable_scope("layer", dtype=b.dtype):
        h = tf.cast(tf1.feature_column.input_layer(features, list(made)), b.dtype)
    return tf.matmul(tf.tanh(h), b.variable("v", [h.shape[1], 1]))[:, 0]


def embedding(of, size, combiner="mean"):
    values = np.linspace(-0.7, 0.8, 11 * size).reshape([11, size])
    first = lambda shape, dtype=None, **_: tf.constant(values[: shape[0]], dtype)
    return fc.embedding_column(of, size, combiner, initializer=first)


def embedded(combiner):
    def fill(b: Builder):
        features, y = columns(b)
        descend(b, layer(b, features, embedding(kinds(), 4, combiner), fc.numeric_column("near")) - y)

    return fill


def of_buckets(b: Builder):
    features, y = columns(b)
    crossed = fc.crossed_column([buckets("near"), buckets("far")], 7)
    descend(b, layer(b, features, embedding(buckets(), 3), embedding(crossed, 2)) - y)


def indicators(b: Builder):
    features, y = columns(b)
    descend(b, layer(b, features, fc.indicator_column(kinds()), buckets("far")) - y)


def linear(b: Builder):
    """Weights of classes, of buckets, and of classes with buckets and with each other."""
    features, y = columns(b)
    with tf1.variable_scope("linear", dtype=b.dtype):
        crossed = fc.crossed_column(["kind", buckets()], 11)
        made = [kinds(), buckets("far"), crossed, fc.numeric_column("near")]
        error = tf.cast(tf1.feature_column.linear_model(features, made), b.dtype)[:, 0] - y
    descend(b, error, tf1.train.FtrlOptimizer(0.1, initial_accumulator_value=0.1 * b.per**2))


def weighted(b: Builder):
    """A lookup by hand: a weight for each value, and rows that are counted by another column."""
    features, y = columns(b)
    kind = features["kind"]
    where = tf.where(kind >= 0)
    weights = tf.gather_nd(tf.tile(tf.abs(features["near"]) + 0.5, [1, 3]), where)
    shape = tf.shape(kind, out_type=tf.int64)
    ids = tf1.SparseTensor(where, tf.gather_nd(kind, where), shape)
    of = tf1.SparseTensor(where, weights, shape)
    table = b.variable("table", [CLASSES, 4], 0.7)
    ids, _ = tf1.sparse_fill_empty_rows(ids, tf.constant(0, tf.int64))
    of, _ = tf1.sparse_fill_empty_rows(of, tf.constant(1.0, of.dtype))
    of = tf1.SparseTensor(of.indices, tf.cast(of.values, b.dtype), of.dense_shape)
    rows = tf1.nn.embedding_lookup_sparse(table, ids, of, combiner="mean")
    descend(b, tf.matmul(tf.tanh(rows), b.variable("v", [4, 1]))[:, 0] - y)


def rows(rng, dtype):
    """The first replica has rows without a class only, and the last one classes of its own."""
    x = rng.normal(size=(BATCH, 5))
    x[:, 2:] = rng.integers(-1, CLASSES - 2, (BATCH, 3))
    x[: BATCH // 4, 2:] = -1
    x[-1, 2:] = CLASSES - 1
    x[:, 2:] += 0.25 * (x[:, 2:] >= 0)  # a cast rounds towards zero
    return x.astype(dtype), rng.normal(size=BATCH).astype(dtype)


MODELS = {
    "mean": embedded("mean"),
    "sum": embedded("sum"),
    "sqrtn": embedded("sqrtn"),
    "of_buckets": of_buckets,
    "indicators": indicators,
    "linear": linear,
    "weighted": weighted,
}
COMBINATIONS = [
    ("ref", "mean", Options(2, "all-reduce", "add")),
    ("resource", "mean", Options(2, "all-reduce", "collective")),
    ("resource", "mean", Options(3, "all-reduce", "add")),
    ("resource", "sum", Options(4, "all-reduce", "add")),
    ("resource", "mean", Options(4, "ps", "collective")),
    ("resource", "mean", Options(1, "all-reduce", "add")),
]


@pytest.mark.parametrize("kind,loss,options", COMBINATIONS, ids=str)
@pytest.mark.parametrize("model", MODELS)
def test_same_steps(model, kind, loss, options):
    # For a reference variable TensorFlow computes the gradient of a lookup in another order.
    spread = ("--min-spread=100",) if kind == "resource" else ()
    options = dataclasses.replace(options, extra=("--feed=x+y=split", *spread))
    path = compare.export(Spec(f"columns-{model}", kind, None, loss), MODELS[model])
    compare.same_steps(path, options, models_habits.batches(rows, 3))
