# SPDX-License-Identifier: Apache-2.0
"""Models that draw random numbers. `test_random.py` runs them; the rules for models are those of `models_habits.py`.

Each model has `draw:0`, what it drew for the rows (or for the batch), in the order of the rows.
"""

import models
import models_habits
import tensorflow.compat.v2 as tf
from models import Builder, tf1

SEED = [7, 11]


def rows(b: Builder, make):
    """A regression whose hidden layer is multiplied by make(shape), a draw for each row."""
    x, y = b.inputs([5], [1])
    w, v = b.variable("w", [5, 4]), b.variable("v", [4, 1])
    h = tf.tanh(tf.matmul(x, w))
    draw = tf.identity(make(tf.shape(h)), name="draw")
    error = tf.matmul(h * tf.cast(draw, b.dtype), v) - y
    models_habits.descend(b, b.loss(b.total(tf.reduce_sum(tf.square(error), axis=1))))


def seeded(make):
    return lambda b: rows(b, make)


def seed_of_step(b: Builder):
    """A seed that is computed: another one in each step."""
    step = b.constant("step", [], 3.0)
    seed = tf.stack([tf.cast(step, tf.int32), 5])
    rows(b, lambda shape: tf.raw_ops.StatelessRandomUniform(shape=shape, seed=seed))


def per_row(b: Builder):
    """Parameters of the distribution that are rows: a class drawn for each."""
    x, y = b.inputs([5], [1])
    w, v = b.variable("w", [5, 4]), b.variable("v", [4, 1])
    logits = tf.matmul(x, w)
    draw = tf.identity(tf.raw_ops.Multinomial(logits=logits, num_samples=3, seed=3, seed2=4), name="draw")
    chosen = tf.reduce_sum(tf.one_hot(tf.reshape(draw, [-1, 3]), 4, dtype=b.dtype), axis=1)
    error = tf.matmul(tf.tanh(logits) * chosen, v) - y
    models_habits.descend(b, b.loss(b.total(tf.reduce_sum(tf.square(error), axis=1))))


def crop(b: Builder):
    """One offset for all images, drawn in bounds that are read from the shape of the batch."""
    x, y = b.inputs([6, 6, 2], [1])
    size = tf.shape(x)
    limit = tf.concat([[1], size[1:3] - 3, [1]], 0)
    offset = tf.random.uniform(tf.shape(size), 0, 1 << 20, tf.int32, seed=5) % limit
    draw = tf.identity(offset, name="draw")
    part = tf.reshape(tf.slice(x, draw, tf.stack([size[0], 4, 4, 2])), [b.rows(), 32])
    error = tf.matmul(part, b.variable("w", [32, 1])) - y
    models_habits.descend(b, b.loss(b.total(tf.reduce_sum(tf.square(error), axis=1))))


def noise(b: Builder):
    """Noise on a weight: one draw for the batch, as long as the weight."""
    x, y = b.inputs([5], [1])
    w = b.variable("w", [5, 1])
    draw = tf.identity(tf.random.normal(tf.shape(w), stddev=0.1, seed=9), name="draw")
    error = tf.matmul(x, w + draw) - y
    models_habits.descend(b, b.loss(b.total(tf.reduce_sum(tf.square(error), axis=1))))


def shuffled(b: Builder):
    x, y = b.inputs([5], [1])
    draw = tf.identity(tf.random.shuffle(x, seed=3), name="draw")
    error = tf.matmul(draw, b.variable("w", [5, 1])) - y
    models_habits.descend(b, b.loss(b.total(tf.reduce_sum(tf.square(error), axis=1))))


VECTORS = models.regression(5, 1)
# A row of its own for every example: equal in distribution.
ROWS = {
    "uniform": seeded(lambda s: tf.random.uniform(s, seed=3)),
    "unseeded": seeded(tf.random.normal),
    "truncated": seeded(lambda s: tf.random.truncated_normal(s, seed=3)),
    "integers": seeded(lambda s: tf.random.uniform(s, 0, 1000, tf.int32, seed=3)),
    "gamma": seeded(lambda s: tf.random.gamma(s, 1.5, seed=3)),
    "poisson": seeded(lambda s: tf.random.poisson(s, 8.5, seed=3)),
    "dropout": seeded(lambda s: tf.nn.dropout(tf.ones(s), rate=0.5, seed=3)),
    "stateless": seeded(lambda s: tf.raw_ops.StatelessRandomUniform(shape=s, seed=SEED)),
    "stateless_normal": seeded(lambda s: tf.raw_ops.StatelessRandomNormal(shape=s, seed=tf.constant(SEED, tf.int64))),
    "stateless_v2": seeded(lambda s: tf.random.stateless_uniform(s, SEED)),
    "stateless_integers": seeded(lambda s: tf.random.stateless_uniform(s, SEED, 0, 1000, tf.int32)),
    "seed_of_step": seed_of_step,
    "per_row": per_row,
}
# One draw for the batch: the same as on a single device.
ONE = {"crop": crop, "noise": noise}
