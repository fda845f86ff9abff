# SPDX-License-Identifier: Apache-2.0
"""Graphs that were built for devices that are not there: under tf.device('/gpu:0'), as most public code is, and for others."""

import os

import numpy as np
import pytest
import tensorflow as tf
from harness import Options, assert_close, rewrite, run_graft, workdir

tf1 = tf.compat.v1
BATCHES = [np.random.RandomState(i).randn(8, 4).astype(np.float32) for i in range(3)]


def export(name, device, update_device=None):
    """A layer under tf.device(device), with a summary, a saver and Adam."""
    path = os.path.join(workdir(), f"{name}.meta")
    with tf.Graph().as_default():
        x = tf1.placeholder(tf.float32, [None, 4], "x")
        with tf1.device(device):
            w = tf1.get_variable("w", initializer=np.linspace(-1, 1, 4, dtype=np.float32).reshape(4, 1), use_resource=True)
            step = tf1.train.get_or_create_global_step()
            loss = tf.reduce_mean(tf.square(tf1.matmul(x, w) - 1.0), name="loss")
            rate = tf1.train.exponential_decay(0.1, step, 2, 0.5)
            gradient = tf1.gradients(loss, w)[0]
        with tf1.device(update_device or device):
            tf1.train.AdamOptimizer(rate).apply_gradients([(gradient, w)], step, name="train")
            tf.group(tf1.global_variables_initializer(), name="init")
        tf1.train.export_meta_graph(path, saver_def=tf1.train.Saver().saver_def)
    return path


def run(path, replicas, soft=False):
    graph = tf.Graph()
    with graph.as_default():
        tf1.train.import_meta_graph(path, clear_devices=soft)
        config = tf1.ConfigProto(device_count={"CPU": replicas}, allow_soft_placement=False)
        with tf1.Session(config=config) as session:
            session.run("init")
            losses = [session.run(["loss:0", "train"], {"x:0": batch})[0] for batch in BATCHES]
            return losses + [session.run("w/Read/ReadVariableOp:0")], {node.device for node in graph.as_graph_def().node}


@pytest.mark.parametrize("strategy", ["all-reduce", "ps", "parallax"])
@pytest.mark.parametrize("replicas", [1, 2])
def test_one_gpu(strategy, replicas):
    """The nodes of the one accelerator go to the replicas: no node is on a device that does not exist."""
    path = export("one_gpu", "/gpu:0")
    want, _ = run(path, 1, soft=True)
    out, _ = rewrite(path, Options(replicas, strategy))
    got, devices = run(out, replicas)
    assert not [name for name in devices if "GPU" in name.upper()]
    for i, (g, w) in enumerate(zip(got, want)):
        assert_close(g, w, f"value {i}")


def test_several_gpus():
    """With several accelerators, the user has to map each."""
    path = export("two_gpus", "/gpu:0", "/gpu:1")
    done = run_graft([path, "--replicas=2", "--device-type=CPU", "--emit=none"], check=False)
    assert done.returncode == 1 and "--device-map=/device:GPU:0=/device:CPU:0" in done.stderr, done.stderr
    want, _ = run(path, 1, soft=True)
    maps = ("--device-map=/gpu:0=/cpu:0", "--device-map=/gpu:1=/cpu:0")
    out, _ = rewrite(path, Options(2, extra=maps))
    got, _ = run(out, 2)
    for i, (g, w) in enumerate(zip(got, want)):
        assert_close(g, w, f"value {i}")


def test_map_alone():
    """Without replicas it is the same graph somewhere else."""
    path = export("alone", "/gpu:3")
    out = os.path.join(workdir(), "alone.cpu.meta")
    run_graft([path, "-o", out, "--device-map=/gpu:3=/cpu:1"])
    want, _ = run(path, 1, soft=True)
    got, devices = run(out, 2)
    assert "/device:CPU:1" in devices
    for i, (g, w) in enumerate(zip(got, want)):
        assert_close(g, w, f"value {i}")
