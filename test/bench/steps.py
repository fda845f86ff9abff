#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast the steps of rewritten graphs are: ratios of two graphs that run by turns in one process.

    python test/bench/steps.py [--replicas 2,4] [--rounds R] [--only NAME] [--write docs/Performance.md]

Models that graft replicated, against MirroredStrategy's graph of the same: the time of a step, and that of everything up to
the end of the first step, import of the file or building of the graph included. (Buckets are measured by fused_steps.py.)

Needs TensorFlow, and graft-opt of the preset `release` (or GRAFT_OPT). A figure is the median of the ratios of the
rounds; what is measured alternates within a round, so that a busy machine slows both.
"""

import argparse
import dataclasses
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Callable, Sequence, Tuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import tensorflow as tf
import yardsticks

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
tf1.logging.set_verbosity(tf1.logging.ERROR)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GRAFT = os.environ.get("GRAFT_OPT") or os.path.join(ROOT, "build", "release", "bin", "graft-opt")
FIRST_STEPS = 3  # how often a graph is made anew


def variable(name, shape, scale=None):
    scale = scale or 1.0 / np.sqrt(max(1, int(np.prod(shape[:-1]))))
    return tf1.get_variable(name, shape, initializer=tf1.random_uniform_initializer(-scale, scale, seed=1))


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


# --- Graphs. ---


def single(fill, path):
    """A graph for one device."""
    with tf.Graph().as_default() as graph:
        tf1.get_variable_scope().set_use_resource(True)
        fill()
        tf1.variables_initializer(tf1.global_variables(), name="init")
        tf1.train.export_meta_graph(path, graph=graph)


def plain(model):
    loss = model.loss(*model.placeholders())
    tf.identity(loss, "loss")
    tf.group(model.optimizer().minimize(loss), name="train_op")


def rewrite(source, replicas, *flags):
    out = source + "".join(flags).replace("/", "") + ".out.meta"
    command = [GRAFT, source, "-o", out, f"--replicas={replicas}", "--device-type=CPU", *flags]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return out


def imported(path):
    with tf.Graph().as_default() as graph:
        tf1.train.import_meta_graph(path)
    return graph


def rewritten(source, replicas, *flags):
    return imported(rewrite(source, replicas, *flags))


def mirrored(model, replicas):
    """MirroredStrategy's graph, in which each replica takes its part of the same feeds."""
    with tf.Graph().as_default() as graph:
        strategy = tf.distribute.MirroredStrategy([f"/cpu:{i}" for i in range(replicas)])
        x, y = model.placeholders()
        parts = list(zip(tf.split(x, replicas), tf.split(y, replicas)))
        with strategy.scope():
            own = model.optimizer()

            def step():
                replica = tf.distribute.get_replica_context()._replica_id_in_sync_group
                with tf1.variable_scope("model", reuse=tf1.AUTO_REUSE):
                    loss = model.loss(*parts[replica])
                    with tf.control_dependencies([own.minimize(loss)]):
                        return tf.identity(loss)

            losses = strategy.run(step)
            tf.identity(strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None), "loss")
            tf.group(*strategy.experimental_local_results(losses), name="train_op")
        tf1.variables_initializer(tf1.global_variables(), name="init")
    return graph


def session(graph, replicas):
    config = tf1.ConfigProto(device_count={"CPU": replicas}, allow_soft_placement=False)
    result = tf1.Session(graph=graph, config=config)
    result.run("init")
    return result


# --- Measuring. ---


def interleave(graphs, feeds, replicas, rounds, steps, target="train_op"):
    """Seconds of a step of each graph, by round."""
    sessions = [session(graph, replicas) for graph in graphs]
    for s in sessions:
        for _ in range(3):
            s.run([target], feeds)
    times = [[] for _ in graphs]
    for _ in range(rounds):
        for s, found in zip(sessions, times):
            start = time.perf_counter()
            for _ in range(steps):
                s.run([target], feeds)
            found.append((time.perf_counter() - start) / steps)
    for s in sessions:
        s.close()
    return times


def first_step(make, feeds, replicas):
    """Seconds from nothing to the end of a step."""
    start = time.perf_counter()
    with session(make(), replicas) as s:
        s.run("train_op", feeds)
        return time.perf_counter() - start


def ratio(times):
    ours, theirs = times
    return statistics.median(a / b for a, b in zip(ours, theirs))


def against_mirrored(model, replicas, rounds):
    """The ratios of a step, and of all up to the end of the first."""
    source = os.path.join(tempfile.mkdtemp(), "single.meta")
    single(lambda: plain(model), source)
    out, feeds = rewrite(source, replicas, *model.flags), model.feeds()
    makers = [lambda: imported(out), lambda: mirrored(model, replicas)]
    first = zip(*([first_step(make, feeds, replicas) for make in makers] for _ in range(FIRST_STEPS)))
    graphs, losses = [make() for make in makers], []
    for graph in graphs:
        with session(graph, replicas) as s:
            losses.append([s.run(["loss:0", "train_op"], feeds)[0] for _ in range(3)])
    assert np.allclose(*losses, rtol=1e-3), f"{model.name}: the graphs compute other losses: {losses}"
    return ratio(interleave(graphs, feeds, replicas, rounds, 10)), ratio(first)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicas", default="2,4", help="numbers of replicas")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="", help="models whose name this pattern fits")
    parser.add_argument("--write", metavar="FILE", help="put the table into this page")
    options = parser.parse_args()
    counts = [int(n) for n in options.replicas.split(",")]
    table = ["| | " + " | ".join(f"{n} replicas: a step | until the first is done" for n in counts) + " |"]
    table.append("|---" * (1 + 2 * len(counts)) + "|")
    for model in MODELS:
        if not re.search(options.only, model.name):
            continue
        cells = [f"{r:.2f}" for n in counts for r in against_mirrored(model, n, options.rounds)]
        table.append("| " + " | ".join([model.name, *cells]) + " |")
        print(table[-1], flush=True)
    if options.write:
        yardsticks.write_page(options.write, "steps.py", "\n".join(table))
    return 0


if __name__ == "__main__":
    sys.exit(main())
