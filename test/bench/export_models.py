#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports training graphs of real size with TensorFlow (tensorflow-cpu 2.21), for performance.py.

    resnet50.meta     ResNet-50 v1: bottleneck blocks, fused batch norm, penalties, Momentum
    bert_large.meta   BERT-large: 24 layers, hidden 1024, masked words, clipping by the global norm, Adam

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


MODELS = {"resnet50": resnet50, "bert_large": bert_large}


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
