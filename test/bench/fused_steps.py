#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Steps in TensorFlow (tensorflow-cpu 2.21) with and without buckets: 200 small variables, collectives.

    fused_steps.py GRAFT_OPT [--replicas=N] [--rounds=R] [--must=RATIO]

Prints `ratio R fused S unfused S`, the medians of rounds that take turns in one process. Status 1 below RATIO.
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

VARIABLES, BATCH, WIDTH = 200, 16, 16


def export(path):
    """A sum of 200 linear maps: as little beside the reductions as a gradient for each can have."""
    with tf.Graph().as_default():
        tf1.get_variable_scope().set_use_resource(True)
        x, y = tf1.placeholder(tf.float32, [None, WIDTH], "x"), tf1.placeholder(tf.float32, [None, WIDTH], "y")
        terms = []
        for i in range(VARIABLES):
            start = tf1.random_uniform_initializer(-0.01, 0.01, seed=i + 1)
            terms.append(tf.matmul(x, tf1.get_variable(f"w{i}", [WIDTH, WIDTH], initializer=start)))
        loss = tf.reduce_mean(tf.square(tf.add_n(terms) - y), name="loss")
        tf.group(tf1.train.GradientDescentOptimizer(0.001).minimize(loss), name="train_op")
        tf1.variables_initializer(tf1.global_variables(), name="init")
        tf1.train.export_meta_graph(path)


class Steps:
    def __init__(self, path, replicas):
        with tf.Graph().as_default() as graph:
            tf1.train.import_meta_graph(path)
        config = tf1.ConfigProto(device_count={"CPU": replicas}, allow_soft_placement=False)
        config.inter_op_parallelism_threads = config.intra_op_parallelism_threads = 2
        self.session = tf1.Session(graph=graph, config=config)
        self.session.run("init")
        self.train = self.session.make_callable(["loss:0", "train_op"], ["x:0", "y:0"])

    def run(self, feeds, count):
        """Seconds of one step, and the last loss."""
        start = time.monotonic()
        for _ in range(count):
            loss = self.train(*feeds)[0]
        return (time.monotonic() - start) / count, loss


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graft")
    parser.add_argument("--replicas", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--must", type=float, default=0.0)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    feeds = [rng.uniform(-1, 1, (BATCH, WIDTH)).astype("f") for _ in range(2)]
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "model.meta")
        export(source)
        flags = [f"--replicas={options.replicas}", "--device-type=CPU", "--reduction=collective"]
        forms = {}
        for name, extra in (("unfused", []), ("fused", ["--bucket-bytes=64M"])):
            out = os.path.join(folder, name + ".meta")
            subprocess.run([options.graft, source, "-o", out, *flags, *extra], check=True)
            forms[name] = Steps(out, options.replicas)
        seconds = {name: [] for name in forms}
        for turn in range(options.rounds + 1):
            losses = {}
            for name, form in forms.items():
                wall, losses[name] = form.run(feeds, 5)
                if turn > 0:  # the first is for TensorFlow to get ready
                    seconds[name].append(wall)
            if not np.allclose(losses["fused"], losses["unfused"], rtol=1e-4):
                sys.exit(f"fused_steps.py: losses differ: {losses}")
        medians = {name: statistics.median(walls) for name, walls in seconds.items()}
        ratio = medians["unfused"] / medians["fused"]
        print(f"ratio {ratio:.2f} fused {medians['fused']:.5f} unfused {medians['unfused']:.5f}")
        if ratio < options.must:
            sys.exit(1)


if __name__ == "__main__":
    main()
