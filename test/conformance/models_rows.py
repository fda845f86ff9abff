# SPDX-License-Identifier: Apache-2.0
"""Models of which a variable has a row for each example of a static batch. `test_row_variables.py` runs them."""

from typing import Dict

import models
import tensorflow.compat.v2 as tf
from models import BATCH, Builder, tf1
from models_habits import OPTIMIZERS, ROWS, Habit


def step_of(b: Builder, optimizer="sgd"):
    return OPTIMIZERS[optimizer](b, tf1.train.get_or_create_global_step())


def inputs(b: Builder):
    x, b.y = b.inputs([5], [1])
    return x


def cell(b: Builder, x, state):
    """The new state of a recurrence, and the losses of the rows."""
    w, u = b.variable("w", [5, 4]), b.variable("u", [4, 4], 0.5)
    v = b.variable("v", [4, 1])
    new = tf.tanh(tf.matmul(x, w) + tf.matmul(state, u), name="new")
    return new, tf.reduce_sum(tf.square(tf.matmul(new, v) - b.y), axis=1)


def keep_and_train(b: Builder, rows, keep):
    """A step that has its gradients when `keep` writes the state, and writes all else then."""
    pairs = step_of(b).compute_gradients(b.loss(b.total(rows)))
    with tf.control_dependencies([g for g, _ in pairs]):
        kept = keep()
    with tf.control_dependencies([kept]):
        step_of(b).apply_gradients([(b.scaled(g), v) for g, v in pairs], name="train_op")


def state_of(b: Builder, shape=(BATCH, 4)):
    return b.constant("state", list(shape), 0.2)


def carried(b: Builder):
    """The next step goes on with the state that this one ends with."""
    x, state = inputs(b), state_of(b)
    new, rows = cell(b, x, tf.identity(state))
    keep_and_train(b, rows, lambda: tf1.assign(state, new))
    tf.group(tf1.assign(state, tf.zeros([BATCH, 4], b.dtype)), name="reset")
    tf.group(tf1.assign(state, 2.0 * x[:, 1:]), name="set")


def carried_by_columns(b: Builder):
    """The state has a column for each example."""
    x, state = inputs(b), state_of(b, (4, BATCH))
    new, rows = cell(b, x, tf.transpose(tf.identity(state)))
    keep_and_train(b, rows, lambda: tf1.assign(state, tf.transpose(new)))


def added(b: Builder):
    """The values of the rows in earlier steps are added up."""
    x, state = inputs(b), state_of(b)
    new, rows = cell(b, x, tf.identity(state))
    keep_and_train(b, rows, lambda: tf1.assign_add(state, 0.5 * new))


def followed(b: Builder):
    """Another variable takes what the state was."""
    x, state = inputs(b), state_of(b)
    before = b.constant("before", [BATCH, 4], 0.0)
    new, rows = cell(b, x, tf.identity(state) + 0.5 * tf.identity(before))
    keep_and_train(b, rows, lambda: tf1.assign(state, new))
    tf.group(tf1.assign(before, state), name="follow")


def seen_late(b: Builder):
    """A read of the state before the write is used after it: a reference has the written value."""
    x, state = inputs(b), state_of(b)
    read = state.value()
    new, rows = cell(b, x, read)

    def keep():
        with tf.control_dependencies([tf1.assign(state, new)]):
            return tf.add(read, 1.0, name="late")

    keep_and_train(b, rows, keep)


def chosen(b: Builder):
    """The state begins again where a feature says so."""
    x, state = inputs(b), state_of(b)
    begins = tf.greater(x[:, :1], 0.0)
    new, rows = cell(b, x, tf.where(begins, tf.zeros([BATCH, 4], b.dtype), tf.identity(state)))
    keep_and_train(b, rows, lambda: tf1.assign(state, new))


def compared(b: Builder):
    """Each row of the state meets all others."""
    x, state = inputs(b), state_of(b)
    read = tf.identity(state)
    new, rows = cell(b, x, tf.matmul(tf.nn.softmax(tf.matmul(read, read, transpose_b=True)), read))
    keep_and_train(b, rows, lambda: tf1.assign(state, new))


def learned(optimizer):
    """A vector is learned for each place in the batch."""

    def build(b: Builder):
        x = inputs(b)
        first = b.variable("first", [BATCH, 4], 0.5)
        _, rows = cell(b, x, first)
        b.train(step_of(b, optimizer), b.loss(b.total(rows)))

    return build


def learned_words(b: Builder):
    """The words left and right of a text are those before it, of which the first and the last are learned."""
    x = b.placeholder("x", [3, 2])
    b.y = b.placeholder("y", [1])
    first, last = b.variable("first", [BATCH, 2], 0.5), b.variable("last", [BATCH, 2], 0.5)
    left = tf.stack([first, *tf.unstack(x, axis=1)[:-1]], axis=1)
    right = tf.stack([*tf.unstack(x, axis=1)[1:], last], axis=1)
    seen = tf.reduce_max(tf.concat([left, x, right], axis=2), axis=1)
    v = b.variable("v", [6, 1])
    b.train(step_of(b), b.loss(b.total(tf.reduce_sum(tf.square(tf.matmul(seen, v) - b.y), axis=1))))


def penalised(b: Builder):
    """All rows of the variable are in a penalty."""
    x = inputs(b)
    first = b.variable("first", [BATCH, 4], 0.5)
    _, rows = cell(b, x, first)
    b.l2(0.3, first)
    b.train(step_of(b), b.loss(b.total(rows)))


def clipped(b: Builder):
    """Gradients by the norm of all, of which the rows are a part."""
    x = inputs(b)
    first = b.variable("first", [BATCH, 4], 0.5)
    _, rows = cell(b, x, first)
    b.train(step_of(b), b.loss(b.total(rows)), clip=0.1 * b.per)


def averaged(b: Builder):
    """Each example sees the mean of the rows of all."""
    x = inputs(b)
    first = b.variable("first", [BATCH, 4], 0.5)
    _, rows = cell(b, x, first - tf.reduce_mean(first, axis=0, keepdims=True))
    b.train(step_of(b), b.loss(b.total(rows)))


def recurred(b: Builder):
    """The state of a loop over time, of which the last one is kept."""
    x = b.placeholder("x", [3, 5])
    b.y = b.placeholder("y", [1])
    state = state_of(b)
    w, u, v = b.variable("w", [5, 4]), b.variable("u", [4, 4], 0.5), b.variable("v", [4, 1])

    def body(i, h):
        return i + 1, tf.tanh(tf.matmul(x[:, i], w) + tf.matmul(h, u))

    _, last = tf1.while_loop(lambda i, h: i < 3, body, [0, tf.identity(state)])
    keep_and_train(b, tf.reduce_sum(tf.square(tf.matmul(last, v) - b.y), axis=1), lambda: tf1.assign(state, last))


def sequences(features):
    def draw(rng, dtype):
        return models.ramp(rng, (3, features)).astype(dtype), rng.standard_normal((BATCH, 1)).astype(dtype)

    return draw


MODELS: Dict[str, Habit] = {
    "carried": Habit(carried, ROWS, steps=("train_op", "reset", "train_op", "set", "train_op"), fetches=()),
    "carried_fetched": Habit(carried, ROWS, fetches=("loss:0", "new:0")),
    "carried_by_columns": Habit(carried_by_columns, ROWS),
    "added": Habit(added, ROWS),
    "followed": Habit(followed, ROWS, steps=("train_op", "follow") * 2, fetches=()),
    "seen_late": Habit(seen_late, ROWS, fetches=("late:0",)),
    "chosen": Habit(chosen, ROWS),
    "compared": Habit(compared, ROWS),
    **{f"learned_{name}": Habit(learned(name), ROWS) for name in ("sgd", "momentum", "adam", "adagrad", "rmsprop", "ftrl")},
    "learned_words": Habit(learned_words, sequences(2)),
    "penalised": Habit(penalised, ROWS),
    "clipped": Habit(clipped, ROWS, scale_shows=False),
    "averaged": Habit(averaged, ROWS),
    "recurred": Habit(recurred, sequences(5)),
}
