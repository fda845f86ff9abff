# SPDX-License-Identifier: Apache-2.0
"""The integration cases c0 to c10 of AutoDist (petuum/autodist, tests/integration), rebuilt as graphs.

What the cases are about is kept (a scalar linear model, convolutions with an iterator, two embeddings one of which is
also read in a conditional, loops, numpy input, dynamic LSTMs, metrics, ops that mix the batch into features, staleness,
savers); data sets are small random ones, and dropout has the rate 0, so that numbers can be compared.
"""

import dataclasses
from typing import Callable, Dict, Sequence, Tuple

import harness
import models
import numpy as np
import tensorflow.compat.v2 as tf
from models import tf1
from strategies import temporary

ROWS = 12  # of a step; every number of replicas that the tests use divides it


@dataclasses.dataclass(frozen=True)
class Made:
    """A case: its graph file, what is fed and fetched in each step."""

    path: str
    feeds: Sequence[Dict[str, np.ndarray]]
    fetches: Tuple[str, ...]


def write(fill: Callable, kind: str) -> Tuple[str, object]:
    path = temporary(".meta")
    graph = tf.Graph()
    with graph.as_default():
        tf1.get_variable_scope().set_use_resource(kind == "resource")
        tf1.set_random_seed(3)
        made = fill()
        variables = tf1.global_variables() + tf1.local_variables()
        tf1.variables_initializer(variables, name="init")
        saver = tf1.train.Saver(tf1.global_variables())
        tf1.train.export_meta_graph(path, graph=graph, saver_def=saver.as_saver_def())
    harness.MODEL_OF[path] = "AutoDist's cases"
    return path, made


def random(seed: int):
    return np.random.RandomState(seed)


def scalar_linear(dtype=tf.float32, constant: bool = False):
    """c0, c9, c10: y = W x + b, with scalars."""
    rng = random(123)
    inputs = rng.randn(ROWS)
    outputs = inputs * 3.0 + 2.0 + rng.randn(ROWS)
    if constant:
        x, y = tf.constant(inputs, dtype), tf.constant(outputs, dtype)
    else:
        x, y = tf1.placeholder(dtype, [None], "x"), tf1.placeholder(dtype, [None], "y")
    w = tf1.get_variable("W", initializer=tf.constant(5.0, dtype))
    b = tf1.get_variable("b", initializer=tf.constant(0.0, dtype))
    loss = tf.reduce_mean(tf.square(w * x + b - y), name="loss")
    train(tf1.train.GradientDescentOptimizer(0.01), loss, [w, b])
    return inputs, outputs


def train(optimizer, loss, trained, after=(), **kwargs):
    """No update comes before a gradient: in graphs with reference variables the single-device step would race."""
    gradients = tf1.gradients(loss, trained)
    with tf.control_dependencies([tf.convert_to_tensor(loss), *(getattr(g, "values", g) for g in gradients), *after]):
        optimizer.apply_gradients(zip(gradients, trained), name="train_op", **kwargs)


def images(seed: int, count: int, side: int = 8):
    rng = random(seed)
    return rng.rand(count, side, side, 1).astype("float32"), rng.randint(0, 10, count).astype("int64")


def variable(name, shape, seed):
    scale = 1.0 / np.sqrt(max(1, int(np.prod(shape[:-1]))))
    return tf1.get_variable(name, initializer=random(seed).uniform(-scale, scale, shape).astype("float32"))


def convolution(x, filters=8):
    """Conv2D, MaxPooling2D, Flatten, Dropout."""
    side = int(x.shape[1])
    kernel, bias = variable("conv/kernel", [3, 3, 1, filters], 1), variable("conv/bias", [filters], 2)
    h = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, kernel, 1, "VALID"), bias))
    h = tf.nn.max_pool2d(h, 2, 2, "VALID")
    size = ((side - 2) // 2) ** 2 * filters
    return tf1.nn.dropout(tf.reshape(h, [-1, size]), rate=tf.constant(0.0), seed=5), size


def dense(x, size, units, name, seed):
    return tf.matmul(x, variable(name + "/kernel", [size, units], seed)) + variable(name + "/bias", [units], seed + 1)


def keras_like(x, y):
    """c1, c3, c5: what SparseCategoricalCrossentropy makes of a softmax, SGD, and a counter of steps."""
    h, size = convolution(x)
    y_hat = tf.nn.softmax(dense(h, size, 10, "dense", 3))
    log = tf.math.log(tf.clip_by_value(y_hat, 1e-7, 1.0 - 1e-7))
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=log), name="loss")
    iterations = tf1.get_variable("iterations", initializer=tf.constant(0, tf.int64), trainable=False)
    train(tf1.train.GradientDescentOptimizer(0.1), loss, tf1.trainable_variables(), global_step=iterations)


def c0(kind):
    path, (x, y) = write(scalar_linear, kind)
    return Made(path, [{"x:0": x, "y:0": y}] * 3, ("loss:0",))


def c1(kind):
    """Images from an iterator."""

    def fill():
        pictures, labels = images(11, 4 * ROWS)
        data = tf1.data.Dataset.from_tensor_slices((pictures, labels)).batch(ROWS, drop_remainder=True).repeat()
        x, y = tf1.data.make_one_shot_iterator(data).get_next()
        keras_like(x, y)

    path, _ = write(fill, kind)
    return Made(path, [{}] * 3, ("loss:0",))


def c2(kind):
    """Two embeddings, one read in a conditional too; sparse Adam."""
    vocabulary, size, length = 30, 4, 5

    def fill():
        data, labels = random(12).randint(0, vocabulary, (3 * ROWS, length)), random(13).randint(0, 2, 3 * ROWS)
        source = tf1.data.Dataset.from_tensor_slices((data, labels.astype("float32"))).batch(ROWS).repeat()
        x, y = tf1.data.make_one_shot_iterator(source).get_next()
        first, second = variable("emb1", [vocabulary, size], 1), variable("emb2", [vocabulary, size], 2)
        w1, b1 = variable("w1", [size, size], 3), variable("b1", [size], 4)
        w2, b2 = variable("w2", [size, 1], 5), variable("b2", [1], 6)
        a, z = tf.nn.embedding_lookup(first, x), tf.nn.embedding_lookup(second, x)
        z = tf1.cond(tf.reduce_sum(z) > 0, lambda: tf.identity(z), lambda: tf.identity(z))
        h = tf.reduce_mean(0.5 * (a + z), axis=1)
        h = tf.nn.relu(tf.matmul(h, w1) + b1)
        logits = tf.squeeze(tf.matmul(h, w2) + b2, axis=1)  # without an axis, a batch of one row would lose it
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits), name="loss")
        train(tf1.train.AdamOptimizer(0.2), loss, [first, second, w1, b1, w2, b2])

    path, _ = write(fill, kind)
    return Made(path, [{}] * 3, ("loss:0",))


def fed_images(kind, batch):
    def fill():
        keras_like(tf1.placeholder(tf.float32, [batch, 8, 8, 1], "x"), tf1.placeholder(tf.int64, [batch], "y"))

    path, _ = write(fill, kind)
    return Made(path, [dict(zip(("x:0", "y:0"), images(20 + i, ROWS))) for i in range(3)], ("loss:0", "iterations:0"))


def c3(kind):
    """Placeholders with an unknown batch."""
    made = fed_images(kind, None)
    return dataclasses.replace(made, fetches=("loss:0",))


def c4(kind):
    """A loop over the whole batch, in float64."""

    def fill():
        x, y = tf1.placeholder(tf.float64, [None], "x"), tf1.placeholder(tf.float64, [None], "y")
        w = tf1.get_variable("W", initializer=tf.constant(5.0, tf.float64))
        b = tf1.get_variable("b", initializer=tf.constant(0.0, tf.float64))
        _, last = tf1.while_loop(
            lambda step, _: step < 3, lambda step, state: (step + 1, tf.nn.sigmoid(w * state + b)), [0, x]
        )
        loss = tf.reduce_mean(tf.square(last - y), name="loss")
        train(tf1.train.GradientDescentOptimizer(0.01), loss, [w, b])

    path, _ = write(fill, kind)
    rng = random(14)
    return Made(path, [{"x:0": rng.randn(ROWS), "y:0": rng.randn(ROWS)} for _ in range(3)], ("loss:0",))


def c5(kind):
    """Numpy input: a batch of a known size."""
    return dataclasses.replace(fed_images(kind, ROWS), fetches=("loss:0",))


def peephole_lstm(units):
    """The step of LSTMCell(use_peepholes=True)."""
    kernel, bias = variable("lstm/kernel", [2 * units, 4 * units], 21), variable("lstm/bias", [4 * units], 22)
    forget, enter, leave = (variable(f"lstm/w_{gate}_diag", [units], 23 + i) for i, gate in enumerate("fio"))

    def cell(x, state):
        c, h = state
        i, j, f, o = tf.split(tf.nn.bias_add(tf.matmul(tf.concat([x, h], 1), kernel), bias), 4, 1)
        c = tf.sigmoid(f + 1.0 + forget * c) * c + tf.sigmoid(i + enter * c) * tf.tanh(j)
        h = tf.sigmoid(o + leave * c) * tf.tanh(c)
        return h, (c, h)

    return cell


def c6(kind):
    """Three dynamic LSTMs over constants, with TensorArrays; nothing is fed."""
    batch, units, length = 6, 5, 2

    def fill():
        cell = peephole_lstm(units)
        y = tf.constant(random(15).rand(1, units), tf.float32)
        qq = tf1.get_variable("QQ", initializer=tf.constant(random(16).rand(units, units), tf.float32))
        inputs = tf.constant(random(17).rand(batch, length, units), tf.float32)
        lengths = tf.constant(random(18).randint(0, length + 1, batch), tf.int32)
        zeros = tf.zeros([units])

        def run(i):
            rows = tf.TensorArray(tf.float32, size=length, element_shape=[batch, units])
            rows = rows.unstack(tf.transpose(inputs, [1, 0, 2]))
            mine = tf.gather(lengths, i)

            def body(t, state, array):
                output, new = cell(tf.expand_dims(tf.gather(rows.read(t), i), 0), state)
                done = t >= mine
                array = array.write(t, tf.where(done, zeros, tf.reshape(output, [-1])))
                return t + 1, tuple(tf.where(done, s, n) for s, n in zip(state, new)), array

            start = [0, (tf.zeros([1, units]),) * 2, tf.TensorArray(tf.float32, length)]
            _, state, _ = tf1.while_loop(lambda t, *_: t < length, body, start)
            return [tf.reshape(s, [-1]) for s in state]

        mean = tf.expand_dims(tf.reduce_mean(tf.concat([[run(t)] for t in range(3)], 0), [0, 1]), 0)
        output = tf.matmul(mean, qq)
        loss = tf.reduce_mean(tf1.nn.softmax_cross_entropy_with_logits(labels=y, logits=output), name="loss")
        train(tf1.train.AdamOptimizer(0.1), loss, tf1.trainable_variables())

    path, _ = write(fill, kind)
    return Made(path, [{}] * 3, ("loss:0",))


def c7(kind):
    """The step of Model.fit and the metric of Model.evaluate: Adam, and a mean accuracy in local variables."""

    def fill():
        x, y = tf1.placeholder(tf.float32, [None, 8, 8], "x"), tf1.placeholder(tf.int64, [None], "y")
        h = tf.nn.relu(dense(tf.reshape(x, [-1, 64]), 64, 16, "hidden", 1))
        logits = dense(tf1.nn.dropout(h, rate=tf.constant(0.0), seed=5), 16, 10, "out", 3)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
        loss = tf.reduce_mean(losses, name="loss")
        accuracy, update = tf1.metrics.accuracy(y, tf.argmax(logits, 1))
        tf.identity(accuracy, name="accuracy")
        train(tf1.train.AdamOptimizer(0.01), loss, tf1.trainable_variables(), after=[update])

    path, _ = write(fill, kind)
    feeds = []
    for i in range(3):
        pictures, labels = images(30 + i, ROWS)
        feeds.append({"x:0": pictures[..., 0], "y:0": labels})
    return Made(path, feeds, ("loss:0",))


def c8(kind):
    """Sums over the batch that become weights."""

    def fill():
        x, y = tf1.placeholder(tf.float32, [None, 8, 8, 1], "x"), tf1.placeholder(tf.int64, [None], "y")
        h, size = convolution(x, 4)
        h = tf.nn.relu(dense(h, size, 16, "hidden", 5))
        mixed = tf.reshape(tf.reduce_sum(tf.nn.relu(dense(h, 16, 160, "mix", 7)), 0), [16, 10])
        h = tf.nn.softmax(tf.matmul(h, mixed))
        logits = dense(h, 10, 10, "out", 9)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits), name="loss")
        train(tf1.train.GradientDescentOptimizer(0.01), loss, tf1.trainable_variables())

    path, _ = write(fill, kind)
    return Made(path, [dict(zip(("x:0", "y:0"), images(40 + i, ROWS))) for i in range(3)], ("loss:0",))


def c9(kind):
    """The examples are constants of the graph: there is nothing to split."""
    path, _ = write(lambda: scalar_linear(tf.float64, constant=True), kind)
    return Made(path, [{}] * 4, ("loss:0",))


def c10(kind):
    return c0(kind)


CASES = {f.__name__: f for f in (c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10)}
