# SPDX-License-Identifier: Apache-2.0
"""Training steps with loops of version 1 control flow. `test_loops.py` runs them.

As in `models_habits.py` every model is a function that fills a graph, with the same names (x, y, loss, init). A third feed
is `lengths`, one number for each row, or a scalar `count`.
"""

from typing import Dict

import models
import numpy as np
import tensorflow.compat.v2 as tf
from models import BATCH, Builder, tf1
from tensorflow.python.keras.layers.legacy_rnn import rnn_cell_impl as cells
from models_habits import Habit, descend

tf1.disable_control_flow_v2()

STEPS, WIDTH = 4, 3


def regress(b: Builder, h, y, width):
    """The last layer and the training op."""
    error = tf.matmul(h, b.variable("v", [width, 1])) - y
    descend(b, b.loss(b.total(tf.square(error))))


def iterated(b: Builder):
    """A fixed number of iterations of one layer: the weights are read outside and their gradient adds up inside."""
    x, y = b.inputs([5], [1])
    w, bias = b.variable("w", [5, 5], 0.4), b.constant("b", [5], 0.1, trainable=True)
    _, h = tf1.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w) + bias)), (0, x))
    regress(b, h, y, 5)


def iterated_reading(b: Builder):
    """The variable is read in every iteration."""
    x, y = b.inputs([5], [1])
    w = b.variable("w", [5, 5], 0.4)
    _, h = tf1.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, 1.0 * w))), (0, x))
    regress(b, h, y, 5)


def iterated_from_zeros(b: Builder):
    """The state starts from zeros of the batch's size, and every iteration adds the rows."""
    x, y = b.inputs([5], [1])
    w = b.variable("w", [5, 5], 0.4)
    start = tf.zeros(tf.stack([tf.shape(x)[0], 5]), b.dtype)
    _, h = tf1.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w) + x)), (0, start))
    regress(b, h, y, 5)


def counted(b: Builder):
    """The number of iterations is fed."""
    x, y = b.inputs([5], [1])
    count = tf1.placeholder(tf.int32, [], name="lengths")
    w = b.variable("w", [5, 5], 0.4)
    _, h = tf1.while_loop(lambda i, h: i < count, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w) + x)), (0, x))
    regress(b, h, y, 5)


def gated(b: Builder):
    """Parts of which the last has the size that is left; what goes round begins with equal rows."""
    x, y = b.inputs([5], [1])
    w = b.variable("w", [5, 10], 0.4)
    start = tf.fill(tf.stack([tf.shape(x)[0], 5]), tf.constant(0.2, b.dtype))

    def body(i, h):
        gate, part = tf.split(tf.matmul(h, w), [5, -1], axis=1)
        return i + 1, tf.sigmoid(gate) * part + x

    _, h = tf1.while_loop(lambda i, h: i < 3, body, (0, start))
    regress(b, h, y, 5)


def nested(b: Builder):
    x, y = b.inputs([5], [1])
    w, u = b.variable("w", [5, 5], 0.4), b.variable("u", [5, 5], 0.4)

    def outer(i, h):
        _, h = tf1.while_loop(lambda j, h: j < 2, lambda j, h: (j + 1, tf.tanh(tf.matmul(h, w))), (0, h))
        return i + 1, h + tf.matmul(h, u)

    _, h = tf1.while_loop(lambda i, h: i < 2, outer, (0, x))
    regress(b, h, y, 5)


def branching(b: Builder):
    """A conditional in a loop."""
    x, y = b.inputs([5], [1])
    w, u = b.variable("w", [5, 5], 0.4), b.variable("u", [5, 5], 0.4)

    def body(i, h):
        h = tf1.cond(tf.equal(i % 2, 0), lambda: tf.tanh(tf.matmul(h, w)), lambda: tf.matmul(h, u) + x)
        return i + 1, h

    _, h = tf1.while_loop(lambda i, h: i < 3, body, (0, x))
    regress(b, h, y, 5)


def normalised(b: Builder):
    """Ops in the loop whose gradients read shapes: a mean and a broadcast along the features."""
    x, y = b.inputs([5], [1])
    w = b.variable("w", [5, 5], 0.4)
    gain = b.constant("gain", [5], 1.2, trainable=True)

    def body(i, h):
        h = tf.matmul(h, w)
        return i + 1, gain * (h - tf.reduce_mean(h, axis=1, keepdims=True)) + x

    _, h = tf1.while_loop(lambda i, h: i < 3, body, (0, x))
    regress(b, h, y, 5)


def recurrent(b: Builder):
    """A cell over the steps by hand: tensor arrays in and out."""
    x, y = b.inputs([STEPS, 2], [1])
    kernel = b.variable("kernel", [2 + WIDTH, WIDTH])
    steps = tf.transpose(x, [1, 0, 2])
    source = tf.TensorArray(b.dtype, STEPS).unstack(steps)
    result = tf.TensorArray(b.dtype, STEPS)
    start = tf.zeros(tf.stack([tf.shape(x)[0], WIDTH]), b.dtype)

    def body(t, h, result):
        h = tf.tanh(tf.matmul(tf.concat([source.read(t), h], 1), kernel))
        return t + 1, h, result.write(t, h)

    _, _, result = tf1.while_loop(lambda t, *_: t < STEPS, body, (0, start, result))
    outputs = tf.transpose(result.stack(), [1, 0, 2])
    regress(b, tf.reduce_mean(outputs, axis=1), y, WIDTH)


def seeded(b: Builder):
    """The variables of a cell begin with the same values in every graph."""
    start = tf1.random_uniform_initializer(-0.6, 0.6, seed=3, dtype=b.dtype)
    return tf1.variable_scope("cell", initializer=start)


def dynamic(cell, lengths=False, time=None):
    """tf.nn.dynamic_rnn, with or without the length of every row; `time` None: the number of steps is fed, too."""

    def build(b: Builder):
        x, y = b.inputs([time, 2], [1])
        length = b.placeholder("lengths", [], tf.int32) if lengths else None
        with seeded(b):
            outputs, state = tf1.nn.dynamic_rnn(cell(WIDTH, dtype=b.dtype), x, length, dtype=b.dtype)
        last = state.h if hasattr(state, "h") else state
        regress(b, last + tf.reduce_mean(outputs, axis=1), y, WIDTH)

    return build


def paired(b: Builder):
    """Two sequences of each example are rows of one loop, joined on each replica: a siamese network. It begins with zeros; its
    last state is taken apart, and nobody reads the other and the outputs, for which no loop is worth computing once."""
    x, y = b.inputs([STEPS, 2], [1])
    with seeded(b):
        both = tf.concat([x, tf.reverse(x, [1])], 0)
        _, state = tf1.nn.dynamic_rnn(cells.LSTMCell(WIDTH, dtype=b.dtype), both, dtype=b.dtype)
    left, right = tf.split(state.h, 2)
    regress(b, left * tf.tanh(right) + right, y, WIDTH)


def projected(b: Builder):
    """One layer for every step of every row, where the number of steps is fed."""
    x, y = b.inputs([None, 2], [1])
    with seeded(b):
        outputs, _ = tf1.nn.dynamic_rnn(cells.GRUCell(WIDTH, dtype=b.dtype), x, dtype=b.dtype)
    outputs = tf.tensordot(outputs, b.variable("w", [WIDTH, WIDTH], 0.4), 1)
    regress(b, tf.reduce_mean(tf.tanh(outputs), axis=1), y, WIDTH)


def unrolled(cell):
    def build(b: Builder):
        x, y = b.inputs([STEPS, 2], [1])
        with seeded(b):
            outputs, _ = tf1.nn.static_rnn(cell(WIDTH, dtype=b.dtype), tf.unstack(x, axis=1), dtype=b.dtype)
        regress(b, tf.add_n(outputs), y, WIDTH)

    return build


def scanned(b: Builder):
    x, y = b.inputs([STEPS, 5], [1])
    w = b.variable("w", [5, 5], 0.4)
    steps = tf.transpose(x, [1, 0, 2])
    h = tf.scan(lambda h, row: tf.tanh(tf.matmul(h, w) + row), steps, tf.zeros_like(steps[0]))
    regress(b, tf.reduce_mean(h, axis=0), y, 5)


def folded(b: Builder):
    x, y = b.inputs([STEPS, 5], [1])
    w = b.variable("w", [5, 5], 0.4)
    steps = tf.transpose(x, [1, 0, 2])
    h = tf.foldl(lambda h, row: tf.tanh(tf.matmul(h, w) + row), steps)
    regress(b, h, y, 5)


def mapped(b: Builder):
    """Over the steps, not over the batch."""
    x, y = b.inputs([STEPS, 5], [1])
    w = b.variable("w", [5, 5], 0.4)
    h = tf.map_fn(lambda row: tf.tanh(tf.matmul(row, w)), tf.transpose(x, [1, 0, 2]))
    regress(b, tf.reduce_sum(h, axis=0), y, 5)


def scheduled(b: Builder):
    """A loop that no row has a part in: it stays once."""
    x, y = b.inputs([5], [1])
    step = tf1.train.get_or_create_global_step()
    _, rate = tf1.while_loop(lambda i, r: i < tf.minimum(step, 3), lambda i, r: (i + 1, r * 0.7), (tf.cast(0, tf.int64), 0.1 / b.per))
    error = tf.matmul(x, b.variable("v", [5, 1])) - y
    b.train(tf1.train.GradientDescentOptimizer(tf.cast(rate, b.dtype)), b.loss(b.total(tf.square(error))), global_step=step)


def longest(b: Builder):
    """As many iterations as the longest row asks for; shorter rows keep their state."""
    x, y = b.inputs([5], [1])
    lengths = b.placeholder("lengths", [], tf.int32)
    w = b.variable("w", [5, 5], 0.4)
    most = tf.reduce_max(lengths)

    def body(i, h):
        return i + 1, tf1.where(i < lengths, tf.tanh(tf.matmul(h, w) + x), h)

    _, h = tf1.while_loop(lambda i, h: i < most, body, (0, x))
    regress(b, h, y, 5)


def decoded(b: Builder):
    """Until all rows have ended, each after as many turns as it asks for: a row that has ended keeps its state. A value
    computed from all turns tells how many there were."""
    x, y = b.inputs([5], [1])
    lengths = b.placeholder("lengths", [], tf.int32)
    w = b.variable("w", [5, 5], 0.4)

    def body(t, h, ended, states):
        h = tf1.where(ended, h, tf.tanh(tf.matmul(h, w) + x))
        return t + 1, h, tf.logical_or(ended, t + 1 >= lengths), states.write(t, h)

    states = tf.TensorArray(b.dtype, 0, dynamic_size=True)
    _, h, _, states = tf1.while_loop(
        lambda t, h, ended, states: tf.logical_not(tf.reduce_all(ended)), body, (0, x, tf.equal(lengths, 0), states)
    )
    regress(b, h + tf.reduce_mean(states.stack(), axis=0), y, 5)


def choosing(b: Builder):
    """Until all rows have ended; what a turn reads is chosen by whether they have, and the gradient takes from a stack
    which it was."""
    x, y = b.inputs([5], [1])
    lengths = b.placeholder("lengths", [], tf.int32)
    w, u = b.variable("w", [5, 5], 0.4), b.variable("u", [5, 5], 0.5)
    tokens, none = tf.matmul(x, u), tf.zeros([5], b.dtype)

    def body(t, h, token, ended):
        h = tf1.where(ended, h, tf.tanh(tf.matmul(h, w) + token))
        ended = tf.logical_or(ended, t + 1 >= lengths)
        token = tf1.cond(tf.reduce_all(ended), lambda: x * none, lambda: tokens * tf.cast(t + 2, b.dtype))
        return t + 1, h, token, ended

    start = (0, x, tokens, tf.zeros_like(lengths, tf.bool))
    _, h, _, _ = tf1.while_loop(lambda t, h, token, ended: tf.logical_not(tf.reduce_all(ended)), body, start)
    regress(b, h, y, 5)


def several_at_once(b: Builder):
    """Every turn gives two steps of each row, which are laid apart: their number follows from that of the turns."""
    x, y = b.inputs([6], [1])
    lengths = b.placeholder("lengths", [], tf.int32)
    w = b.variable("w", [6, 6], 0.4)

    def body(t, h, ended, states):
        h = tf.tanh(tf.matmul(h, w) + x)
        return t + 1, h, tf.logical_or(ended, t + 1 >= lengths), states.write(t, h)

    start = (0, x, tf.zeros_like(lengths, tf.bool), tf.TensorArray(b.dtype, 0, dynamic_size=True))
    *_, states = tf1.while_loop(lambda t, h, ended, states: tf.logical_not(tf.reduce_all(ended)), body, start)
    steps = tf.reshape(tf.transpose(states.stack(), [1, 0, 2]), tf.stack([tf.shape(x)[0], -1, 3]))
    steps = tf.tanh(tf.tensordot(steps, b.variable("u", [3, 3], 0.4), 1))
    regress(b, tf.reduce_mean(steps, axis=1), y, 3)


def ended(b: Builder):
    """The same where nothing but the condition asks which rows have ended, and there are at most so many turns."""
    x, y = b.inputs([5], [1])
    lengths = b.placeholder("lengths", [], tf.int32)
    w = b.variable("w", [5, 5], 0.4)
    _, h, _ = tf1.while_loop(
        lambda t, h, ended: tf.logical_not(tf.reduce_all(ended)),
        lambda t, h, ended: (t + 1, tf.tanh(tf.matmul(h, w) + x), tf.logical_or(ended, t + 1 >= 2 * lengths)),
        (0, x, tf.zeros_like(lengths, tf.bool)),
        maximum_iterations=5,
    )
    regress(b, h, y, 5)


# --- What is not proved. ---


def mixing(b: Builder):
    """Every iteration subtracts the mean of the batch: replicas would have to meet in the loop."""
    x, y = b.inputs([5], [1])
    w = b.variable("w", [5, 5], 0.4)

    def body(i, h):
        return i + 1, tf.tanh(tf.matmul(h - tf.reduce_mean(h, axis=0), w))

    _, h = tf1.while_loop(lambda i, h: i < 3, body, (0, x))
    regress(b, h, y, 5)


def converging(b: Builder):
    """As many iterations as some row of the batch needs."""
    x, y = b.inputs([5], [1])
    w = b.variable("w", [5, 5], 0.4)
    h = tf1.while_loop(
        lambda h: tf.reduce_any(tf.abs(h) > 0.3), lambda h: 0.5 * tf.tanh(tf.matmul(h, w)), [x], maximum_iterations=6
    )
    regress(b, h, y, 5)


def over_rows(b: Builder):
    """One iteration for each row of the batch, with a state."""
    x, y = b.inputs([5], [1])
    w = b.variable("w", [5], 0.4)
    state = tf.foldl(lambda s, row: tf.tanh(s + row * w), x, tf.zeros([5], b.dtype))
    regress(b, x * state, y, 5)


def growing(b: Builder):
    """Every iteration makes the tensor longer."""
    x, y = b.inputs([5], [1])
    w = b.variable("w", [5, 5], 0.4)
    shapes = (tf.TensorShape([]), tf.TensorShape([None, 5]))
    _, h = tf1.while_loop(
        lambda i, h: i < 3, lambda i, h: (i + 1, tf.concat([tf.tanh(tf.matmul(h, w)), h], 0)), (0, x), shapes
    )
    regress(b, x + tf.reduce_mean(h, axis=0), y, 5)


def printing(b: Builder):
    """Every replica would print the value of a print in a loop."""
    x, y = b.inputs([5], [1])
    w = b.variable("w", [5, 5], 0.4)

    def body(i, h):
        return i + 1, tf1.Print(tf.tanh(tf.matmul(h, w)), [i], "iteration")

    _, h = tf1.while_loop(lambda i, h: i < 3, body, (0, x))
    regress(b, h, y, 5)


ROWS = models.regression(5, 1)


def sequences(features):
    return lambda rng, dtype: (
        models.ramp(rng, (STEPS, features)).astype(dtype),
        rng.standard_normal((BATCH, 1)).astype(dtype),
    )


def with_lengths(features):
    def make(rng, dtype):
        x, y = (ROWS if features is None else sequences(features))(rng, dtype)
        return x, y, rng.integers(1, STEPS, BATCH).astype(np.int32)

    return make


def sorted_lengths(features):
    """The replicas have rows of quite different lengths."""

    def make(rng, dtype):
        x, y = models.regression(features, 1)(rng, dtype)
        return x, y, np.linspace(1, STEPS, BATCH).astype(np.int32)

    return make


def counts(rng, dtype):
    return *ROWS(rng, dtype), np.int32(rng.integers(1, 4))


def attended(b: Builder):
    """One recurrence over what another gave, by attention of a query that is repeated as often as the sequence is long:
    sizes in a matrix, rows cut out by the counter of the loop, the gradient of one loop in the array of the other."""
    x, y = tf1.placeholder(b.dtype, [b.spec.batch, None, WIDTH], name="x"), b.placeholder("y", [1])
    rows, steps = tf.unstack(tf.shape(x))[:2]
    w, u, query = b.variable("w", [WIDTH, WIDTH], 0.4), b.variable("u", [WIDTH, WIDTH], 0.5), b.variable("q", [WIDTH, WIDTH], 0.6)

    def run(inputs, weights, gates=None):
        sequence = tf.TensorArray(b.dtype, steps).unstack(tf.transpose(inputs, [1, 0, 2]))

        def body(t, h, states):
            new = tf.tanh(tf.matmul(h, weights) + sequence.read(t))
            new = new if gates is None else new * gates[:, t, :]
            return t + 1, new, states.write(t, new)

        start = (0, tf.zeros([rows, WIDTH], b.dtype), tf.TensorArray(b.dtype, steps))
        _, last, states = tf1.while_loop(lambda t, *_: t < steps, body, start)
        return last, tf.transpose(states.stack(), [1, 0, 2])

    _, first = run(x, w)
    repeated = tf.reshape(tf.tile(tf.matmul(x[:, 0], query), [1, steps]), [rows, steps, WIDTH])
    scores = tf.reduce_sum(tf.concat([repeated * first, repeated - first], 2), 2, keepdims=True)
    last, _ = run(first, u, tf.sigmoid(scores))
    regress(b, last, y, WIDTH)


LOOPS: Dict[str, Habit] = {
    "iterated": Habit(iterated, ROWS),
    "iterated_reading": Habit(iterated_reading, ROWS),
    "iterated_from_zeros": Habit(iterated_from_zeros, ROWS),
    "counted": Habit(counted, counts),
    "gated": Habit(gated, ROWS),
    "nested": Habit(nested, ROWS),
    "branching": Habit(branching, ROWS),
    "normalised": Habit(normalised, ROWS),
    "scheduled": Habit(scheduled, ROWS),
    "recurrent": Habit(recurrent, sequences(2)),
    "attended": Habit(attended, sequences(WIDTH)),
    "scanned": Habit(scanned, sequences(5)),
    "folded": Habit(folded, sequences(5)),
    "mapped": Habit(mapped, sequences(5)),
    "dynamic_basic_lstm": Habit(dynamic(cells.BasicLSTMCell), sequences(2)),
    "dynamic_lstm": Habit(dynamic(cells.LSTMCell, lengths=True), with_lengths(2)),
    "dynamic_gru": Habit(dynamic(cells.GRUCell, lengths=True, time=STEPS), with_lengths(2)),
    "paired": Habit(paired, sequences(2), flags=("--min-spread=90",)),
    "projected": Habit(projected, sequences(2)),
    "static_lstm": Habit(unrolled(cells.LSTMCell), sequences(2)),
    "longest": Habit(longest, with_lengths(None)),
    "decoded": Habit(decoded, sorted_lengths(5)),
    "choosing": Habit(choosing, sorted_lengths(5), flags=("--min-spread=90",)),
    "several_at_once": Habit(several_at_once, sorted_lengths(6)),
    "ended": Habit(ended, sorted_lengths(5)),
}

# To what graft-opt says of which op.
UNPROVED = {
    "mixing": (mixing, "while/sub", "needs the Partial(sum)"),
    "converging": (converging, "while/LogicalAnd", "needs the Partial(or)"),
    "over_rows": (over_rows, "foldl/while/Less", "per-replica row count"),
    "growing": (growing, "while/Merge_1", "ends an iteration as Sharded(0) joined"),
    "printing": (printing, "while/Print", "op Print runs once for the whole batch"),
}
