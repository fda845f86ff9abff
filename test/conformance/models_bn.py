# SPDX-License-Identifier: Apache-2.0
"""Models that normalise. `test_batch_norm.py` runs them; the rules for models are those of `models_habits.py`."""

import models
import models_habits
import numpy as np
import tensorflow.compat.v2 as tf
from models import BATCH, Builder, tf1
from tensorflow.python.training import moving_averages


def follow(b: Builder, scope, mean, variance):
    """Moving averages of the statistics, as the op gives them."""
    channels = mean.shape.as_list()
    moving = b.constant(scope + "/moving_mean", channels, 0.0), b.constant(scope + "/moving_variance", channels, 1.0)
    for average, value in zip(moving, (mean, variance)):
        update = moving_averages.assign_moving_average(average, value, 0.6, zero_debias=False)
        tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, update)


def step(b: Builder, loss):
    """As a training script makes it: the averages are updated before the weights."""
    pairs = [(b.scaled(g), v) for g, v in tf1.train.GradientDescentOptimizer(0.1 / b.per).compute_gradients(loss)]
    with b.ordered(), tf.control_dependencies(tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)):
        tf1.train.GradientDescentOptimizer(0.1 / b.per).apply_gradients(pairs, name="train_op")


def gamma_beta(b: Builder, scope, channels):
    gamma = b.variable(scope + "/gamma", [channels], 0.5, initializer=tf1.random_uniform_initializer(0.5, 1.5, seed=5))
    return gamma, b.constant(scope + "/beta", [channels], 0.1, trainable=True)


def fused(b: Builder, h, scope, data_format="NHWC", channel=-1):
    """A fused batch norm and its moving averages."""
    gamma, beta = gamma_beta(b, scope, h.shape.as_list()[channel])
    h, mean, variance = tf1.nn.fused_batch_norm(h, gamma, beta, epsilon=1e-3, data_format=data_format)
    follow(b, scope, mean, variance)
    return h


def regress(b: Builder, h, y):
    width = int(np.prod(h.shape.as_list()[1:]))
    error = tf.matmul(tf.reshape(h, [b.rows(), width]), b.variable("head", [width, 1])) - y
    return b.loss(b.total(tf.square(error)))


def images(b: Builder, norm, dtype=None):
    """Two convolutions with a norm each, and a way around the second."""
    x, y = b.inputs([4, 4, 3], [1])
    first = b.variable("first", [3, 3, 3, 4])
    h = tf.nn.conv2d(x, first, strides=1, padding="SAME")
    h = tf.nn.relu(norm(b, h, "one"))
    second = tf.nn.conv2d(h, b.variable("second", [3, 3, 4, 4]), strides=1, padding="SAME")
    step(b, regress(b, h + norm(b, second, "two"), y))


def batch_norm(b: Builder):
    images(b, fused)


def batch_norm_far(b: Builder):
    """Activations far from zero: a variance as a difference of two sums would be noise."""
    x, y = b.inputs([4, 4, 3], [1])
    step(b, regress(b, tf.tanh(fused(b, x + 300.0, "norm")), y))


def batch_norm_channels_first(b: Builder):
    x, y = b.inputs([3, 4, 4], [1])
    w = b.variable("w", [3])
    step(b, regress(b, tf.tanh(fused(b, x * tf.reshape(w, [3, 1, 1]), "norm", "NCHW", 1)), y))


def batch_norm_volumes(b: Builder):
    """Five dimensions."""
    x, y = b.inputs([2, 3, 2, 4], [1])
    w = b.variable("w", [4])
    step(b, regress(b, tf.tanh(fused(b, x * w, "norm", "NDHWC")), y))


def batch_norm_half(b: Builder):
    """Activations in float16, statistics in float32."""

    def norm(b, h, scope):
        return tf.cast(fused(b, tf.cast(h, tf.float16), scope), b.dtype)

    images(b, norm)


def batch_norm_first(b: Builder):
    """The first version of the op."""

    def norm(b, h, scope):
        gamma, beta = gamma_beta(b, scope, h.shape.as_list()[-1])
        h, mean, variance, _, _ = tf.raw_ops.FusedBatchNorm(
            x=h, scale=gamma, offset=beta, mean=[], variance=[], epsilon=1e-3, is_training=True
        )
        follow(b, scope, mean, variance)
        return h

    images(b, norm)


def batch_norm_keras(b: Builder):
    """The ops of the layer of Keras 2."""
    import tf_keras

    def norm(b, h, scope):
        layer = tf_keras.layers.BatchNormalization(momentum=0.6, fused=True, name=scope)
        h = layer(h, training=True)
        for update in layer.updates:
            tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, update)
        return h

    images(b, norm)


def batch_norm_frozen(b: Builder):
    """Statistics from variables, as in fine-tuning."""

    def norm(b, h, scope):
        gamma, beta = gamma_beta(b, scope, 4)
        mean, variance = b.constant(scope + "/mean", [4], 0.2), b.constant(scope + "/variance", [4], 1.5)
        return tf1.nn.fused_batch_norm(h, gamma, beta, mean, variance, 1e-3, is_training=False)[0]

    images(b, norm)


def moments(b: Builder):
    """Written out in plain ops, moving averages included."""

    def norm(b, h, scope):
        gamma, beta = gamma_beta(b, scope, h.shape.as_list()[-1])
        mean, variance = tf.nn.moments(h, axes=[0, 1, 2])
        follow(b, scope, mean, variance)
        return tf.nn.batch_normalization(h, mean, variance, beta, gamma, 1e-3)

    images(b, norm)


def moments_keras(b: Builder):
    """The ops of the layer of Keras 2 that is not fused, here on vectors."""
    import tf_keras

    x, y = b.inputs([5], [1])
    layer = tf_keras.layers.BatchNormalization(momentum=0.6, fused=False, name="norm")
    h = tf.tanh(layer(tf.matmul(x, b.variable("w", [5, 6])), training=True))
    for update in layer.updates:
        tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, update)
    step(b, regress(b, h, y))


def layer_norm_fused(b: Builder):
    """A layer norm that is a batch norm whose channels are the rows, as Keras 2 makes it."""
    x, y = b.inputs([3, 5], [1])
    h = tf.tensordot(x, b.variable("w", [5, 6]), 1)
    rows = tf.shape(h)[0] * 3
    shape = tf.shape(h)
    flat = tf.reshape(h, [1, rows, 6, 1])
    flat, _, _ = tf1.nn.fused_batch_norm(
        flat, tf.ones([rows], b.dtype), tf.zeros([rows], b.dtype), epsilon=1e-3, data_format="NCHW"
    )
    gamma, beta = gamma_beta(b, "norm", 6)
    step(b, regress(b, tf.tanh(tf.reshape(flat, shape) * gamma + beta), y))


def layer_norm_keras(b: Builder):
    import tf_keras

    x, y = b.inputs([3, 5], [1])
    h = tf.tensordot(x, b.variable("w", [5, 6]), 1)
    step(b, regress(b, tf.tanh(tf_keras.layers.LayerNormalization(name="norm")(h)), y))


def rows(*shape):
    """Rows that move along the batch, so that every replica's rows have statistics of their own."""

    def make(rng, dtype):
        shift = np.linspace(-1.0, 2.0, BATCH).reshape((BATCH,) + (1,) * len(shape))
        return (models.ramp(rng, shape) + shift).astype(dtype), rng.standard_normal((BATCH, 1)).astype(dtype)

    return make


IMAGES = rows(4, 4, 3)

FUSED = {
    "batch_norm": models_habits.Habit(batch_norm, IMAGES),
    "batch_norm_far": models_habits.Habit(batch_norm_far, IMAGES),
    "batch_norm_channels_first": models_habits.Habit(batch_norm_channels_first, rows(3, 4, 4)),
    "batch_norm_volumes": models_habits.Habit(batch_norm_volumes, rows(2, 3, 2, 4)),
    "batch_norm_half": models_habits.Habit(batch_norm_half, IMAGES),
    "batch_norm_first": models_habits.Habit(batch_norm_first, IMAGES),
    "batch_norm_keras": models_habits.Habit(batch_norm_keras, IMAGES),
}

EXACT = {
    "batch_norm_frozen": models_habits.Habit(batch_norm_frozen, IMAGES),
    "moments": models_habits.Habit(moments, IMAGES),
    "moments_keras": models_habits.Habit(moments_keras, rows(5)),
    "layer_norm_fused": models_habits.Habit(layer_norm_fused, rows(3, 5)),
    "layer_norm_keras": models_habits.Habit(layer_norm_keras, rows(3, 5)),
}
