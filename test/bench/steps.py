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
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import tensorflow as tf
import yardsticks
from step_models import MODELS

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
tf1.logging.set_verbosity(tf1.logging.ERROR)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GRAFT = os.environ.get("GRAFT_OPT") or os.path.join(ROOT, "build", "release", "bin", "graft-opt")
FIRST_STEPS = 3  # how often a graph is made anew


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
