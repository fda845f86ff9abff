# SPDX-License-Identifier: Apache-2.0
"""Under --fallback=mean, what no rule relates runs and leaves all copies of variables equal, or is refused by the name of its node.

Each model has something that graft cannot prove. RUNS are warned of, make three steps in TensorFlow, and the copies of
every variable are equal after them. REFUSED could not run, or would let copies drift apart.
"""

import dataclasses

import compare
import harness
import models_habits
import numpy as np
import pytest
import tensorflow as tf
from harness import GraftError, Options
from models import BATCH, Builder, Spec

tf1 = tf.compat.v1
TIME, SIZE, WORDS = 4, 5, 11


def mixed(rows):
    """Each row meets those before it, which no replica has all of."""
    return tf.cumsum(rows, axis=0)


def looked_up(b: Builder, x):
    table = b.variable("table", [WORDS, SIZE])
    return table, tf.nn.embedding_lookup(table, x)


def finish(b: Builder, outputs, y, optimizer=None):
    w = b.variable("w", [SIZE, 1])
    error = tf.reshape(tf.matmul(outputs, w), [-1]) - tf.cast(y, b.dtype)
    loss = b.loss(tf.reduce_mean(tf.square(error)))
    optimizer = optimizer or tf1.train.GradientDescentOptimizer(0.1)
    return optimizer.minimize(loss, name="train_op")


# --- Gradients of rows by number: the numbers and the rows of all replicas, or of none. ---


def sparse(optimizer):
    def build(b: Builder):
        x, y = b.inputs([], [], x_dtype=tf.int32, y_dtype=tf.int32)
        finish(b, mixed(looked_up(b, x)[1]), y, optimizer())

    return build


def unknown_sizes(b: Builder):
    """Neither the rows nor the positions of a batch have a size that is known."""
    x = tf1.placeholder(tf.int32, [None, None], name="x")
    y = b.placeholder("y", [], tf.int32)
    rows = tf.reshape(looked_up(b, x)[1], [-1, SIZE])
    length = tf.shape(x)[1]
    whole = tf.reshape(mixed(rows), tf.stack([tf.shape(x)[0], length, SIZE]))
    finish(b, tf.reduce_sum(whole, 1), y, tf1.train.AdamOptimizer(0.05, epsilon=0.01))


def turned_numbers(b: Builder):
    """A lookup in the order of time, from the last example on: the numbers of rows are not together."""
    x, y = b.inputs([TIME], [], x_dtype=tf.int32, y_dtype=tf.int32)
    flat = tf.reshape(tf.transpose(tf.reverse(x, [0])), [-1])
    rows = tf.reshape(looked_up(b, flat)[1], [TIME, -1, SIZE])
    finish(b, mixed(tf.reduce_sum(rows, 0)), y)


# --- Optimizers of plain assignments. ---


def assigned(adam):
    def build(b: Builder):
        x, y = b.inputs([SIZE], [], y_dtype=tf.int32)
        w = b.variable("v", [SIZE, SIZE])
        gradients, variables, updates = None, [w], []
        h = mixed(tf.tanh(tf.matmul(x, w)))
        out = b.variable("out", [SIZE, 1])
        variables.append(out)
        loss = b.loss(tf.reduce_mean(tf.square(tf.matmul(h, out)[:, 0] - tf.cast(y, b.dtype))))
        gradients = tf.gradients(loss, variables)
        if adam:
            gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
        for variable, gradient in zip(variables, gradients):
            name = variable.op.name
            if not adam:
                updates.append(tf1.assign(variable, variable - 0.1 * gradient))
                continue
            m, v = (b.constant(f"{name}_{slot}", variable.shape.as_list(), 0.0) for slot in "mv")
            next_m = 0.9 * m + 0.1 * gradient
            next_v = 0.999 * v + 0.001 * tf.square(gradient)
            step = next_m / (tf.sqrt(next_v) + 1e-3) + 0.01 * variable
            updates += [tf1.assign(variable, variable - 0.05 * step), tf1.assign(m, next_m), tf1.assign(v, next_v)]
        tf.group(*updates, name="train_op")

    return build


def moving_average(b: Builder):
    x, y = b.inputs([SIZE], [], y_dtype=tf.int32)
    average = b.constant("average", [SIZE], 0.5)
    step = tf1.assign_sub(average, 0.1 * (average - mixed(x)[-1]))
    with tf1.control_dependencies([step]):
        finish(b, x, y)


# --- Numbers of rows. ---


def own_numbers(b: Builder):
    """Rows by numbers that are made of the sizes of a replica: what each looks up is there."""
    x, y = b.inputs([TIME, SIZE], [], y_dtype=tf.int32)
    h = tf.reshape(tf.tensordot(x, b.variable("v", [SIZE, SIZE]), 1), [-1, SIZE])
    at = tf.range(tf.shape(x)[0]) * TIME + y % TIME
    finish(b, tf.gather(h, at), y)


def global_numbers(b: Builder):
    """The same, with numbers of the rows of the whole batch in a constant."""
    x, y = b.inputs([TIME, SIZE], [], y_dtype=tf.int32)
    h = tf.reshape(tf.tensordot(x, b.variable("v", [SIZE, SIZE]), 1), [-1, SIZE])
    finish(b, tf.gather(h, tf.constant(np.arange(BATCH) * TIME, tf.int32) + y % TIME, name="find"), y)


def fed_numbers(b: Builder):
    x, y = b.inputs([SIZE], [], y_dtype=tf.int32)
    h = tf.matmul(x, b.variable("v", [SIZE, SIZE]))
    finish(b, tf.gather(h, y, name="find"), y)


def fed_pairs(b: Builder):
    x, y = b.inputs([SIZE], [], y_dtype=tf.int32)
    h = tf.matmul(x, b.variable("v", [SIZE, SIZE]))
    picked = tf.gather_nd(h, tf.stack([y, y % SIZE], 1), name="find")
    finish(b, x * picked[:, None], y)


def scattered(b: Builder):
    x, y = b.inputs([SIZE], [], y_dtype=tf.int32)
    h = tf.matmul(x, b.variable("v", [SIZE, SIZE]))
    finish(b, tf.scatter_nd(y[:, None], h, tf.shape(h), name="find"), y)


def segments(b: Builder):
    x, y = b.inputs([SIZE], [], y_dtype=tf.int32)
    h = tf.matmul(x, b.variable("v", [SIZE, SIZE]))
    finish(b, tf.math.unsorted_segment_sum(h, y, tf.shape(h)[0], name="find"), y)


def labels_of_rows(b: Builder):
    """Every row is compared with all of the batch, by labels that number these."""
    x, y = b.inputs([SIZE], [], y_dtype=tf.int32)
    h = tf.matmul(x, b.variable("v", [SIZE, SIZE]))
    near = tf.matmul(h, h, transpose_b=True)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=near, name="find")
    tf1.train.GradientDescentOptimizer(0.1).minimize(b.loss(tf.reduce_mean(losses)), name="train_op")


# --- Fixed sizes. ---


def fixed_rows(take):
    def build(b: Builder):
        x, y = b.inputs([SIZE], [], y_dtype=tf.int32)
        h = mixed(tf.matmul(x, b.variable("v", [SIZE, SIZE])))
        finish(b, h + tf.reduce_sum(tf.reshape(take(h), [-1, SIZE]), 0), y)

    return build


def own_loop(b: Builder):
    """As many steps as the longest row of all."""
    x, y = b.inputs([TIME, SIZE], [], y_dtype=tf.int32)
    w = b.variable("v", [SIZE, SIZE])

    def body(i, h, out):
        return i + 1, tf.tanh(tf.matmul(h, w)), out.write(i, h)

    steps = tf.TensorArray(b.dtype, size=0, dynamic_size=True)
    start = [tf.constant(0), tf.matmul(x[:, 0], w), steps]
    out = tf1.while_loop(lambda i, h, out: tf.reduce_any(i < y % TIME + 1), body, start)[2]
    near = tf.multiply(out.stack(), tf.transpose(x, [1, 0, 2]), name="find")
    finish(b, tf.reduce_sum(near, 0), y)


# --- What is written. ---


def integer_state(b: Builder):
    x, y = b.inputs([SIZE], [], y_dtype=tf.int32)
    last = tf1.get_variable("last", [], tf.int32, initializer=tf1.zeros_initializer())
    with tf1.control_dependencies([tf1.assign(last, tf.cumsum(y)[-1], name="find")]):
        finish(b, x, y)


def local_branch(b: Builder):
    x, y = b.inputs([SIZE], [], y_dtype=tf.int32)
    seen = b.constant("seen", [], 0.0)

    def write():
        return tf1.assign_add(seen, 1.0)

    positive = tf.cond(tf.cumsum(x[:, 0])[0] > 0, write, lambda: seen * 1.0)
    with tf1.control_dependencies([positive]):
        finish(b, x, y)


# By name: the model, and whether x are words, of how many sizes.
RUNS = {
    "sparse_descent": (sparse(lambda: tf1.train.GradientDescentOptimizer(0.1)), "words", None),
    "sparse_adam": (sparse(lambda: tf1.train.AdamOptimizer(0.05, epsilon=0.01)), "words", None),
    "sparse_adagrad": (sparse(lambda: tf1.train.AdagradOptimizer(0.05)), "words", BATCH),
    "unknown_sizes": (unknown_sizes, "sentences", None),
    "turned_numbers": (turned_numbers, "sentences", None),
    "assigned": (assigned(False), "rows", None),
    "assigned_adam": (assigned(True), "rows", None),
    "moving_average": (moving_average, "rows", None),
    "own_numbers": (own_numbers, "series", None),
    "own_loop": (own_loop, "series", None),  # each replica takes the turns of the longest row of all
}
REFUSED = {
    "global_numbers": (global_numbers, "series", BATCH, "by indices that may be out of its range"),
    "fed_numbers": (fed_numbers, "rows", None, "by indices that may be out of its range"),
    "fed_pairs": (fed_pairs, "rows", None, "by indices that may be out of its range"),
    "scattered": (scattered, "rows", None, "by indices that may be out of its range"),
    "segments": (segments, "rows", None, "by indices that may be out of its range"),
    "labels_of_rows": (labels_of_rows, "rows", None, "by indices that may be out of its range"),
    "slice": (fixed_rows(lambda h: tf.slice(h, [0, 0], [9, SIZE], name="find")), "rows", None, "a fixed number of rows"),
    "one_row": (fixed_rows(lambda h: tf.strided_slice(h, [9], [10], shrink_axis_mask=1, name="find")), "rows", None, "a fixed number of rows"),
    "split": (fixed_rows(lambda h: tf.split(h, 4, name="find")[0]), "rows", None, "a multiple of the number of parts"),
    "unstack": (fixed_rows(lambda h: tf.unstack(h, BATCH, name="find")[0]), "rows", None, "unstacks the rows of the whole batch"),
    "integer_state": (integer_state, "rows", None, "the copies of variable 'last' would not stay equal"),
    "local_branch": (local_branch, "rows", None, "the copies of variable 'seen' would not stay equal"),
}


def data(kind):
    def make(rng, dtype):
        x = {
            "words": lambda: rng.integers(0, WORDS, BATCH),
            "sentences": lambda: rng.integers(0, WORDS, (BATCH, TIME)),
            "rows": lambda: rng.normal(size=(BATCH, SIZE)).astype(dtype),
            "series": lambda: rng.normal(size=(BATCH, TIME, SIZE)).astype(dtype),
        }[kind]()
        return x, rng.integers(0, BATCH, BATCH).astype(np.int32)

    return models_habits.batches(make, 3)


WAYS = [
    Options(2, "all-reduce", "add", ("--fallback=mean",)),
    Options(3, "all-reduce", "collective", ("--fallback=mean",)),
    Options(2, "ps", "add", ("--verify-output", "--fallback=mean")),
    Options(3, "all-reduce", "add", ("--verify-output", "--fallback=mean")),
]


@pytest.mark.parametrize("options", WAYS, ids=lambda o: f"{o}"[:60])
@pytest.mark.parametrize("kind", ["ref", "resource"])
@pytest.mark.parametrize("name", RUNS)
def test_runs(name, kind, options):
    model, feeds, batch = RUNS[name]
    path = compare.export(Spec(name, kind, batch), model)
    out, said = harness.rewrite(path, options)
    assert "not proved" in said, said
    with harness.Session(out, options.replicas) as session:
        rows = compare.advance(session, data(feeds), ("train_op",) * 3, (), ())
        session.check_copies("at the end")
    moved = [n for n, value in rows[-1][1].items() if not np.array_equal(value, rows[0][1][n])]
    assert sorted(moved) == sorted(rows[0][1]), "a variable that no step writes"


@pytest.mark.parametrize("options", WAYS, ids=lambda o: f"{o}"[:60])
@pytest.mark.parametrize("name", REFUSED)
def test_refused(name, options):
    model, _, batch, why = REFUSED[name]
    if "state" in name or "branch" in name:
        if options.strategy == "ps":
            pytest.skip("one variable has no copies")
    if batch:
        options = dataclasses.replace(options, extra=(*options.extra, "--feed=x=split", "--feed=y=split"))
    path = compare.export(Spec(name, "resource", batch), model)
    with pytest.raises(GraftError, match=f"error: node '(?:cond/AssignAdd|find)[^']*': [^\n]*{why}"):
        harness.rewrite(path, options)


@pytest.mark.parametrize("reduction", ["add", "collective"])
@pytest.mark.parametrize("name", ["sparse_descent", "turned_numbers", "assigned"])
def test_mean(name, reduction):
    """A step with a warning does what the warning says: plain descent by the mean of the replicas' gradients."""
    model, feeds, batch = RUNS[name]
    path, replicas = compare.export(Spec(name, "resource", batch), model), 2
    x, y = data(feeds)[0]
    share = BATCH // replicas
    parts = [(x[i * share : (i + 1) * share], y[i * share : (i + 1) * share]) for i in range(replicas)]
    each = [compare.run(path, [part], ["train_op"])[-1][1] for part in parts]
    out, _ = harness.rewrite(path, Options(replicas, "all-reduce", reduction, ("--fallback=mean",)))
    with harness.Session(out, replicas) as session:
        got = compare.advance(session, [(x, y)], ["train_op"], (), ())[-1][1]
        session.check_copies("after the step")
    want = {name: np.mean([values[name] for values in each], axis=0) for name in got}
    harness.assert_all_close(got, want, "after a step")
