# SPDX-License-Identifier: Apache-2.0
"""docs/examples/estimator.py: train_and_evaluate of an Estimator whose model_fn imports the graph of its worker.

Needs TensorFlow 1.15, the last but few to have Estimators: GRAFT_TF1_PYTHON, as test_tf1.py says.
"""

import json
import os
import re
import subprocess

import harness
import numpy as np
import pytest
import test_tf1

EXPORT = """
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
tf.set_random_seed(1)
x = tf.placeholder(tf.float32, [None, 4], "x")
y = tf.placeholder(tf.float32, [None, 1], "y")
hidden = tf.nn.relu(tf.matmul(x, tf.get_variable("w1", [4, 8])))
loss = tf.reduce_mean(tf.square(tf.matmul(hidden, tf.get_variable("w2", [8, 1])) - y), name="loss")
tf.train.AdamOptimizer(0.05).minimize(loss, tf.train.get_or_create_global_step(), name="train")
tf.train.export_meta_graph("mlp.meta", saver_def=tf.train.Saver().saver_def)
"""
STEPS = 20


def test_train_and_evaluate(tmp_path):
    """A chief, a worker, a server and an evaluator: the steps of the single device, whose graph the evaluator has."""
    python, reason = test_tf1.find_python()
    if python is None:
        pytest.skip(reason)
    environment = {**test_tf1.environment(), "CUDA_VISIBLE_DEVICES": ""}
    with open(tmp_path / "cluster.json", "w") as file:
        json.dump({"cluster": {job: ["localhost:0"] for job in ("chief", "worker", "ps", "evaluator")}}, file)
    made = subprocess.run([python, "-c", EXPORT], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert made.returncode == 0, made.stderr
    source, files = str(tmp_path / "mlp.meta"), str(tmp_path / "worker-%d.meta")
    flags = ["--mode=between-graph", f"--cluster={tmp_path / 'cluster.json'}", "--strategy=ps", "--device-type=CPU"]
    harness.run_graft([source, "-o", files, *flags])
    launch = os.path.join(os.path.dirname(harness.graft_opt()), "graft-launch")
    script = os.path.join(harness.ROOT, "docs", "examples", "estimator.py")
    # The evaluator may not have the last checkpoint when the others have ended, and is not waited for.
    done = subprocess.run(
        [launch, "cluster.json", "--timeout=150", "--", python, "-u", script, source, files, "trained", str(STEPS)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    ends = dict(re.findall(r"\[(\w+)/0\] .*Loss for final step: (\S+?)\.?\n", done.stderr))
    rows = np.random.RandomState(0).rand(8, 4).astype(np.float32)
    feeds = {"x:0": rows, "y:0": rows.sum(1, keepdims=True)}
    trained = str(tmp_path / "trained" / "model.ckpt")
    with harness.Session(source) as single:
        single.restore(f"{trained}-{STEPS}")
        got = single.values()
        single.restore(f"{trained}-0")
        losses = {0: None}
        for step in range(STEPS):
            losses[step + 1] = single.run(["loss:0", "train"], feeds)[0]
        harness.assert_all_close(got, single.values(), f"after {STEPS} steps")
        losses[STEPS + 1] = single.run("loss:0", feeds)
    assert sorted(ends) == ["chief", "worker"]
    for task, loss in ends.items():
        harness.assert_close(np.float32(loss), losses[STEPS], f"the last loss of the {task}")
    # The evaluator has the loss of the step after the checkpoint.
    found = re.findall(r"Saving dict for global step (\d+): .*loss = (\S+)", done.stderr)
    assert found, done.stderr[-5000:]
    for step, loss in found:
        harness.assert_close(np.float32(loss), losses[int(step) + 1], f"evaluated at step {step}", slack=10)
