#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports training graphs of real size with TensorFlow (tensorflow-cpu 2.21), for performance.py and inputs.py.

    resnet50.meta     ResNet-50 v1: bottleneck blocks, fused batch norm, penalties, Momentum
    bert_large.meta   BERT-large: 24 layers, hidden 1024, masked words, clipping by the global norm, Adam
    inception.meta    Inception v3: 94 convolutions with fused batch norms, side head, Momentum
    lstm.meta         two layers of LSTM, unrolled over 656 words
    functions.meta    a chain of layers, each a function, with what TensorFlow makes of their gradients
    variables.meta    10,000 variables, each used once

Weights are initializers, so the files hold graphs and no parameters.

    export_models.py [--out=FOLDER] [MODEL...]
"""

import argparse
import math
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
tf1.logging.set_verbosity(tf1.logging.ERROR)


def normal(deviation=0.02):
    return tf1.truncated_normal_initializer(stddev=deviation, seed=1)


def variable(name, shape, initializer, trainable=True):
    return tf1.get_variable(name, shape, tf.float32, initializer=initializer, trainable=trainable)


def dense(name, x, units, inputs):
    with tf1.variable_scope(name):
        kernel = variable("kernel", [inputs, units], normal())
        return tf.nn.bias_add(tf.matmul(x, kernel), variable("bias", [units], tf1.zeros_initializer()))


# --- ResNet-50 ---


def conv(name, x, filters, size, stride=1):
    with tf1.variable_scope(name):
        channels = int(x.shape[-1])
        kernel = variable("kernel", [size, size, channels, filters], normal(math.sqrt(2 / (size * size * channels))))
        return tf.nn.conv2d(x, kernel, strides=stride, padding="SAME")


def batch_norm(name, x):
    with tf1.variable_scope(name):
        channels = [int(x.shape[-1])]
        gamma = variable("gamma", channels, tf1.ones_initializer())
        beta = variable("beta", channels, tf1.zeros_initializer())
        averages = [
            variable("moving_mean", channels, tf1.zeros_initializer(), trainable=False),
            variable("moving_variance", channels, tf1.ones_initializer(), trainable=False),
        ]
        y, *batch = tf1.nn.fused_batch_norm(x, gamma, beta, epsilon=1e-5)
        for average, value in zip(averages, batch):
            update = tf1.assign_sub(average, (average - value) * 0.1)
            tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, update.op)
        return y


def bottleneck(name, x, filters, stride):
    with tf1.variable_scope(name):
        shortcut = x
        if stride != 1 or int(x.shape[-1]) != 4 * filters:
            shortcut = batch_norm("shortcut_bn", conv("shortcut", x, 4 * filters, 1, stride))
        x = tf.nn.relu(batch_norm("bn_1", conv("conv_1", x, filters, 1)))
        x = tf.nn.relu(batch_norm("bn_2", conv("conv_2", x, filters, 3, stride)))
        x = batch_norm("bn_3", conv("conv_3", x, 4 * filters, 1))
        return tf.nn.relu(x + shortcut)


def resnet50():
    images = tf1.placeholder(tf.float32, [None, 224, 224, 3], name="images")
    labels = tf1.placeholder(tf.int32, [None], name="labels")
    x = tf.nn.relu(batch_norm("bn", conv("conv", images, 64, 7, 2)))
    x = tf.nn.max_pool2d(x, 3, 2, "SAME")
    for stage, (blocks, filters) in enumerate([(3, 64), (4, 128), (6, 256), (3, 512)]):
        for block in range(blocks):
            x = bottleneck(f"stage_{stage}/block_{block}", x, filters, 2 if stage > 0 and block == 0 else 1)
    logits = dense("logits", tf.reduce_mean(x, [1, 2]), 1000, 2048)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    penalties = [tf.nn.l2_loss(v) for v in tf1.trainable_variables() if "kernel" in v.op.name]
    loss = tf.add(tf.reduce_mean(losses), 1e-4 * tf.add_n(penalties), name="loss")
    step = tf1.train.get_or_create_global_step()
    rate = tf1.train.piecewise_constant(tf.cast(step, tf.int32), [30000, 60000], [0.1, 0.01, 0.001])
    with tf.control_dependencies(tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)):
        tf1.train.MomentumOptimizer(rate, 0.9).minimize(loss, global_step=step, name="train_op")


# --- BERT-large ---


def layer_norm(name, x, hidden):
    with tf1.variable_scope(name):
        gamma = variable("gamma", [hidden], tf1.ones_initializer())
        beta = variable("beta", [hidden], tf1.zeros_initializer())
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-12)


def dropout(x):
    return tf1.nn.dropout(x, rate=0.1, seed=1)


def gelu(x):
    return 0.5 * x * (1.0 + tf.math.erf(x / math.sqrt(2.0)))


def attention(x, bias, batch, length, hidden, heads):
    def split(name):
        y = tf.reshape(dense(name, x, hidden, hidden), tf.stack([batch, length, heads, hidden // heads]))
        return tf.transpose(y, [0, 2, 1, 3])

    query, key, value = split("query"), split("key"), split("value")
    scores = tf.matmul(query, key, transpose_b=True) / math.sqrt(hidden // heads)
    context = tf.matmul(dropout(tf.nn.softmax(scores + bias)), value)
    return tf.reshape(tf.transpose(context, [0, 2, 1, 3]), [-1, hidden])


def bert_large(layers=24, hidden=1024, heads=16, length=128, words=30522):
    ids = tf1.placeholder(tf.int32, [None, length], name="input_ids")
    segments = tf1.placeholder(tf.int32, [None, length], name="segment_ids")
    mask = tf1.placeholder(tf.float32, [None, length], name="input_mask")
    labels = tf1.placeholder(tf.int32, [None, length], name="labels")
    next_labels = tf1.placeholder(tf.int32, [None], name="next_sentence_labels")
    batch = tf.shape(ids)[0]
    with tf1.variable_scope("embeddings"):
        table = variable("word_embeddings", [words, hidden], normal())
        x = tf.nn.embedding_lookup(table, ids)
        x += tf.nn.embedding_lookup(variable("segment_embeddings", [2, hidden], normal()), segments)
        x += variable("position_embeddings", [length, hidden], normal())
        x = dropout(layer_norm("layer_norm", x, hidden))
    x = tf.reshape(x, [-1, hidden])
    bias = (1.0 - tf.reshape(mask, tf.stack([batch, 1, 1, length]))) * -10000.0
    for layer in range(layers):
        with tf1.variable_scope(f"encoder/layer_{layer}"):
            y = dense("attention_output", attention(x, bias, batch, length, hidden, heads), hidden, hidden)
            x = layer_norm("attention_norm", x + dropout(y), hidden)
            y = dense("output", gelu(dense("intermediate", x, 4 * hidden, hidden)), hidden, 4 * hidden)
            x = layer_norm("output_norm", x + dropout(y), hidden)
    with tf1.variable_scope("cls"):
        y = layer_norm("norm", gelu(dense("transform", x, hidden, hidden)), hidden)
        logits = tf.matmul(y, table, transpose_b=True)
        logits = tf.nn.bias_add(logits, variable("bias", [words], tf1.zeros_initializer()))
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(labels, [-1]), logits=logits)
        first = tf.reshape(x, tf.stack([batch, length, hidden]))[:, 0, :]
        pooled = tf.tanh(dense("pooler", first, hidden, hidden))
        next_losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=next_labels, logits=dense("next", pooled, 2, hidden)
        )
    loss = tf.add(tf.reduce_mean(losses), tf.reduce_mean(next_losses), name="loss")
    step = tf1.train.get_or_create_global_step()
    rate = tf1.train.polynomial_decay(1e-4, step, 1000000, 0.0)
    variables = tf1.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 1.0)
    optimizer = tf1.train.AdamOptimizer(rate, epsilon=1e-6)
    optimizer.apply_gradients(zip(gradients, variables), global_step=step, name="train_op")


# --- Inception v3 ---


def unit(x, name, filters, size, stride=1, padding="SAME"):
    """A convolution with its batch norm; `size` is a number or two."""
    height, width = size if isinstance(size, tuple) else (size, size)
    with tf1.variable_scope(name):
        kernel = variable("kernel", [height, width, int(x.shape[-1]), filters], normal())
        return tf.nn.relu(batch_norm("bn", tf.nn.conv2d(x, kernel, stride, padding)))


def branches(x, name, *paths, pool=None, stride=1):
    """Paths of units side by side, and one of a pool. A unit that is a tuple of two ends its path in both."""
    results = []
    with tf1.variable_scope(name):
        for index, path in enumerate(paths):
            h, ends = x, []
            for depth, each in enumerate(path):
                last = depth == len(path) - 1
                kind = {"stride": stride, "padding": "VALID"} if last and stride > 1 else {}
                if isinstance(each, list):
                    ends = [unit(h, f"path_{index}/{depth}_{k}", *one) for k, one in enumerate(each)]
                else:
                    h = unit(h, f"path_{index}/{depth}", *each, **kind)
            results += ends or [h]
        if stride > 1:
            results.append(tf.nn.max_pool2d(x, 3, stride, "VALID"))
        elif pool:
            results.append(unit(tf.nn.avg_pool2d(x, 3, 1, "SAME"), "pool", pool, 1))
        return tf.concat(results, 3)


def inception():
    images = tf1.placeholder(tf.float32, [None, 299, 299, 3], name="images")
    labels = tf1.placeholder(tf.int32, [None], name="labels")
    x = images
    for index, (filters, size, stride, padding) in enumerate(
        [(32, 3, 2, "VALID"), (32, 3, 1, "VALID"), (64, 3, 1, "SAME"), (0, 3, 2, "VALID"), (80, 1, 1, "VALID"),
         (192, 3, 1, "VALID"), (0, 3, 2, "VALID")]
    ):
        x = unit(x, f"stem_{index}", filters, size, stride, padding) if filters else tf.nn.max_pool2d(x, size, 2, padding)
    for index, pool in enumerate((32, 64, 64)):
        x = branches(x, f"a_{index}", [(64, 1)], [(48, 1), (64, 5)], [(64, 1), (96, 3), (96, 3)], pool=pool)
    x = branches(x, "b", [(384, 3)], [(64, 1), (96, 3), (96, 3)], stride=2)
    for index, n in enumerate((128, 160, 160, 192)):
        long = [(n, 1), (n, (7, 1)), (n, (1, 7)), (n, (7, 1)), (192, (1, 7))]
        x = branches(x, f"c_{index}", [(192, 1)], [(n, 1), (n, (1, 7)), (192, (7, 1))], long, pool=192)
    side = unit(unit(tf.nn.avg_pool2d(x, 5, 3, "VALID"), "side_0", 128, 1), "side_1", 768, 5, 1, "VALID")
    side = dense("side_logits", tf.reduce_mean(side, [1, 2]), 1000, 768)
    x = branches(x, "d", [(192, 1), (320, 3)], [(192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3)], stride=2)
    for index in range(2):
        both = [(384, (1, 3)), (384, (3, 1))]
        x = branches(x, f"e_{index}", [(320, 1)], [(384, 1), both], [(448, 1), (384, 3), both], pool=192)
    logits = dense("logits", tf.reduce_mean(x, [1, 2]), 1000, 2048)
    losses = [tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=l) for l in (logits, side)]
    loss = tf.add(tf.reduce_mean(losses[0]), 0.4 * tf.reduce_mean(losses[1]), name="loss")
    with tf.control_dependencies(tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)):
        step = tf1.train.get_or_create_global_step()
        tf1.train.MomentumOptimizer(0.01, 0.9).minimize(loss, global_step=step, name="train_op")


# --- Many nodes, functions, variables ---


def lstm(words=656, units=64):
    x, y = tf1.placeholder(tf.float32, [None, words, units], name="x"), tf1.placeholder(tf.int32, [None], name="y")
    steps = tf.unstack(x, words, 1)
    for layer in range(2):
        w = variable(f"w{layer}", [2 * units, 4 * units], normal())
        b = variable(f"b{layer}", [4 * units], tf1.zeros_initializer())
        c = h = tf.zeros([tf.shape(x)[0], units])
        for index, word in enumerate(steps):
            i, j, f, o = tf.split(tf.matmul(tf.concat([word, h], 1), w) + b, 4, 1)
            c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
            steps[index] = h = tf.tanh(c) * tf.sigmoid(o)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=dense("logits", h, 10, units))
    tf1.train.AdamOptimizer(1e-3).minimize(tf.reduce_mean(losses, name="loss"), name="train_op")


def functions(layers=1667, width=8):
    h = x = tf1.placeholder(tf.float32, [None, width], name="x")
    kernel = variable("kernel", [width, width], normal())
    for layer in range(layers):

        @tf.function
        def step(h, w):
            return tf.tanh(tf.matmul(h, w))

        h = step(h, kernel)
    loss = tf.reduce_mean(tf.square(h - x), name="loss")
    tf1.train.GradientDescentOptimizer(0.01).minimize(loss, name="train_op")


def variables(count=10000, width=8):
    h = x = tf1.placeholder(tf.float32, [None, width], name="x")
    for index in range(count):
        h = h + variable(f"layer_{index // 100}/b{index % 100}", [width], tf1.zeros_initializer())
    loss = tf.reduce_mean(tf.square(h - x), name="loss")
    tf1.train.GradientDescentOptimizer(0.01).minimize(loss, name="train_op")


MODELS = {
    "resnet50": resnet50,
    "bert_large": bert_large,
    "inception": inception,
    "lstm": lstm,
    "functions": functions,
    "variables": variables,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help="default: all")
    parser.add_argument("--out", default=".", help="folder")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    for name in options.models or MODELS:
        start, graph = time.monotonic(), tf.Graph()
        with graph.as_default():
            tf1.get_variable_scope().set_use_resource(True)
            MODELS[name]()
            tf1.variables_initializer(tf1.global_variables(), name="init")
            saver = tf1.train.Saver()
            path = os.path.join(options.out, name + ".meta")
            tf1.train.export_meta_graph(path, graph=graph, saver_def=saver.as_saver_def())
        nodes = len(graph.get_operations())
        print(f"{path}: {nodes} nodes, {os.path.getsize(path)} bytes, {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
