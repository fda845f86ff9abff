# SPDX-License-Identifier: Apache-2.0
"""A node that no rule relates is computed once, on the whole batch: the step is that of the single device.

The models are those of test_unproved.py, which under --fallback=mean take a mean or are refused, and others in which
rows meet all other rows.
"""

import collections
import dataclasses

import compare
import harness
import numpy as np
import pytest
import tensorflow as tf
from harness import Options
from models import BATCH, Builder, Spec
from test_unproved import REFUSED, RUNS, SIZE, TIME, WORDS, data, finish, looked_up, mixed

tf1 = tf.compat.v1


# --- Rows that meet all other rows. ---


def in_batch_negatives(b: Builder):
    x, y = b.inputs([SIZE], [], y_dtype=tf.int32)
    queries = tf.tanh(tf.matmul(x, b.variable("v", [SIZE, SIZE])))
    keys = tf.matmul(x, b.variable("u", [SIZE, SIZE]))
    scores = tf.matmul(queries, keys, transpose_b=True)
    labels = tf.range(tf.shape(x)[0])
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=scores)
    weights = tf.cast(y, b.dtype) + 1.0
    loss = b.loss(tf.reduce_sum(losses * weights) / tf.reduce_sum(weights))
    tf1.train.MomentumOptimizer(0.05, 0.9).minimize(loss, name="train_op")


def hard_examples(b: Builder):
    """The loss of the worst rows of the batch."""
    x, y = b.inputs([SIZE], [], y_dtype=tf.int32)
    h = tf.matmul(tf.tanh(tf.matmul(x, b.variable("v", [SIZE, SIZE]))), b.variable("w", [SIZE, 1]))
    losses = tf.square(h[:, 0] - tf.cast(y, b.dtype))
    worst, _ = tf.nn.top_k(losses, 3)
    tf1.train.GradientDescentOptimizer(0.01).minimize(b.loss(tf.reduce_mean(worst)), name="train_op")


def turned(b: Builder):
    x, y = b.inputs([SIZE], [], y_dtype=tf.int32)
    finish(b, tf.matmul(x, b.variable("v", [SIZE, SIZE])) * x[::-1], y)


def key_queue(b: Builder):
    """Keys of the batch go to a queue in a variable; the oldest leave it."""
    x, y = b.inputs([SIZE], [], y_dtype=tf.int32)
    queue = b.constant("queue", [2 * BATCH, SIZE], 0.25)
    keys = tf.tanh(tf.matmul(x, b.variable("v", [SIZE, SIZE])))
    scores = tf.matmul(keys, queue, transpose_b=True)
    with tf1.control_dependencies([scores]):
        pushed = tf1.assign(queue, tf.concat([keys, queue], 0)[: 2 * BATCH])
    with tf1.control_dependencies([pushed]):
        loss = b.loss(tf.reduce_mean(tf.square(tf.reduce_sum(scores, 1) - tf.cast(y, b.dtype))))
        tf1.train.GradientDescentOptimizer(0.01).minimize(loss, name="train_op")


def centers(b: Builder):
    x, y = b.inputs([SIZE], [], y_dtype=tf.int32)
    table = b.constant("centers", [BATCH, SIZE], 0.5)
    rows = tf.matmul(x, b.variable("v", [SIZE, SIZE]))
    near = tf.gather(table, y)
    _, index, count = tf.unique_with_counts(y)
    share = (near - rows) / tf.cast(1 + tf.gather(count, index), b.dtype)[:, None]
    moved = tf1.scatter_sub(table, y, 0.5 * tf.stop_gradient(share))
    with tf1.control_dependencies([moved]):
        loss = b.loss(tf.reduce_mean(tf.square(rows - tf.stop_gradient(near))))
        tf1.train.GradientDescentOptimizer(0.1).minimize(loss, name="train_op")


def normalized(b: Builder):
    """Each row divided by the norm of the first one, sorted."""
    x, y = b.inputs([SIZE], [], y_dtype=tf.int32)
    h = tf.matmul(x, b.variable("v", [SIZE, SIZE]))
    finish(b, tf.sort(h, axis=0) / (1 + tf.norm(h[0])), y)


def pairs(b: Builder):
    """All distances of rows, and the hardest positive and negative of each."""
    x, y = b.inputs([SIZE], [], y_dtype=tf.int32)
    h = tf.matmul(x, b.variable("v", [SIZE, SIZE]))
    squares = tf.reduce_sum(tf.square(h), 1)
    far = squares[:, None] - 2 * tf.matmul(h, h, transpose_b=True) + squares[None]
    alike = tf.cast(tf.equal(y[:, None] % 3, y[None] % 3), b.dtype)
    positive = tf.reduce_max(far * alike, 1)
    negative = tf.reduce_min(far + 1e3 * alike, 1)
    losses = tf.maximum(positive - negative + 0.5, 0.0)
    tf1.train.AdamOptimizer(0.05, epsilon=0.01).minimize(b.loss(tf.reduce_mean(losses)), name="train_op")


def scanned(b: Builder):
    """A loop over the rows of the batch."""
    x, y = b.inputs([SIZE], [], y_dtype=tf.int32)
    w = b.variable("v", [SIZE, SIZE])
    states = tf.scan(lambda h, row: tf.tanh(tf.tensordot(h + row, w, 1)), x, initializer=tf.zeros([SIZE], b.dtype))
    finish(b, states, y)


def one_sequence(b: Builder):
    """The rows are one sequence, which goes on for the greatest of its lengths: there is one, the number of rows."""
    x, y = b.inputs([SIZE], [], y_dtype=tf.int32)
    w, count, lengths = b.variable("v", [SIZE, SIZE]), tf.shape(x)[0], tf.shape(x)[:1]
    inputs = tf.TensorArray(b.dtype, count, element_shape=[SIZE]).unstack(tf.matmul(x, b.variable("u", [SIZE, SIZE])))
    longest = tf.minimum(count, tf.maximum(1, tf.reduce_max(lengths)))

    def body(t, h, states):
        h = tf.tanh(tf.tensordot(h + inputs.read(t), w, 1))
        return t + 1, h, states.write(t, h)

    start = (0, tf.zeros([SIZE], b.dtype), tf.TensorArray(b.dtype, count, element_shape=[SIZE]))
    _, _, states = tf1.while_loop(lambda t, *_: t < longest, body, start)
    finish(b, tf.reshape(states.stack(), [-1, SIZE]), y)


def shuffled_matrix(b: Builder):
    """No rule, and no size."""
    x, y = b.inputs([SIZE, SIZE], [], y_dtype=tf.int32)
    h = tf.tensordot(x, b.variable("v", [SIZE, SIZE]), 1)
    root = tf.linalg.expm(0.1 * h)
    turned_over = tf.bitcast(tf.bitcast(root, tf.int32), b.dtype)
    finish(b, tf.reduce_sum(turned_over + h, 1), y)


def eye_labels(b: Builder):
    """The labels are as wide as the batch: a constant says so of what is computed once."""
    x, y = b.inputs([SIZE], [], y_dtype=tf.int32)
    queries = tf.tanh(tf.matmul(x, b.variable("v", [SIZE, SIZE])))
    scores = tf.matmul(queries, queries, transpose_b=True)
    labels = tf.eye(x.shape.as_list()[0] or tf.shape(x)[0], dtype=b.dtype)
    losses = tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=scores)
    weights = tf.cast(y, b.dtype) + 1.0
    loss = b.loss(tf.reduce_sum(losses * weights) / tf.reduce_sum(weights))
    tf1.train.GradientDescentOptimizer(0.05).minimize(loss, name="train_op")


def weights_of_rows(b: Builder):
    """A variable with a row for each example: its gradient is the batch where nothing but a product says so."""
    x, y = b.inputs([SIZE], [], y_dtype=tf.int32)
    w = b.variable("w", [BATCH, SIZE])
    h = tf.matmul(tf.matmul(x, x, transpose_b=True), w)
    loss = b.loss(tf.reduce_mean(tf.square(tf.reduce_sum(h, 1) - tf.cast(y, b.dtype))))
    optimizer = tf1.train.GradientDescentOptimizer(0.001)
    (grad,) = tf.gradients(loss, [w])
    (grad,), _ = tf.clip_by_global_norm(tf.tuple([grad]), 1.0)
    optimizer.apply_gradients([(grad, w)], name="train_op")


def fixed_rows(b: Builder):
    """The batch is not known but for a reshape, which joins rows."""
    x, y = b.inputs([SIZE], [], y_dtype=tf.int32)
    h = tf.reshape(x, [BATCH // 2, 2 * SIZE])
    wide = tf.matmul(h, b.variable("v", [2 * SIZE, 1]))
    loss = b.loss(tf.reduce_mean(tf.square(wide)) * tf.reduce_mean(tf.cast(y, b.dtype)))
    tf1.train.GradientDescentOptimizer(0.001).minimize(loss, name="train_op")


# --- What is computed once beside what is spread. ---


def lookups_of_both(b: Builder):
    """One table looked up twice: one gradient comes from what is computed once, the other is scaled by the batch."""
    x, y = b.inputs([], [], x_dtype=tf.int32, y_dtype=tf.int32)
    table, first = looked_up(b, x)
    second = tf.nn.embedding_lookup(table, y % WORDS)
    finish(b, mixed(first) + second, y)


def measured(b: Builder):
    """Metrics of what is computed once, and of rows that meet it."""
    x, y = b.inputs([SIZE], [], y_dtype=tf.int32)
    h = tf.matmul(x, b.variable("v", [SIZE, SIZE]))
    far = tf.abs(tf.matmul(h, h, transpose_b=True))
    _, mean = tf1.metrics.mean(far, name="mean")
    near = tf.reduce_max(far, 1) - tf.reduce_min(far, 1)
    labels = tf.cast(y % 2, tf.bool)
    _, auc = tf1.metrics.auc(labels, tf.sigmoid(tf.cumsum(near) - 2), num_thresholds=5, name="auc")
    loss = b.loss(tf.reduce_mean(far) + tf.reduce_mean(tf.square(h)))
    step = tf1.train.GradientDescentOptimizer(0.01).minimize(loss)
    tf.group(step, mean, auc, name="train_op")
    values = [tf.identity(v) for v in tf1.local_variables()]
    tf.concat([tf.reshape(v, [-1]) for v in values], 0, name="metric")


def prototypes(b: Builder):
    """Rows of two axes are compared with the means of all: the gradient of their batch norm is computed once, the batch
    norm is not."""
    x = tf1.placeholder(b.dtype, [b.spec.batch, None, SIZE], name="x")
    y = b.placeholder("y", [], tf.int32)
    rows, steps = tf.unstack(tf.shape(x))[:2]
    images = tf.reshape(x, [rows * steps, SIZE, 1, 1])
    images = tf.nn.conv2d(images, b.variable("v", [2, 1, 1, 2]), 1, "SAME")
    scale, offset = b.constant("scale", [2], 1.1, True), b.constant("offset", [2], 0.1, True)
    normal, _, _ = tf1.nn.fused_batch_norm(images, scale, offset, epsilon=0.01)
    points = tf.reshape(tf.tanh(normal), [rows * steps, 2 * SIZE])
    means = tf.reduce_mean(tf.reshape(points, [rows, steps, 2 * SIZE]), 1)
    far = tf.tile(points[:, None], [1, rows, 1]) - tf.tile(means[None], [rows * steps, 1, 1])
    near = tf.reshape(tf.nn.log_softmax(-tf.reduce_mean(tf.square(far), 2)), [rows, steps, -1])
    loss = b.loss(-tf.reduce_mean(near * tf.one_hot(y, rows, dtype=b.dtype)[:, None]))
    tf1.train.GradientDescentOptimizer(0.1).minimize(loss, name="train_op")


def checked_sizes(b: Builder):
    """Two sizes of rows of two axes, of which nothing is known but that all replicas have as many, are compared."""
    x = tf1.placeholder(b.dtype, [b.spec.batch, None, SIZE], name="x")
    y = b.placeholder("y", [], tf.int32)
    rows, steps = tf.unstack(tf.shape(x))[:2]
    words = tf.reshape(x, [rows * steps, SIZE])
    lengths = tf.reshape(tf.abs(x[:, :, 0]), [rows * steps])
    same = tf1.assert_equal(tf.shape(lengths), tf.stack([tf.shape(words)[0]]))
    with tf1.control_dependencies([same]):
        scaled = words * lengths[:, None]
    finish(b, mixed(tf.reduce_sum(tf.reshape(scaled, [rows, steps, SIZE]), 1)), y)


def recurrent(b: Builder):
    """A loop over time, with arrays, before what is computed once: the loop and that of its gradient are spread."""
    x = tf1.placeholder(b.dtype, [b.spec.batch, None, SIZE], name="x")
    y = b.placeholder("y", [], tf.int32)
    rows, steps = tf.unstack(tf.shape(x))[:2]
    w = b.variable("v", [2 * SIZE, SIZE])
    inputs = tf.TensorArray(b.dtype, steps).unstack(tf.transpose(x @ b.variable("u", [SIZE, SIZE]), [1, 0, 2]))

    def body(t, h, states):
        h = tf.tanh(tf.matmul(tf.concat([inputs.read(t), h], 1), w))
        return t + 1, h, states.write(t, h)

    start = (0, tf.zeros([rows, SIZE], b.dtype), tf.TensorArray(b.dtype, steps))
    _, _, states = tf1.while_loop(lambda t, *_: t < steps, body, start)
    finish(b, mixed(tf.reduce_sum(states.stack(), 0)), y)


def cheap_before(b: Builder):
    """A one-hot vector and a wide layer are computed once with what reads them, since what they are made of is small; so
    is the sum of each row behind it, and gradients go through all of that."""
    x, y = b.inputs([SIZE], [], y_dtype=tf.int32)
    heavy = tf.matmul(tf.tanh(tf.matmul(x, b.variable("v", [SIZE, 300]))), b.variable("u", [300, 300]))
    classes = mixed(tf.one_hot(y % WORDS, WORDS, dtype=b.dtype))
    narrow = tf.tanh(tf.matmul(x, b.variable("n", [SIZE, 2])))
    wide = mixed(tf.nn.relu(tf.matmul(narrow, b.variable("m", [2, 40]))))
    rows = tf.reduce_sum(classes, 1) + 0.01 * tf.reduce_sum(tf.square(wide), 1)
    error = tf.reduce_mean(heavy, 1) * rows - tf.cast(y, b.dtype)
    loss = b.loss(tf.reduce_mean(tf.square(error)))
    tf1.train.GradientDescentOptimizer(0.001).minimize(loss, name="train_op")


MORE = {
    "in_batch_negatives": (in_batch_negatives, "rows"),
    "hard_examples": (hard_examples, "rows"),
    "turned": (turned, "rows"),
    "key_queue": (key_queue, "rows"),
    "centers": (centers, "rows"),
    "normalized": (normalized, "rows"),
    "pairs": (pairs, "rows"),
    "scanned": (scanned, "rows"),
    "one_sequence": (one_sequence, "rows"),
    "eye_labels": (eye_labels, "rows"),
    "weights_of_rows": (weights_of_rows, "rows"),
    "fixed_rows": (fixed_rows, "rows"),
    "lookups_of_both": (lookups_of_both, "words"),
    "measured": (measured, "rows"),
    "prototypes": (prototypes, "series"),
    "checked_sizes": (checked_sizes, "series"),
    "recurrent": (recurrent, "series"),
    "cheap_before": (cheap_before, "rows"),
}
# Data that a refused model takes.
KINDS = {"global_numbers": "series", "fixed_shape": "series"}
MODELS = {
    **{name: (model, kind) for name, (model, kind, _) in RUNS.items()},
    **{name: (model, KINDS.get(name, "rows")) for name, (model, *_) in REFUSED.items()},
    **MORE,
}
STATIC = {"fixed_shape"}  # that say the batch themselves
UNKNOWN = {"weights_of_rows"}  # that a static batch has refused: the variable's rows are the batch
AFTER = {"measured": ("metric:0",)}  # what is read after each step
SPREAD = {"recurrent": 80, "cheap_before": 98}  # percent of the work, at least
NUMBERED = {"global_numbers", "fixed_shape"}

WAYS = [
    Options(2, "all-reduce", "add"),
    Options(3, "all-reduce", "collective"),
    Options(3, "ps", "add"),
    Options(4, "all-reduce", "add"),
]


def train(name, kind, batch, options):
    model, feeds = MODELS[name]
    path = compare.export(Spec(name, kind, batch), model)
    batches, steps = data(feeds), ("train_op",) * 3
    after = AFTER.get(name, ())
    want = compare.run(path, batches, steps, after=after)
    out, said = harness.rewrite(path, options)
    with harness.Session(out, options.replicas) as session:
        got = compare.advance(session, batches, steps, ("loss:0",), after)
        session.check_copies("at the end")
    for i, (ours, theirs) in enumerate(zip(got, want)):
        harness.assert_all_close(ours[1], theirs[1], f"after step {i}", 4.0)
        for a, b in zip(ours[0], theirs[0]):
            harness.assert_close(a, b, f"loss of step {i}", 4.0)
        for a, b in zip(ours[2], theirs[2]):
            harness.assert_close(a, b, f"after step {i}", 4.0)
    return said


@pytest.mark.parametrize("options", WAYS, ids=lambda o: f"{o.replicas}-{o.strategy}-{o.reduction}")
@pytest.mark.parametrize("batch", [None, BATCH], ids=["unknown", "static"])
@pytest.mark.parametrize("name", MODELS)
def test_once(name, batch, options):
    if name in NUMBERED and batch is None:
        batch = BATCH if name == "global_numbers" else None
    if name in UNKNOWN:
        batch = None
    if name == "prototypes":
        options = dataclasses.replace(options, extra=(*options.extra, "--batch-norm=sync"))
    if batch:
        options = dataclasses.replace(options, extra=(*options.extra, "--feed=x=split", "--feed=y=split"))
    if name in SPREAD:
        options = dataclasses.replace(options, extra=(*options.extra, f"--min-spread={SPREAD[name]}"))
    said = train(name, "resource", batch, options)
    assert "not distributed over the replicas" not in said, said
    assert "not proved" not in said and "value of replica 0" not in said, said
