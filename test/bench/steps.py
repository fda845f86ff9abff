#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast the steps of rewritten graphs are: ratios of two graphs that run by turns in one process.

    python test/bench/steps.py [--replicas N] [--rounds R]

A CNN and an MLP that graft replicated, against MirroredStrategy's graph of the same model: the time of a step. (Buckets are
measured by fused_steps.py.)

Needs TensorFlow, and graft-opt of the preset `release` (or GRAFT_OPT). A figure is the median of the ratios of the
rounds; what is measured alternates within a round, so that a busy machine slows both.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
tf1.logging.set_verbosity(tf1.logging.ERROR)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GRAFT = os.environ.get("GRAFT_OPT") or os.path.join(ROOT, "build", "release", "bin", "graft-opt")
BATCH = 64


def variable(name, shape):
    scale = 1.0 / np.sqrt(max(1, int(np.prod(shape[:-1]))))
    return tf1.get_variable(name, shape, initializer=tf1.random_uniform_initializer(-scale, scale, seed=1))


def cnn(x, y):
    h = x
    for i, (inside, outside) in enumerate(((3, 16), (16, 32), (32, 32))):
        h = tf.nn.relu(tf.nn.conv2d(h, variable(f"conv{i}", [3, 3, inside, outside]), 1, "SAME"))
        h = tf.nn.max_pool2d(h, 2, 2, "SAME")
    logits = tf.matmul(tf.reshape(h, [-1, 512]), variable("dense", [512, 10]))
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)


def mlp(x, y):
    h = tf.reshape(x, [-1, 32 * 32 * 3])
    for i, (inside, outside) in enumerate(((32 * 32 * 3, 256), (256, 256), (256, 256))):
        h = tf.nn.relu(tf.matmul(h, variable(f"w{i}", [inside, outside])) + variable(f"b{i}", [outside]))
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=tf.matmul(h, variable("out", [256, 10])))


def placeholders():
    return tf1.placeholder(tf.float32, [BATCH, 32, 32, 3], "x"), tf1.placeholder(tf.int32, [BATCH], "y")


def optimizer():
    return tf1.train.MomentumOptimizer(0.01, 0.9)


def single(fill, path):
    """A graph for one device."""
    with tf.Graph().as_default() as graph:
        tf1.get_variable_scope().set_use_resource(True)
        fill()
        tf1.variables_initializer(tf1.global_variables(), name="init")
        tf1.train.export_meta_graph(path, graph=graph)


def plain(model):
    x, y = placeholders()
    loss = tf.reduce_sum(model(x, y)) / BATCH
    tf.identity(loss, "loss")
    tf.group(optimizer().minimize(loss), name="train_op")


def rewritten(source, replicas, *flags):
    out = source + "".join(flags).replace("/", "") + ".out.meta"
    command = [GRAFT, source, "-o", out, f"--replicas={replicas}", "--device-type=CPU", *flags]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    with tf.Graph().as_default() as graph:
        tf1.train.import_meta_graph(out)
    return graph


def mirrored(model, replicas):
    """MirroredStrategy's graph, in which each replica takes its part of the same feeds."""
    with tf.Graph().as_default() as graph:
        strategy = tf.distribute.MirroredStrategy([f"/cpu:{i}" for i in range(replicas)])
        x, y = placeholders()
        parts = list(zip(tf.split(x, replicas), tf.split(y, replicas)))
        with strategy.scope():
            own = optimizer()

            def step():
                replica = tf.distribute.get_replica_context()._replica_id_in_sync_group
                with tf1.variable_scope("model", reuse=tf1.AUTO_REUSE):
                    loss = tf.reduce_sum(model(*parts[replica])) / BATCH
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


def ratio(times):
    ours, theirs = times
    return statistics.median(a / b for a, b in zip(ours, theirs))


def against_mirrored(replicas, rounds):
    rng = np.random.default_rng(1)
    feeds = {"x:0": rng.random((BATCH, 32, 32, 3), "float32"), "y:0": rng.integers(0, 10, BATCH).astype("int32")}
    for name, model in (("cnn", cnn), ("mlp", mlp)):
        source = os.path.join(tempfile.mkdtemp(), "single.meta")
        single(lambda: plain(model), source)
        graphs = [rewritten(source, replicas), mirrored(model, replicas)]
        losses = []
        for graph in graphs:
            with session(graph, replicas) as s:
                losses.append([s.run(["loss:0", "train_op"], feeds)[0] for _ in range(3)])
        assert np.allclose(*losses, rtol=1e-4), f"{name}: the graphs compute other losses: {losses}"
        times = interleave(graphs, feeds, replicas, rounds, 10)
        print(f"{name}, {replicas} replicas: step / MirroredStrategy's step: {ratio(times):.2f} (median of {rounds})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    against_mirrored(options.replicas, options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
