# SPDX-License-Identifier: Apache-2.0
"""Resource specs of several machines: one graph, which a session runs on the devices of servers on the loopback."""

import itertools
import os
import re
import tempfile

import harness
import models
import pytest
import test_workers
import tensorflow.compat.v2 as tf
from models import BATCH, STEPS, Spec, tf1

# CPUs of each machine; AutoDist's specs r6 (2 and 2), r9 (2 and 1) and r5 (one machine).
CLUSTERS = {"r6": (2, 2), "r9": (2, 1), "r5": (2,), "chief_last": (1, 2)}


def write_spec(name, cpus):
    """The chief is task 0, wherever the file has it."""
    nodes = [f"  - address: 10.0.0.{i}\n    cpus: {list(range(n))}\n" for i, n in enumerate(cpus)]
    nodes[0] += "    chief: true\n"
    if name == "chief_last":
        nodes.reverse()
    path = os.path.join(tempfile.mkdtemp(dir=harness.workdir()), "resource_spec.yml")
    with open(path, "w", encoding="utf-8") as file:
        file.write("nodes:\n" + "".join(nodes))
    return path


def servers_of(cpus):
    jobs = test_workers.cluster(len(cpus))
    return [
        tf1.train.Server(
            jobs,
            job_name="worker",
            task_index=i,
            config=tf1.ConfigProto(
                device_count={"CPU": n}, inter_op_parallelism_threads=2, intra_op_parallelism_threads=1
            ),
        )
        for i, n in enumerate(cpus)
    ]


def expected_devices(cpus):
    tasks = [f"/job:worker/task:{i}" if len(cpus) > 1 else "" for i in range(len(cpus))]
    return {f"{task}/device:CPU:{i}" for task, n in zip(tasks, cpus) for i in range(n)}


CASES = [
    ("r6", "all-reduce", Spec("mlp_adam", "resource")),
    ("r6", "ps", Spec("embedding", "ref", BATCH)),
    ("r9", "all-reduce", Spec("embedding", "resource")),
    ("r9", "all-reduce", Spec("linear", "ref", BATCH, "sum")),
    ("r9", "ps", Spec("mlp_clip", "resource")),
    ("chief_last", "all-reduce", Spec("mlp_adam", "ref")),
    ("r9", "auto", Spec("embedding", "resource")),
    ("r6", "auto", Spec("mlp_adam", "ref", BATCH)),
    ("r9", "ps-load-balancing", Spec("mlp_adam", "resource")),
    ("r6", "parallax", Spec("embedding", "resource")),
    ("r5", "all-reduce", Spec("mlp_adam", "resource")),
]


@pytest.mark.parametrize("name,strategy,spec", CASES, ids=str)
def test_steps(name, strategy, spec):
    """Losses and variables are those of the single device, also where machines have different numbers of replicas."""
    cpus, want = CLUSTERS[name], harness.reference(spec)
    out = os.path.join(tempfile.mkdtemp(dir=harness.workdir()), "out.meta")
    flags = [f"--resources={write_spec(name, cpus)}", f"--strategy={strategy}", "--strict", "--verify-output"]
    said = harness.run_graft([harness.export(spec), "-o", out, *flags]).stderr
    assert ("have no 'network_bandwidth': 1 Gbit/s" in said) == (len(cpus) > 1), said
    with tf.Graph().as_default() as graph:
        tf1.train.import_meta_graph(out)
        names = {v.op.name: harness.read_name(v) for v in tf1.global_variables()}
        devices = {op.device for op in graph.get_operations() if op.name.startswith("replica_") and op.device}
    assert devices <= expected_devices(cpus), devices
    servers = servers_of(cpus) if len(cpus) > 1 else None
    target = servers[0].target if servers else ""
    config = None if servers else tf1.ConfigProto(device_count={"CPU": cpus[0]})
    options = tf1.RunOptions(timeout_in_ms=test_workers.TIMEOUT_MS, trace_level=tf1.RunOptions.FULL_TRACE)
    with tf1.Session(target, graph=graph, config=config) as session:
        session.run("init")
        harness.assert_all_close(session.run(names), want.variables[0], "after init")
        for i, (x, y) in enumerate(models.batches(spec.model, spec.dtype), start=1):
            ran = tf1.RunMetadata()
            loss, _ = session.run(["loss:0", "train_op"], {"x:0": x, "y:0": y}, options=options, run_metadata=ran)
            harness.assert_close(loss, want.losses[i - 1], f"loss of step {i}")
        harness.assert_all_close(session.run(names), want.variables[STEPS], "at the end")
    # It ran on all of them.
    used = {stats.device for stats in ran.step_stats.dev_stats if stats.node_stats}
    assert len({device for device in used if "CPU" in device}) == sum(cpus), used


@pytest.mark.parametrize("name", ["r6", "r9"])
@pytest.mark.parametrize("kind", ["ref", "resource"])
def test_predicted_bytes(name, kind):
    """The bytes of --plan for `ps` are those that TensorFlow sends between tasks: values one way, gradients the other."""
    spec, cpus = Spec("mlp_adam", kind), CLUSTERS[name]
    resources = f"--resources={write_spec(name, cpus)}"
    path = harness.export(spec)
    plan = harness.run_graft([path, "--plan=yaml", resources]).stdout
    predicted = {n: int(b) for n, b in re.findall(r"strategy: (\S+)\n(?:    .*\n)*?    network-bytes: (\d+)", plan)}
    out = os.path.join(tempfile.mkdtemp(dir=harness.workdir()), "out.meta")
    harness.run_graft([path, "-o", out, resources, "--strategy=ps"])
    with tf.Graph().as_default() as graph:
        tf1.train.import_meta_graph(out)
    options = tf1.RunOptions(timeout_in_ms=test_workers.TIMEOUT_MS, output_partition_graphs=True)
    x, y = models.batches(spec.model, spec.dtype)[0]
    with tf1.Session(servers_of(cpus)[0].target, graph=graph) as session:
        session.run("init")
        ran = tf1.RunMetadata()
        session.run("train_op", {"x:0": x, "y:0": y}, options=options, run_metadata=ran)
    sent = 0
    for node in itertools.chain.from_iterable(part.node for part in ran.partition_graphs):
        ends = {node.attr[key].s.decode().split("/device:")[0] for key in ("send_device", "recv_device")}
        if node.op != "_Send" or len(ends) == 1:
            continue
        # edge_7_hidden/kernel/read; rows of the batch, of which the plan says nothing, are left out.
        source = graph.get_operation_by_name(re.sub(r"^edge_\d+_", "", node.attr["tensor_name"].s.decode()))
        if not source.outputs:
            continue  # a control dependency
        tensor = source.outputs[0]
        if tensor.op.type != "Split":
            assert tensor.shape.is_fully_defined(), tensor
            sent += tensor.shape.num_elements() * tensor.dtype.size
    assert sent == predicted["ps"], predicted
