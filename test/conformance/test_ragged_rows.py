# SPDX-License-Identifier: Apache-2.0
"""Losses on the rows that a condition selects make the same steps, also where a replica has no such row."""

import dataclasses

import compare
import models_habits
import numpy as np
import pytest
import tensorflow as tf
from harness import Options
from models import BATCH, Builder, Spec
from models_habits import descend

tf1 = tf.compat.v1
TIME = 3


def hidden(b: Builder, x):
    return tf.tanh(tf.matmul(x, b.variable("w", [5, 4])))


def masked(b: Builder):
    """The mask is written out once for each tensor that it is put on."""
    x, y = b.inputs([5], [])
    error = tf.matmul(hidden(b, x), b.variable("v", [4, 1]))[:, 0] - y
    near, weight = tf.boolean_mask(error, y > 0), tf.boolean_mask(tf.abs(y), y > 0)
    descend(b, b.loss(b.total(weight * tf.square(near))))


def looked_up(b: Builder):
    """By row number, with layers, norms of rows and a count that is a number behind it."""
    x, y = b.inputs([5], [])
    h = hidden(b, x)
    rows = tf.where(y > 0)[:, 0]
    h, want = tf.gather(h, rows), tf.gather(y, rows)
    h = tf.nn.relu(tf.matmul(h, b.variable("u", [4, 6]))) + b.constant("c", [6], 0.1, trainable=True)
    error = tf.matmul(tf.nn.l2_normalize(h, 1), b.variable("v", [6, 1]))[:, 0] - want
    count = tf.cast(tf.size(rows), b.dtype)
    descend(b, b.loss(tf.reduce_sum(tf.square(error)) / (count if b.spec.loss == "mean" else 1.0)))


def steps_of_time(b: Builder):
    """A mask with two axes; means along both, and of some rows of the batch."""
    x, y = b.inputs([TIME, 5], [TIME], y_dtype=tf.int32)
    h = tf.tensordot(x, b.variable("w", [5, 4]), 1)
    logits = tf.boolean_mask(h, y > 0)
    rows = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=tf.boolean_mask(y, y > 0))
    descend(b, b.loss(b.total(rows)))


def elements(b: Builder):
    """The elements of a matrix that fulfil the condition."""
    x, y = b.inputs([TIME, 5], [TIME])
    h = tf.tensordot(x, b.variable("w", [5, 1]), 1)[:, :, 0]
    where = tf.where(y > 0)
    error = tf.gather_nd(h, where) - tf.gather_nd(y, where)
    descend(b, b.loss(b.total(tf.square(error))))


def of_statistics(b: Builder):
    """Rows less the mean of the selected rows, with a penalty."""
    x, y = b.inputs([5], [])
    h = tf.boolean_mask(hidden(b, x), y > 0)
    mean, variance = tf.nn.moments(h, [0])
    h = (h - mean) / tf.sqrt(variance + 0.1)
    error = tf.matmul(h, b.variable("v", [4, 1]))[:, 0] - tf.boolean_mask(y, y > 0)
    b.l2(0.01, *tf1.trainable_variables())
    descend(b, b.loss(b.total(tf.square(error))))


def if_any(b: Builder):
    """A mean of no rows is no number: it is not taken."""
    x, y = b.inputs([5], [])
    error = tf.matmul(hidden(b, x), b.variable("v", [4, 1]))[:, 0] - y
    far = tf.boolean_mask(error, y > 0)
    count = tf.size(far)
    data = tf.cond(count > 0, lambda: b.total(tf.square(far)), lambda: tf.constant(0.0, b.dtype))
    descend(b, b.loss(data + 0.1 * b.total(tf.square(error))))


def of_two_masks(b: Builder):
    """Rows on either side of a threshold, each with a mean of its own."""
    x, y = b.inputs([5], [])
    error = tf.matmul(hidden(b, x), b.variable("v", [4, 1]))[:, 0] - y
    total = b.total(tf.square(tf.boolean_mask(error + 0.0, y > 0)))
    total += 0.3 * b.total(tf.abs(tf.boolean_mask(error - 1.0, y <= 0)))
    descend(b, b.loss(total))


def depthwise(b: Builder):
    """The kernel of the filter's gradient does not write it where there are no rows."""
    x, y = b.inputs([4, 4, 8], [])
    h = tf.nn.depthwise_conv2d(tf.boolean_mask(x, y > 0), b.variable("w", [3, 3, 8, 8], 0.1), [1, 1, 1, 1], "SAME")
    descend(b, b.loss(b.total(tf.reduce_mean(tf.square(h), [1, 2, 3]))))


def block_lstm(b: Builder):
    """The same of the gradient of weights over all steps."""
    x, y = b.inputs([TIME, 4], [])
    x = tf.transpose(tf.boolean_mask(x, y > 0), [1, 0, 2])
    state = tf.zeros([tf.shape(x)[1], 8])
    peephole, bias = tf.zeros([8]), b.variable("bias", [32])
    steps = tf.constant(TIME, tf.int64)
    lstm = tf.raw_ops.BlockLSTM(
        seq_len_max=steps, x=x, cs_prev=state, h_prev=state, w=b.variable("w", [12, 32]), wci=peephole, wcf=peephole, wco=peephole, b=bias
    )
    descend(b, b.loss(b.total(tf.reduce_sum(tf.square(lstm.h), [0, 2]))))


def lstm_cell(b: Builder):
    """A kernel that fails where there are no rows."""
    x, y = b.inputs([5], [])
    x = tf.boolean_mask(x, y > 0)
    state, peephole = tf.zeros([tf.shape(x)[0], 4]), tf.zeros([4])
    w, bias = tf.ones([9, 16]) * 0.1, tf.zeros([16])
    cell = tf.raw_ops.LSTMBlockCell(x=x, cs_prev=state, h_prev=state, w=w, wci=peephole, wcf=peephole, wco=peephole, b=bias)
    error = tf.matmul(tf.stop_gradient(cell.h), b.variable("v", [4, 1]))[:, 0] - 1.0
    descend(b, b.loss(b.total(tf.square(error))))


def at_least_one(b: Builder):
    """A mean over the selected rows, or 0 of none."""
    x, y = b.inputs([5], [])
    error = tf.matmul(tf.boolean_mask(hidden(b, x), y > 0), b.variable("v", [4, 1]))[:, 0] - 1.0
    number = tf.cast(tf.maximum(tf.size(error), 1), b.dtype)
    descend(b, b.loss(tf.reduce_sum(tf.square(error)) / (number if b.spec.loss == "mean" else 1.0)))


def rows(rng, dtype):
    """Only the last rows are selected, so that the first replica has none."""
    y = -1 - np.abs(rng.normal(size=BATCH))
    y[-BATCH // 3 :] *= rng.choice([-1, 1], BATCH // 3)
    y[-1] = abs(y[-1])
    return rng.normal(size=(BATCH, 5)).astype(dtype), y.astype(dtype)


def images(rng, dtype):
    x, y = rng.normal(size=(BATCH, TIME, 5)).astype(dtype), rng.normal(size=(BATCH, TIME)).astype(dtype)
    y[: BATCH // 2] = -1
    y[-1, 0] = 1
    return x, y


def pictures(rng, dtype):
    _, y = rows(rng, dtype)
    return rng.normal(size=(BATCH, 4, 4, 8)).astype(dtype), y


def sequences(rng, dtype):
    _, y = rows(rng, dtype)
    return rng.normal(size=(BATCH, TIME, 4)).astype(dtype), y


def labels(rng, dtype):
    x, y = images(rng, dtype)
    return x, np.where(y > 0, rng.integers(1, 4, y.shape), 0).astype(np.int32)


MODELS = {
    "masked": (masked, rows),
    "looked_up": (looked_up, rows),
    "steps_of_time": (steps_of_time, labels),
    "elements": (elements, images),
    "of_statistics": (of_statistics, rows),
    "if_any": (if_any, rows),
    "of_two_masks": (of_two_masks, rows),
    "depthwise": (depthwise, pictures),
    "block_lstm": (block_lstm, sequences),
    "lstm_cell": (lstm_cell, rows),
    "at_least_one": (at_least_one, rows),
}
COMBINATIONS = [
    ("ref", None, "mean", Options(2, "all-reduce", "collective")),
    ("resource", BATCH, "mean", Options(3, "all-reduce", "add")),
    ("resource", None, "sum", Options(4, "all-reduce", "collective")),
    ("ref", BATCH, "sum", Options(2, "ps", "add")),
    ("resource", None, "mean", Options(4, "ps", "collective")),
    ("resource", None, "mean", Options(1, "all-reduce", "add")),
]


@pytest.mark.parametrize("kind,batch,loss,options", COMBINATIONS, ids=str)
@pytest.mark.parametrize("model", MODELS)
def test_same_steps(model, kind, batch, loss, options):
    fill, data = MODELS[model]
    if batch and model == "steps_of_time":
        batch = None  # a shape that is a product of numbers says nothing of its factors
    # Nothing says that feeds have equally many rows, or that static ones are the batch, which only meet by row number.
    options = dataclasses.replace(options, extra=("--feed=x=split", "--feed=y=split") if batch else ("--feed=x+y=split",))
    path = compare.export(Spec(f"ragged-{model}", kind, batch, loss), fill)
    compare.same_steps(path, options, models_habits.batches(data, 3))
