# SPDX-License-Identifier: Apache-2.0
"""graft-launch: two workers, in processes of their own, train as docs/Workers.md says."""

import json
import os
import re
import subprocess
import sys

import harness
import numpy as np
import tensorflow.compat.v2 as tf
from models import tf1


def export(path):
    """The model of docs/Python.md, beginning at zero."""
    with tf.Graph().as_default():
        x = tf1.placeholder(tf.float32, [None, 4], "x")
        y = tf1.placeholder(tf.float32, [None, 1], "y")
        w = tf1.get_variable("w", [4, 1], initializer=tf1.zeros_initializer(), use_resource=False)
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y), name="loss")
        tf1.train.GradientDescentOptimizer(0.1).minimize(loss, name="train")
        tf.group(tf1.global_variables_initializer(), name="init")
        tf1.train.export_meta_graph(path, saver_def=tf1.train.Saver().saver_def)


def losses():
    """Those of the whole batch of docs/examples/worker.py."""
    x = np.arange(32).reshape(8, 4) / 32
    y, w = x.sum(axis=1, keepdims=True), np.zeros([4, 1])
    for _ in range(3):
        error = x @ w - y
        yield np.mean(error**2)
        w -= 0.1 * 2 / len(x) * x.T @ error


def test_two_workers():
    folder = harness.workdir()
    export(os.path.join(folder, "model.meta"))
    for i in range(2):
        flags = ["--strategy=ipu-multi-worker", "--workers=2", f"--worker={i}", "--device-type=CPU"]
        harness.run_graft([os.path.join(folder, "model.meta"), "-o", os.path.join(folder, f"worker{i}.meta"), *flags])
    with open(os.path.join(folder, "cluster.json"), "w") as file:
        json.dump({"cluster": {"worker": ["localhost:0", "localhost:0"]}}, file)
    launch = os.path.join(os.path.dirname(harness.graft_opt()), "graft-launch")
    script = os.path.join(harness.ROOT, "docs", "examples", "worker.py")
    done = subprocess.run(
        [launch, "cluster.json", "--timeout=300", "--", sys.executable, "-u", script, "worker{index}.meta"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    for i in range(2):
        own = [line for line in lines if line.startswith(f"[worker/{i}] ")]
        got = [float(re.fullmatch(rf"\[worker/{i}\] step \d: loss (\S+)", line).group(1)) for line in own]
        assert np.allclose(got, list(losses()), atol=1e-4), done.stdout
    assert len(lines) == 6, done.stdout


def test_page():
    """The steps of docs/Workers.md, from one graph file to three processes."""
    environment = {**os.environ, "PATH": os.path.dirname(harness.graft_opt()) + os.pathsep + os.environ["PATH"]}
    page, run = (os.path.join(harness.ROOT, *path) for path in (("docs", "Workers.md"), ("test", "pages", "run_page.py")))
    done = subprocess.run(
        [sys.executable, run, page, f"--python={sys.executable}"], env=environment, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stdout + done.stderr
