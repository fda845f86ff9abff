# SPDX-License-Identifier: Apache-2.0
"""Genes: half precision, numbers that are counted in other types, and a loss that is scaled for it."""

import tensorflow.compat.v2 as tf
from families import B, F, I, activation, is_float, is_matrix
from genes import Context, Gene, Illegal, gene, tf1


def small(c, g):
    if not c.head.get("half"):
        raise Illegal("no half precision here")
    return tf.as_dtype(c.head["half"])


@gene("op", 3)
def half_layer(c, g):
    """Weights are kept as they are, and the layer computes with half of the bits."""
    kind = small(c, g)
    x = c.pick(g, 0, is_matrix)
    units = c.width(g)
    w = tf.cast(c.variable(g, [x.shape[1], units]), kind)
    h = tf.matmul(tf.cast(x.tensor, kind), w) + tf.cast(c.variable(g, [units]), kind)
    c.add(tf.cast(activation(g)(h), c.dtype), 0, (x.shape[0], units))


@gene("op", 2)
def half_numbers(c, g):
    kind = small(c, g)
    x = c.pick(g, 0, is_float)
    h = tf.cast(x.tensor, kind)
    h = g.choice([tf.tanh, tf.nn.relu, tf.square, lambda t: t * t + tf.cast(0.5, kind), tf.sigmoid])(h)
    c.add(tf.cast(h, c.dtype), x.batch, x.shape)


@gene("op", 1)
def counted(c, g):
    """How many there are, in a type of its own, and what is divided by that."""
    x = c.pick(g, 0, lambda t: t.kind in (F, B) and t.batch == 0)
    bits = x.tensor if x.kind == B else tf.greater(x.tensor, 0.1)
    kind = g.choice([tf.int32, tf.int64, tf.float32, tf.float64])
    count = tf.reduce_sum(tf.cast(bits, kind))
    n = tf.size(bits, out_type=tf.int64 if kind == tf.int64 else tf.int32)
    share = tf.cast(count, c.dtype) / tf.cast(n, c.dtype)
    c.add(share, None, ())


@gene("op", 0.8)
def logic(c, g):
    """any and all, over features or over rows; and, or, not, xor."""
    x = c.pick(g, 0, lambda t: t.kind == B and t.rank >= 1 and t.batch == 0)
    y = c.pick(g, 1, lambda t: t.kind == B and t.shape == x.shape)
    bits = g.choice([tf.logical_and, tf.logical_or, tf.math.logical_xor, lambda a, b: tf.logical_not(a)])(x.tensor, y.tensor)
    op = g.choice([tf.reduce_any, tf.reduce_all])
    if x.rank > 1 and g.chance(0.5):
        c.add(op(bits, list(range(1, x.rank))), 0, x.shape[:1], B)
    elif g.chance(0.5):
        c.add(op(bits), None, (), B)
    else:
        c.add(bits, 0, x.shape, B)
