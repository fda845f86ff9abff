# SPDX-License-Identifier: Apache-2.0
"""Each refusal of --certify for files of workers matters: each mutant is run in TensorFlow servers, where it ends with other
numbers, with an error, or not at all (and then by its timeout)."""

import harness
import models
import numpy as np
import pytest
import tensorflow.compat.v2 as tf
from models import Spec, tf1
from mutations import Program
from tensorflow.core.protobuf import meta_graph_pb2
from test_between_graph import Cluster, rewrite
from test_between_proof import certify

TIMEOUT_MS = 6000
SPEC = Spec("mlp_adam", "resource")


def nodes(meta, fits):
    found = [n for n in meta.graph_def.node if fits(n)]
    assert found, "no node to break"
    return found


def message(meta, ending, source, target):
    return nodes(meta, lambda n: n.name.endswith(f"from_{source}_to_{target}/{ending}"))


def dropped_update(metas):
    """The chief updates all variables but one."""
    Program(metas[0]).delete(nodes(metas[0], lambda n: n.op == "ResourceApplyAdam")[0].name)


def dropped_update_of_a_copy(metas):
    """One worker does not update its copy of one variable."""
    Program(metas[1]).delete(nodes(metas[1], lambda n: n.op == "ResourceApplyAdam")[0].name)


def circle(metas):
    """The worker gives its part when the chief has ended the step, which it does when it has all parts."""
    for put in message(metas[1], "put", 1, 0):
        put.input.extend(f"^{get.name}" for get in message(metas[1], "get", 0, 1))


def count(metas):
    """The chief adds the gradients of all workers but one."""
    for add in nodes(metas[0], lambda n: n.op == "AddN" and n.attr["N"].i == 2 and "_rows/" not in n.name):
        add.attr["N"].i = 1
        del add.input[1]


def not_sent(metas):
    """The worker does not run what it has to send."""
    for node in nodes(metas[1], lambda n: any(i.endswith("_to_0/put") for i in n.input)):
        kept = [i for i in node.input if not i.endswith("_to_0/put")]
        del node.input[:]
        node.input.extend(kept)


def private(metas):
    """A queue has another name in the worker's file."""
    for queue in nodes(metas[1], lambda n: n.op == "FIFOQueueV2" and n.name.endswith("from_1_to_0")):
        queue.attr["shared_name"].s += b"/own"


def other_task(metas):
    """The worker reads a variable where nobody has it."""
    for var in nodes(metas[1], lambda n: n.op == "VarHandleOp" and "job:ps" in n.device):
        var.device = var.device.replace("job:ps", "job:worker")
    for n in metas[1].graph_def.node:
        if n.op == "ReadVariableOp" and "job:ps" in n.device:
            n.device = n.device.replace("job:ps", "job:worker")


MUTANTS = [
    (dropped_update, "ps", "numbers"),
    (dropped_update_of_a_copy, "all-reduce", "numbers"),
    (circle, "ps", "hang"),
    (count, "ps", "numbers"),
    (not_sent, "ps", "hang"),
    (private, "ps", "hang"),
    (other_task, "ps", "error"),
]


def outcome(paths):
    """How two steps end, each of which is run on all workers at the same time. The copies of a worker that has just begun
    are set right after its first step, so one would not show all."""
    want, steps = harness.reference(SPEC), 2
    options = tf1.RunOptions(timeout_in_ms=TIMEOUT_MS)
    with Cluster(paths, 1) as both:
        both.one(0, "init")
        for batch in models.batches(SPEC.model, SPEC.dtype)[:steps]:
            feeds = both.rows(batch)
            runs = [both.pool.submit(both.sessions[i].run, "train_op", feeds(i), options) for i in range(len(paths))]
            failed = [error for error in (run.exception(timeout=60) for run in runs) if error is not None]
            # A run with a timeout has waited; an earlier failure says why.
            if failed:
                return "hang" if all(isinstance(e, tf.errors.DeadlineExceededError) for e in failed) else "error"
        values, copies = both.one(0, both.variables), both.one(-1, both.copies)
    pairs = [(values[name], value) for name, value in want.variables[steps].items()] + list(copies.values())
    return "good" if all(np.allclose(a, b, rtol=1e-4, atol=1e-6) for a, b in pairs) else "numbers"


def broken(paths, edit):
    metas = []
    for path in paths:
        with open(path, "rb") as f:
            metas.append(meta_graph_pb2.MetaGraphDef.FromString(f.read()))
    edit(metas)
    written = [path + ".mutant.meta" for path in paths]
    for path, meta in zip(written, metas):
        with open(path, "wb") as f:
            f.write(meta.SerializeToString(deterministic=True))
    return written


@pytest.mark.parametrize("strategy", ["ps", "all-reduce"])
def test_good(strategy):
    """The files are good before the tests below break them."""
    paths, _ = rewrite(harness.export(SPEC), 2, 1, strategy=strategy)
    assert outcome(broken(paths, lambda metas: None)) == "good"


@pytest.mark.parametrize("edit,strategy,want", MUTANTS, ids=lambda v: getattr(v, "__name__", str(v)))
def test_matters(edit, strategy, want):
    path = harness.export(SPEC)
    paths = broken(rewrite(path, 2, 1, strategy=strategy)[0], edit)
    ran = certify(paths, path)
    assert ran.returncode == 1 and ("node '" in ran.stderr or "worker" in ran.stderr), ran.stderr
    assert outcome(paths) == want
