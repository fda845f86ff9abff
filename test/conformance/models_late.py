# SPDX-License-Identifier: Apache-2.0
"""Steps that read a variable before they write it and use what they read afterwards. Of a reference variable that is the
variable's own memory: what is used is what was written. `test_late_reads.py` runs them.

`late` is what such a use gives, fetched with the step. Each model is ordered under every schedule: an update waits for all
uses before it, and a use after it for the update.
"""

import tensorflow.compat.v2 as tf
from models import BATCH, Builder, tf1
from models_habits import Habit


def regress(b: Builder):
    """A linear model with a table, whose variables are written by `step`; they, and what they are made of."""
    x, y = b.inputs([5], [1])
    w, table = b.variable("w", [5, 1]), b.variable("table", [7, 1], 0.5)
    rows = tf.cast(tf.reshape(tf.abs(x[:, :1]) * 3.0, [-1]), tf.int32) % 7
    looked_up = tf.gather(table, rows)
    loss = b.loss(b.total(tf.square(tf.matmul(x, w, name="project") + looked_up - y)))
    optimizer = tf1.train.GradientDescentOptimizer(0.1 / b.per)
    pairs = [(b.scaled(g), v) for g, v in optimizer.compute_gradients(loss)]
    return x, rows, w, table, lambda: optimizer.apply_gradients(pairs, name="step")


def after_step(use, early=lambda w: w):
    """use(x, rows, what `early` gives of the table and of the weights) comes after the update, which `early` does not."""

    def build(b: Builder):
        x, rows, w, table, step = regress(b)
        w, table = early(w), early(table)
        with tf.control_dependencies([step()]):
            late = tf.identity(use(x, rows, w, table), name="late")
        with tf.control_dependencies([late]):
            tf.no_op(name="train_op")

    return build


def written_again(b: Builder):
    """The step decays what it has just written: what it is made of is read before both."""
    _, _, w, table, step = regress(b)
    with tf.control_dependencies([step()]):
        again = [tf1.assign(v, v * 0.9) for v in (w, table)]
    with tf.control_dependencies(again):
        late = tf.add(tf.reduce_sum(w * 2.0), tf.reduce_sum(table), name="late")
    with tf.control_dependencies([late]):
        tf.no_op(name="train_op")


def of_an_update(b: Builder):
    """The result of an update is the variable's memory, too."""
    _, _, w, table, step = regress(b)
    with tf.control_dependencies([step()]):
        first = tf1.assign_add(w, 0.1 * tf.ones_like(w))
    with tf.control_dependencies([first]):
        second = tf1.assign_add(w, 0.2 * tf.ones_like(w))
    with tf.control_dependencies([second]):
        late = tf.identity(tf.reduce_sum(first * 3.0), name="late")
    with tf.control_dependencies([late]):
        tf.no_op(name="train_op")


def averaged(b: Builder):
    """An average of the weights follows them."""
    _, _, w, table, step = regress(b)
    ema = tf1.train.ExponentialMovingAverage(0.5)
    with tf.control_dependencies([step()]):
        follow = ema.apply([w, table])
    with tf.control_dependencies([follow]):
        late = tf.add(tf.reduce_sum(ema.average(w)), tf.reduce_sum(ema.average(table)), name="late")
    with tf.control_dependencies([late]):
        tf.no_op(name="train_op")


def data(rng, dtype):
    return rng.normal(size=(BATCH, 5)).astype(dtype), rng.normal(size=(BATCH, 1)).astype(dtype)


def late(build):
    return Habit(build, data, fetches=("loss:0", "late:0"))


def sliced_columns(b: Builder):
    """Parts of rows are copies, which are made before the update, since it is made of them."""
    x, y = b.inputs([5], [1])
    w = b.variable("w", [5, 3])
    parts = [tf.slice(w, [0, 0], [5, 1]), w[:, 1:2], tf.split(w, 3, axis=1)[2]]
    loss = b.loss(b.total(tf.square(tf.matmul(x, tf.concat(parts, 1)) - y)))
    optimizer = tf1.train.GradientDescentOptimizer(0.1 / b.per)
    gradients = [b.scaled(g) for g, _ in optimizer.compute_gradients(loss)]
    with tf.control_dependencies([loss]):
        step = optimizer.apply_gradients([(gradients[0], w)], name="step")
    with tf.control_dependencies([step]):
        late = tf.identity(sum(tf.reduce_sum(p) * i for i, p in enumerate(parts, start=1)), name="late")
    with tf.control_dependencies([late]):
        tf.no_op(name="train_op")


def chosen(x, rows, w, table):
    return tf.cond(tf.reduce_sum(x) > 0.0, lambda: tf.reduce_sum(w) * 2.0, lambda: tf.reduce_sum(table) * 3.0)


def in_a_loop(x, rows, w, table):
    first = tf.reduce_sum(x) * 0.0
    made = tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s + tf.reduce_sum(w) * 2.0), [0, first])
    return made[1] + tf.reduce_sum(table)


def written_if(b: Builder):
    """The batch decides if the step writes once more."""
    x, _, w, table, step = regress(b)
    with tf.control_dependencies([step()]):
        large = tf.reduce_sum(x) > 0.0

    def more():
        with tf.control_dependencies([tf1.assign_add(w, 0.3 * tf.ones_like(w))]):
            return tf.constant(1.0)

    again = tf.cond(large, more, lambda: tf.constant(0.0))
    with tf.control_dependencies([again]):
        late = tf.add(tf.reduce_sum(w) * 2.0, tf.reduce_sum(table), name="late")
    with tf.control_dependencies([late]):
        tf.no_op(name="train_op")


def both(early):
    return after_step(lambda x, rows, w, table: tf.reduce_sum(w) + 2.0 * tf.reduce_sum(table), early)


MODELS = {
    "passed_on": late(after_step(lambda x, rows, w, table: tf.identity(w))),
    "summed": late(both(lambda w: w)),
    "of_rows": late(after_step(lambda x, rows, w, table: tf.reduce_mean(tf.matmul(x, w) + tf.gather(table, rows)))),
    "looked_up": late(after_step(lambda x, rows, w, table: tf.gather(table, [1, 3]))),
    "reshaped": late(both(lambda w: tf.reshape(w, [-1]))),
    "stopped": late(both(lambda w: tf.stop_gradient(tf.identity(w)))),
    "by_reference": late(both(lambda w: w._ref())),
    "chosen": late(after_step(chosen)),
    "in_a_loop": late(after_step(in_a_loop)),
    "written_if": late(written_if),
    "written_again": late(written_again),
    "of_an_update": late(of_an_update),
    "averaged": late(averaged),
    "sliced_columns": late(sliced_columns),
}

# The read value may be the variable's memory or a copy of it: graft does not know which.
UNKNOWN = {
    "sliced": late(both(lambda w: w[1:3])),
    "split": late(both(lambda w: tf.split(w, [1, int(w.shape[0]) - 1])[1])),
}
