# SPDX-License-Identifier: Apache-2.0
"""Genes: images and series under windows, with every padding and in each order of axes, and what moves pixels."""

import numpy as np
import tensorflow.compat.v2 as tf
from families import activation, is_image, is_rows, is_series
from genes import Context, Gene, Illegal, gene, tf1


def padding(g, sizes, rank=4):
    """SAME, VALID where a window of that many fits, or explicit numbers."""
    fits = all(size >= 2 for size in sizes)
    how = g.below(4)
    if how == 0 and rank == 4:
        return [[0, 0], [g.below(2), 1], [1, g.below(2)], [0, 0]]
    return "VALID" if how == 1 and fits else "SAME"


@gene("op", 1.5)
def windows(c, g):
    """A convolution with dilations, strides and paddings of its own, or as its gradient (a transposed one)."""
    x = c.pick(g, 0, is_image)
    sizes, channels = x.shape[1:3], x.shape[3]
    units, how = c.width(g), g.below(5)
    if how == 0:
        h = tf.nn.conv2d(x.tensor, c.variable(g, [2, 2, channels, units]), 1, padding(g, sizes))
    elif how == 1:
        h = tf.nn.conv2d(x.tensor, c.variable(g, [2, 2, channels, units]), 1, "SAME", dilations=2)
    elif how == 2:
        shape = tf.stack([c.rows(g), 2 * sizes[0], 2 * sizes[1], units])
        h = tf.nn.conv2d_transpose(x.tensor, c.variable(g, [2, 2, units, channels]), shape, 2, "SAME")
        c.add(activation(g)(h), 0, (x.shape[0], 2 * sizes[0], 2 * sizes[1], units))
        return
    elif how == 3:
        h = tf.nn.separable_conv2d(x.tensor, c.variable(g, [2, 1, channels, 1]), c.variable(g, [1, 1, channels, units]),
                                   [1, 1, 1, 1], "SAME")  # fmt: skip
    else:
        h = tf.nn.depthwise_conv2d(x.tensor, c.variable(g, [1, 2, channels, 2]), [1, 2, 2, 1], "SAME")
    c.add(activation(g)(h), 0)


@gene("op", 1)
def pools(c, g):
    x = c.pick(g, 0, is_image)
    pad = "VALID" if min(x.shape[1:3]) >= 2 and g.chance(0.5) else "SAME"
    how = g.below(4)
    if how == 0:
        h = tf.nn.max_pool2d(x.tensor, 2, g.choice([1, 2]), pad)
    elif how == 1:
        h = tf.nn.avg_pool2d(x.tensor, [1, 2], g.choice([1, 2]), "SAME")
    elif how == 2:
        h = tf.nn.max_pool_with_argmax(x.tensor, 2, 2, pad)[0]
    else:
        h = tf.reduce_max(x.tensor, g.choice([[1, 2], [-3, -2]]), keepdims=g.chance(0.5))
    c.add(h, 0)


@gene("op", 0.8)
def along_time(c, g):
    """A convolution over time, causal or not, and its pool."""
    x = c.pick(g, 0, is_series)
    w = c.variable(g, [2, x.shape[2], c.width(g)])
    if g.chance(0.4):
        h = tf.nn.conv1d(tf.pad(x.tensor, [[0, 0], [1, 0], [0, 0]]), w, 1, "VALID")
    else:
        h = tf.nn.conv1d(x.tensor, w, 1, "SAME", dilations=g.choice([1, 2]))
    if g.chance(0.3):
        h = tf.nn.pool(h, [2], "MAX", strides=[1], padding="SAME")
    c.add(activation(g)(h), 0)


@gene("op", 0.5)
def volume(c, g):
    x = c.pick(g, 0, is_image)
    h = tf.cast(tf.expand_dims(x.tensor, 1), tf.float32)
    h = tf.nn.conv3d(h, tf.cast(c.variable(g, [1, 2, 2, x.shape[3], 2]), tf.float32), [1, 1, 1, 1, 1], "SAME")
    h = tf.nn.max_pool3d(h, [1, 2, 2], [1, 1, 1], "SAME") if g.chance(0.5) else h
    c.add(tf.cast(tf.squeeze(h, [1]), c.dtype), 0)


@gene("op", 1)
def pixels(c, g):
    """Pixels go elsewhere; of each image by itself."""
    x = c.pick(g, 0, is_image)
    t, (height, width, channels) = x.tensor, x.shape[1:]
    how = g.below(8)
    if how == 0 and height % 2 == 0 and width % 2 == 0:
        h = tf.nn.space_to_depth(t, 2)
    elif how == 1 and channels % 4 == 0:
        h = tf.nn.depth_to_space(t, 2)
    elif how == 2:
        h = tf.image.flip_left_right(t)
    elif how == 3:
        h = tf1.image.resize_bilinear(tf.cast(t, tf.float32), [height + 1, 2 * width], align_corners=g.chance(0.5))
        h = tf.cast(h, c.dtype)
    elif how == 4:
        h = tf.cast(tf1.image.resize_nearest_neighbor(tf.cast(t, tf.float32), [2 * height, 2 * width]), c.dtype)
    elif how == 5:
        h = tf.image.extract_patches(t, [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], "SAME")
    elif how == 6:
        h = tf.pad(t, [[0, 0], [1, 1], [1, 1], [0, 0]], g.choice(["CONSTANT", "SYMMETRIC"]))
    else:
        h = tf.nn.local_response_normalization(tf.cast(t, tf.float32), 1)
        h = tf.cast(h, c.dtype)
    c.add(h, 0)


@gene("op", 0.8)
def channels_first(c, g):
    """Channels come before the pixels, for a while."""
    x = c.pick(g, 0, is_image)
    h = tf.transpose(x.tensor, [0, 3, 1, 2])
    how = g.below(3)
    if how == 0:
        h = tf.nn.bias_add(h, c.variable(g, [x.shape[3]]), "NC..")
    elif how == 1:
        h = h * tf.reshape(c.variable(g, [x.shape[3]]), [1, -1, 1, 1])
    else:
        mean, variance = tf.nn.moments(h, [2, 3], keepdims=True)
        h = (h - mean) * tf.math.rsqrt(variance + 0.1)
    c.add(tf.transpose(h, [0, 2, 3, 1]), 0, x.shape)


@gene("op", 0.8)
def groups_norm(c, g):
    """Groups of channels with a mean of their own: reshaped, normalized, and reshaped back."""
    x = c.pick(g, 0, is_rows)
    width = x.shape[-1]
    groups = g.choice([d for d in range(1, width + 1) if width % d == 0])
    lead = [-1, *x.shape[1:-1]] if g.chance(0.5) else [c.rows(g), *x.shape[1:-1]]
    h = tf.reshape(x.tensor, tf.stack([*lead, groups, width // groups]))
    axes = [*range(1, x.rank - 1), x.rank]
    mean, variance = tf.nn.moments(h, axes, keepdims=True)
    h = (h - mean) / tf.sqrt(variance + 0.1)
    c.add(tf.reshape(h, tf.shape(x.tensor)), 0, x.shape)


@gene("op", 0.7)
def inference_norm(c, g):
    """A batch norm that reads its averages, or chooses by a flag that is fed."""
    x = c.pick(g, 0, is_image)
    if c.head["dtype"] != "float32":
        raise Illegal("a fused batch norm takes float32")
    n = x.shape[3]
    gamma, beta = c.variable(g, [n], value=c.value(g, [n]) + 1), c.variable(g, [n])
    mean = c.variable(g, [n], trainable=False)
    variance = c.variable(g, [n], value=np.abs(c.value(g, [n])) + 0.5, trainable=False)
    flags = [t for t in c.pool if t.kind == "bool" and t.rank == 0]

    def fixed():
        return tf1.nn.fused_batch_norm(x.tensor, gamma, beta, mean, variance, epsilon=1e-2, is_training=False)[0]

    if not flags:
        c.add(fixed(), 0)
        return
    tf1.disable_control_flow_v2()
    c.v1_flow = True

    def batch():
        now, spread = tf.nn.moments(x.tensor, [0, 1, 2])
        return tf.nn.batch_normalization(x.tensor, now, spread, beta, gamma, 1e-2)

    c.add(tf1.cond(flags[0].tensor, batch, fixed), 0, x.shape)
