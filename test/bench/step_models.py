# SPDX-License-Identifier: Apache-2.0
"""Models whose steps are measured, by steps.py in one process and by workers.py in several."""

import dataclasses
from typing import Callable, Sequence, Tuple

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1


def variable(name, shape, scale=None):
    """Has the same first value in every graph, and without one."""
    scale = scale or 1.0 / np.sqrt(max(1, int(np.prod(shape[:-1]))))

    def first(shape, dtype=tf.float32, partition_info=None):
        return tf.random.stateless_uniform(shape, [1, 1], -scale, scale, dtype)

    return tf1.get_variable(name, shape, initializer=first)


def cross_entropy(y, logits):
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)


# --- Models: the loss of each row. ---


def cnn(x, y):
    h = x
    for i, (inside, outside) in enumerate(((3, 16), (16, 32), (32, 32))):
        h = tf.nn.relu(tf.nn.conv2d(h, variable(f"conv{i}", [3, 3, inside, outside]), 1, "SAME"))
        h = tf.nn.max_pool2d(h, 2, 2, "SAME")
    return cross_entropy(y, tf.matmul(tf.reshape(h, [-1, 512]), variable("dense", [512, 10])))


def mlp(x, y):
    h = tf.reshape(x, [-1, 32 * 32 * 3])
    for i, (inside, outside) in enumerate(((32 * 32 * 3, 256), (256, 256), (256, 256))):
        h = tf.nn.relu(tf.matmul(h, variable(f"w{i}", [inside, outside])) + variable(f"b{i}", [outside]))
    return cross_entropy(y, tf.matmul(h, variable("out", [256, 10])))


def resnet(x, y):
    """18 layers with a batch norm behind each, on small images."""

    def conv(h, name, width, stride=1):
        h = tf.nn.conv2d(h, variable(name, [3, 3, h.shape[3], width]), stride, "SAME")
        gamma = tf1.get_variable(name + "/gamma", [width], initializer=tf1.ones_initializer())
        return tf1.nn.fused_batch_norm(h, gamma, variable(name + "/beta", [width]))[0]

    h = tf.nn.relu(conv(x, "first", 16))
    for stage, width in enumerate((16, 32, 64, 64)):
        for block in range(2):
            name, stride = f"s{stage}b{block}", 2 if stage and not block else 1
            inner = conv(tf.nn.relu(conv(h, name + "/a", width, stride)), name + "/b", width)
            if h.shape[3] != width or stride != 1:
                h = conv(h, name + "/c", width, stride)
            h = tf.nn.relu(h + inner)
    return cross_entropy(y, tf.matmul(tf.reduce_mean(h, [1, 2]), variable("dense", [64, 10])))


def embedding(x, y):
    h = tf.reduce_mean(tf.gather(variable("table", [20000, 64], 0.1), x), 1)
    h = tf.nn.relu(tf.matmul(h, variable("w", [64, 64])))
    return cross_entropy(y, tf.matmul(h, variable("out", [64, 10])))


def lstm(x, y):
    """20 words through a cell, one after the other."""
    units = 64
    words = tf.unstack(x, 20, 1)
    w, b = variable("w", [32 + units, 4 * units]), variable("b", [4 * units])
    c = h = tf.zeros([tf.shape(x)[0], units])
    for word in words:
        i, j, f, o = tf.split(tf.matmul(tf.concat([word, h], 1), w) + b, 4, 1)
        c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
        h = tf.tanh(c) * tf.sigmoid(o)
    return cross_entropy(y, tf.matmul(h, variable("out", [units, 10])))


def bert(x, y):
    """4 layers of BERT, of 128 numbers, with 4 heads, on 32 words."""
    size, heads, length = 128, 4, 32

    def dense(h, name, width):
        return tf.tensordot(h, variable(name, [h.shape[-1], width]), 1) + variable(name + "/bias", [width])

    def norm(h, name):
        mean, spread = tf.nn.moments(h, [-1], keepdims=True)
        gamma = tf1.get_variable(name + "/gamma", [size], initializer=tf1.ones_initializer())
        return (h - mean) * tf.math.rsqrt(spread + 1e-6) * gamma + variable(name + "/beta", [size])

    h = tf.gather(variable("words", [5000, size], 0.1), x) + variable("places", [length, size], 0.1)
    for layer in range(4):
        name = f"layer{layer}"
        parts = [tf.reshape(dense(h, f"{name}/{part}", size), [-1, length, heads, size // heads]) for part in "qkv"]
        q, k, v = (tf.transpose(part, [0, 2, 1, 3]) for part in parts)
        seen = tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / np.sqrt(size // heads)), v)
        seen = tf.reshape(tf.transpose(seen, [0, 2, 1, 3]), [-1, length, size])
        h = norm(h + dense(seen, name + "/out", size), name + "/norm")
        h = norm(h + dense(tf.nn.gelu(dense(h, name + "/wide", 4 * size)), name + "/narrow", size), name + "/norm2")
    return cross_entropy(y, tf.matmul(h[:, 0], variable("out", [size, 10])))


@dataclasses.dataclass(frozen=True)
class Model:
    name: str
    rows: Callable
    shape: Tuple[int, ...]  # of a row of x
    words: int = 0  # x has numbers below this
    batch: int = 64
    unknown: bool = False  # the graph does not know the size of the batch
    optimizer: Callable = lambda: tf1.train.MomentumOptimizer(0.01, 0.9)
    flags: Sequence[str] = ()

    def placeholders(self):
        batch = None if self.unknown else self.batch
        x = tf1.placeholder(tf.int32 if self.words else tf.float32, [batch, *self.shape], "x")
        return x, tf1.placeholder(tf.int32, [batch], "y")

    def feeds(self):
        rng, shape = np.random.default_rng(1), (self.batch, *self.shape)
        x = rng.integers(0, self.words, shape).astype("int32") if self.words else rng.random(shape, "float32")
        return {"x:0": x, "y:0": rng.integers(0, 10, self.batch).astype("int32")}

    def loss(self, x, y):
        return tf.reduce_sum(self.rows(x, y)) / self.batch


def adam():
    return tf1.train.AdamOptimizer(1e-3)


MODELS = [
    Model("CNN", cnn, (32, 32, 3)),
    Model("MLP", mlp, (32, 32, 3)),
    Model("ResNet-18, batch norm of each replica", resnet, (32, 32, 3), batch=16, flags=("--batch-norm=local",)),
    Model("embedding, Adagrad", embedding, (16,), 20000, optimizer=lambda: tf1.train.AdagradOptimizer(0.1)),
    Model("LSTM, unrolled", lstm, (20, 32), optimizer=adam),
    Model("BERT of 4 layers", bert, (32,), 5000, batch=16, optimizer=adam),
    Model("BERT of 4 layers, batch of unknown size", bert, (32,), 5000, batch=16, unknown=True, optimizer=adam),
]
