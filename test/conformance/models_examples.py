# SPDX-License-Identifier: Apache-2.0
"""The models of AutoDist's and Keras' examples, as small graphs of our own.

A language model with sampled classes whose recurrent gradients are clipped by themselves (lm1b), a masked language model
that gathers positions of the batch (bert), two tables of which slices are looked up, with rows that are only padding (ncf),
and the step of Keras' `fit` with sample weights and metrics. `models_autodist.py` has the integration cases.
"""

import numpy as np
import tensorflow.compat.v2 as tf
from models import tf1
from models_autodist import ROWS, Made, dense, random, train, variable, write

STEPS = 3


def feeds_of(make):
    return [make(random(50 + i)) for i in range(STEPS)]


def lm1b(kind):
    """Words, an LSTM that is projected, sampled softmax; the batch's size scales the gradient of the table."""
    time, words, width, units = 4, 40, 6, 8

    def fill():
        x, y = tf1.placeholder(tf.int32, [None, time], "x"), tf1.placeholder(tf.int32, [None, time], "y")
        table = variable("embedding", [words, width], 1)
        kernel, bias = variable("lstm/kernel", [2 * width, 4 * units], 2), variable("lstm/bias", [4 * units], 3)
        projection = variable("lstm/projection", [units, width], 4)
        rows = tf.shape(x)[0]
        c, h = tf.zeros(tf.stack([rows, units])), tf.zeros(tf.stack([rows, width]))
        out = []
        for part in tf.unstack(tf.nn.embedding_lookup(table, x), axis=1):
            i, j, f, o = tf.split(tf.matmul(tf.concat([part, h], 1), kernel) + bias, 4, axis=1)
            c = tf.sigmoid(f + 1.0) * c + tf.sigmoid(i) * tf.tanh(j)
            h = tf.matmul(tf.sigmoid(o) * tf.tanh(c), projection)
            out.append(h)
        flat = tf.reshape(tf.concat(out, 1), [-1, width])
        softmax_w, softmax_b = variable("softmax_w", [words, width], 5), variable("softmax_b", [words], 6)
        labels = tf.reshape(y, [-1, 1])
        drawn = tf.random.log_uniform_candidate_sampler(tf.cast(labels, tf.int64), 1, 10, True, words, seed=7)
        losses = tf.nn.sampled_softmax_loss(softmax_w, softmax_b, labels, flat, 10, words, sampled_values=drawn)
        loss = tf.reduce_mean(losses, name="loss")
        trained = [table, kernel, bias, projection, softmax_w, softmax_b]
        gradients = tf1.gradients(loss, trained)
        scaled = tf.IndexedSlices(
            gradients[0].values * tf.cast(rows, tf.float32), gradients[0].indices, gradients[0].dense_shape
        )
        clipped, _ = tf.clip_by_global_norm(gradients[1:4], 0.02)
        optimizer = tf1.train.AdagradOptimizer(0.2, initial_accumulator_value=0.1)
        with tf.control_dependencies([scaled.values, *clipped, *(getattr(g, "values", g) for g in gradients[4:])]):
            optimizer.apply_gradients(zip([scaled, *clipped, *gradients[4:]], trained), name="train_op")

    path, _ = write(fill, kind)

    def feed(rng):
        text = rng.randint(0, words, [ROWS, time + 1])
        return {"x:0": text[:, :-1], "y:0": text[:, 1:]}

    return Made(path, feeds_of(feed), ("loss:0",))


def layer_norm(x, name, width):
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    gamma, beta = variable(name + "/gamma", [width], 8), variable(name + "/beta", [width], 9)
    return tf.nn.batch_normalization(x, mean, variance, beta, 1.0 + gamma, 1e-6)


def bert(kind):
    """A word is hidden here and there; its position is one of a row, and the table of words is that of the logits."""
    time, hidden, words, width, longest = 6, 2, 20, 8, 9

    def fill():
        ids = tf1.placeholder(tf.int32, [None, time], "ids")
        positions = tf1.placeholder(tf.int32, [None, hidden], "positions")
        labels = tf1.placeholder(tf.int32, [None, hidden], "labels")
        weights = tf1.placeholder(tf.float32, [None, hidden], "weights")
        follows = tf1.placeholder(tf.int32, [None], "follows")
        rows = tf.shape(ids)[0]
        table, places = variable("words", [words, width], 1), variable("positions/table", [longest, width], 2)
        x = tf.nn.embedding_lookup(table, ids) + tf.slice(places, [0, 0], [time, -1])
        x = layer_norm(x, "norm0", width)
        flat = tf.reshape(x, [-1, width])
        q, k, v = (
            tf.reshape(dense(flat, width, width, name, 10 + 2 * i), [rows, time, width]) for i, name in enumerate("qkv")
        )
        mask = tf.cast(tf.not_equal(ids, 0), tf.float32)[:, None, :]
        scores = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / np.sqrt(width) - 1e4 * (1.0 - mask))
        x = layer_norm(x + tf.matmul(scores, v), "norm1", width)
        inner = tf.nn.gelu(dense(tf.reshape(x, [-1, width]), width, 2 * width, "up", 20))
        x = layer_norm(x + tf.reshape(dense(inner, 2 * width, width, "down", 22), [rows, time, width]), "norm2", width)
        offsets = tf.reshape(tf.range(0, rows, dtype=tf.int32) * time, [-1, 1])
        masked = tf.gather(tf.reshape(x, [-1, width]), tf.reshape(positions + offsets, [-1]))
        masked = layer_norm(tf.nn.gelu(dense(masked, width, width, "transform", 24)), "norm3", width)
        logits = tf.matmul(masked, table, transpose_b=True) + variable("out/bias", [words], 26)
        log = tf.nn.log_softmax(logits)
        each = -tf.reduce_sum(log * tf.one_hot(tf.reshape(labels, [-1]), words), axis=-1)
        weight = tf.reshape(weights, [-1])
        loss = tf.reduce_sum(weight * each) / (tf.reduce_sum(weight) + 1e-5)
        first = tf.tanh(dense(tf.squeeze(x[:, 0:1, :], 1), width, width, "pool", 27))
        pair = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=follows, logits=dense(first, width, 2, "next", 29))
        loss = tf.identity(loss + tf.reduce_mean(pair), name="loss")
        trained = tf1.trainable_variables()
        gradients, _ = tf.clip_by_global_norm(tf1.gradients(loss, trained), 0.5)
        with tf.control_dependencies([getattr(g, "values", g) for g in gradients]):
            tf1.train.AdamOptimizer(0.02, epsilon=0.01).apply_gradients(zip(gradients, trained), name="train_op")

    path, _ = write(fill, kind)

    def feed(rng):
        ids = rng.randint(1, words, [ROWS, time])
        ids[:5, 4:] = 0
        weights = np.ones([ROWS, hidden], "float32")
        weights[rng.randint(ROWS, size=3), 1] = 0.0
        return {
            "ids:0": ids,
            "positions:0": np.stack([rng.permutation(4)[:hidden] for _ in range(ROWS)]),
            "labels:0": rng.randint(0, words, [ROWS, hidden]),
            "weights:0": weights,
            "follows:0": rng.randint(0, 2, ROWS),
        }

    return Made(path, feeds_of(feed), ("loss:0",))


def ncf(kind):
    """Factors that are multiplied and factors that go through layers, of one table each; a mask of rows that count."""
    people, things, factors, deep = 15, 21, 3, 4

    def fill():
        user, item = (tf1.placeholder(tf.int32, [None, 1], name) for name in ("user", "item"))
        label = tf1.placeholder(tf.int32, [None, 1], "label")
        valid = tf1.placeholder(tf.bool, [None, 1], "valid")
        tables = (
            variable("users", [people, factors + deep], 1),
            variable("items", [things, factors + deep], 2),
        )
        u, i = (tf.squeeze(tf.nn.embedding_lookup(t, ids), [1]) for t, ids in zip(tables, (user, item)))
        product = u[:, :factors] * i[:, :factors]
        h = tf.concat([u[:, factors:], i[:, factors:]], 1)
        h = tf.nn.relu(dense(h, 2 * deep, 6, "layer", 3))
        logit = dense(tf.concat([product, h], 1), factors + 6, 1, "rating", 5)
        logits = tf.concat([logit * 0.0, logit], 1)
        counts = tf.cast(tf.reshape(valid, [-1]), tf.float32)
        rows = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(label, [-1]), logits=logits)
        loss = tf.reduce_sum(rows * counts) / tf.maximum(tf.reduce_sum(counts), 1.0)
        loss = tf.identity(loss, name="loss")
        guess = tf.argmax(logits, 1, output_type=tf.int32)
        accuracy, seen = tf1.metrics.accuracy(tf.reshape(label, [-1]), guess, weights=counts, name="accuracy")
        tf.identity(accuracy, name="accuracy_metric")
        optimizer = tf1.train.AdamOptimizer(0.02, epsilon=0.01)
        train(optimizer, loss, tf1.trainable_variables(), after=[seen])

    path, _ = write(fill, kind)

    def feed(rng):
        return {
            "user:0": rng.randint(0, people, [ROWS, 1]),
            "item:0": rng.randint(0, things, [ROWS, 1]),
            "label:0": rng.randint(0, 2, [ROWS, 1]),
            "valid:0": np.arange(ROWS)[:, None] < rng.randint(2, ROWS),
        }

    return Made(path, feeds_of(feed), ("loss:0",))


def keras_fit(kind):
    """The train function of `fit`: a loss of weighted rows, metrics with and without weights that the step reads after it
    added to them."""
    classes = 5

    def fill():
        x = tf1.placeholder(tf.float32, [None, 8, 8, 1], "input")
        target = tf1.placeholder(tf.float32, [None, None], "target")
        weights = tf1.placeholder(tf.float32, [None], "sample_weights")
        h = tf.nn.conv2d(x, variable("conv/kernel", [3, 3, 1, 4], 1), 1, "VALID")
        h = tf.nn.relu(tf.nn.bias_add(h, variable("conv/bias", [4], 2)))
        h = tf.nn.max_pool2d(h, 2, 2, "VALID")
        size = tf.shape(h)
        h = tf.reshape(h, tf.stack([size[0], -1]))
        h.set_shape([None, 36])
        logits = dense(h, 36, classes, "dense", 3)
        labels = tf.cast(tf.reshape(target, [-1]), tf.int64)
        labels = tf.reshape(labels, tf.shape(logits)[:-1])
        rows = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits) * weights
        loss = tf.math.divide_no_nan(tf.reduce_sum(rows), tf.cast(tf.size(rows), tf.float32))
        loss = tf.identity(loss, name="loss")

        def metric(name, values, weight=None):
            local = {"trainable": False, "collections": [tf1.GraphKeys.LOCAL_VARIABLES]}
            total, count = (
                tf1.get_variable(f"{name}/{part}", initializer=tf.constant(0.0), **local) for part in ("total", "count")
            )
            number = tf.cast(tf.size(values), tf.float32) if weight is None else tf.reduce_sum(weight)
            values = values if weight is None else values * weight
            added = total.assign_add(tf.reduce_sum(values))
            with tf.control_dependencies([added]):
                counted = count.assign_add(number)
            with tf.control_dependencies([counted]):
                value = tf.math.divide_no_nan(tf.identity(total), tf.identity(count))
            return tf.identity(value, name=name + "/value")

        right = tf.cast(tf.equal(tf.reshape(target, [-1]), tf.cast(tf.argmax(logits, -1), tf.float32)), tf.float32)
        values = [metric("acc", right), metric("weighted_acc", right, weights), metric("mean_loss", rows)]
        train(tf1.train.GradientDescentOptimizer(0.1), loss, tf1.trainable_variables(), after=values)

    path, _ = write(fill, kind)

    def feed(rng):
        return {
            "input:0": rng.rand(ROWS, 8, 8, 1).astype("float32"),
            "target:0": rng.randint(0, classes, [ROWS, 1]).astype("float32"),
            "sample_weights:0": rng.rand(ROWS).astype("float32"),
        }

    return Made(path, feeds_of(feed), ("loss:0", "acc/value:0", "weighted_acc/value:0", "mean_loss/value:0"))


EXAMPLES = {f.__name__: f for f in (lm1b, bert, ncf, keras_fit)}
