# SPDX-License-Identifier: Apache-2.0
"""The synthetic training graph of the benchmarks is one that TensorFlow builds, runs and trains alike when rewritten;
and the cost of a rewrite grows with the input, not with the replicas.

The generator is a program of the build, `bench/generate` beside `bin/graft-opt`; GRAFT_BENCH names its folder.
"""

import functools
import os
import re
import subprocess

import harness
import numpy as np
import pytest
import tensorflow as tf
from harness import Options

tf1 = tf.compat.v1

WIDTH = 8
ROWS = 12


@functools.lru_cache(maxsize=None)
def generated(nodes: int, extension: str = ".meta") -> str:
    folder = os.environ.get("GRAFT_BENCH") or os.path.join(os.path.dirname(harness.graft_opt()), "..", "bench")
    program = os.path.join(folder, "generate")
    assert os.path.exists(program), f"there is no {program}: configure with GRAFT_BENCH=ON, or set GRAFT_BENCH"
    path = os.path.join(harness.workdir(), f"generated{nodes}{extension}")
    subprocess.run([program, str(nodes), path, str(WIDTH)], check=True, stdout=subprocess.DEVNULL)
    return path


def build(blocks: int):
    """The output that generate.cpp documents."""
    graph = tf.Graph()
    with graph.as_default():
        tf1.get_variable_scope().set_use_resource(True)
        x = tf1.placeholder(tf.float32, [None, WIDTH], name="x")
        y = tf1.placeholder(tf.float32, [None, WIDTH], name="y")
        h, seed = x, 0
        for b in range(blocks):
            shortcut = h
            with tf1.variable_scope(f"model/encoder_stack/block_{b}"):
                for layer in range(2):
                    with tf1.variable_scope(f"feed_forward/dense_{layer}"):
                        seed += 1
                        uniform = tf1.random_uniform_initializer(-0.5, 0.5, seed=seed)
                        kernel = tf1.get_variable("kernel", [WIDTH, WIDTH], initializer=uniform)
                        bias = tf1.get_variable("bias", [WIDTH], initializer=tf1.zeros_initializer())
                        h = tf.nn.relu(tf.nn.bias_add(tf.matmul(h, kernel), bias))
                h = tf.add(shortcut, h, name="residual/add")
        loss = tf.reduce_mean(tf.square(h - y), name="loss")
        step = tf1.train.get_or_create_global_step()
        tf1.train.MomentumOptimizer(0.01, 0.9).minimize(loss, global_step=step, name="train_op")
        tf1.variables_initializer(tf1.global_variables(), name="init")
        saver = tf1.train.Saver()
    meta = tf1.MetaGraphDef()
    meta.graph_def.CopyFrom(graph.as_graph_def(add_shapes=True))
    meta.saver_def.CopyFrom(saver.as_saver_def())
    return meta


def batches(count: int = 3):
    rng = np.random.default_rng(7)
    rows = np.linspace(0.5, 1.5, ROWS)[:, None]
    draw = lambda: (rng.standard_normal((ROWS, WIDTH)) * rows).astype(np.float32)  # noqa: E731
    return [(draw(), draw()) for _ in range(count)]


@pytest.mark.parametrize("nodes", [200, 1000])
def test_generator_is_tensorflow(nodes):
    """Node for node what TensorFlow builds, and about as many nodes as asked for."""
    got = harness.read_meta(generated(nodes))
    assert abs(len(got.graph_def.node) - nodes) <= 60
    blocks = sum(node.name.endswith("/residual/add") for node in got.graph_def.node)
    want = build(blocks)
    assert [n.name for n in got.graph_def.node] == [n.name for n in want.graph_def.node]
    for ours, theirs in zip(got.graph_def.node, want.graph_def.node):
        assert ours == theirs, f"{ours}\nis not\n{theirs}"
    for field in ("filename_tensor_name", "save_tensor_name", "restore_op_name", "version"):
        assert getattr(got.saver_def, field) == getattr(want.saver_def, field), field


@pytest.mark.parametrize("reduction", ["add", "collective"])
@pytest.mark.parametrize("strategy", ["all-reduce", "ps"])
def test_generated_trains_alike(strategy, reduction):
    """1,000 nodes, two replicas: the step of the single-device graph."""
    path = generated(1000)
    reference = harness.run_reference(path, batches())
    out, stderr = harness.rewrite(path, Options(2, strategy, reduction))
    assert stderr == ""
    with harness.Session(out, 2) as session:
        session.restart()
        for i, batch in enumerate(batches()):
            harness.assert_close(session.step(batch), reference.losses[i], f"loss of step {i + 1}")
            session.check(reference.variables[i + 1], f"after step {i + 1}")


@pytest.mark.parametrize("reduction", ["add", "collective"])
@pytest.mark.parametrize("strategy", ["all-reduce", "ps"])
def test_memory_does_not_grow_with_replicas(strategy, reduction, tmp_path):
    """Before the write the program is the same for 2 and for 64 replicas; the write takes twice its bytes at most."""
    path = generated(3000, ".pb")
    for output in (["--emit=none"], ["-o", str(tmp_path / "out.pb")]):
        peaks, written = {}, 0
        for replicas in (2, 64):
            arguments = [path, *output, *Options(replicas, strategy, reduction).arguments()]
            peaks[replicas] = min(harness.cost(arguments)[1] for _ in range(3))
        if output[0] == "-o":
            written = os.path.getsize(output[1]) / 1024
        assert abs(peaks[64] - peaks[2]) <= 0.1 * peaks[2] + 2 * written, f"{output[0]}: {peaks} KiB, {written} KiB written"


def live_nodes(path: str, options: Options) -> int:
    """Nodes of the program in front of the expansion."""
    pipeline = harness.run_graft(["--print-pipeline-passes", *options.arguments(), path])
    text = re.sub(r",?expand-replicas$", "", pipeline.stdout.strip())
    done = harness.run_graft([path, f"--passes={text}", "--emit=summary"])
    return sum(1 for line in done.stdout.splitlines() if " = " in line)


def test_program_does_not_grow_with_replicas():
    """The number of nodes in memory is the same for 2 and for 64 replicas."""
    path = generated(3000, ".pb")
    counts = {n: live_nodes(path, Options(n, reduction="collective")) for n in (2, 64)}
    assert counts[2] == counts[64] > 3000
