# SPDX-License-Identifier: Apache-2.0
"""Each refusal of --certify for files of --staleness matters: each mutant is run in TensorFlow servers, where a worker comes to
be further ahead than it may, or waits for ever, or cannot run."""

import harness
import models
import pytest
import tensorflow.compat.v2 as tf
from models import Spec, tf1
from test_between_async import files
from test_between_graph import Cluster
from test_between_mutants import broken, nodes
from test_between_proof import certify

SPEC = Spec("mlp_adam", "resource")
SOON_MS, LATE_MS = 1500, 6000


def part(meta, word):
    (node,) = nodes(meta, lambda n: n.attr["_graft_part"].s == word)
    return node


def counts(meta):
    return nodes(meta, lambda n: n.op == "AssignAddVariableOp" and n.input[0] == part(meta, b"steps").name)


def count(meta):
    """The node that counts the runs of train_op."""
    (node,) = [n for n in counts(meta) if n.name.startswith("train_op/count")]
    return node


def constant(meta, name):
    (node,) = nodes(meta, lambda n: n.name == name)
    return node.attr["value"].tensor


def no_input(node, gone):
    kept = [i for i in node.input if i != gone]
    assert len(kept) < len(node.input)
    del node.input[:]
    node.input.extend(kept)


def waiting(meta, word):
    counting = [n.name for n in counts(meta)]
    return [n for n in nodes(meta, lambda n: f"^{part(meta, word).name}" in n.input) if n.name not in counting]


def own_slot(metas):
    """Worker 1 counts its steps as those of worker 0."""
    constant(metas[1], count(metas[1]).input[1]).CopyFrom(tf.make_tensor_proto([1, 0], tf.int64))


def own_lead(metas):
    """Worker 0 compares the steps of worker 1 with the least."""
    (own,) = nodes(metas[0], lambda n: n.op == "GatherV2" and n.name.startswith("graft/"))
    constant(metas[0], own.input[1]).CopyFrom(tf.make_tensor_proto(1, tf.int32))


def bound_of_one(metas):
    """Worker 0 may be one step more ahead."""
    (waits,) = nodes(metas[0], lambda n: n.op == "GreaterEqual" and n.name.startswith("graft/"))
    constant(metas[0], waits.input[1]).CopyFrom(tf.make_tensor_proto(2, tf.int64))


def escaped_update(metas):
    """One update of worker 0 does not wait."""
    no_input(waiting(metas[0], b"gate")[0], f"^{part(metas[0], b'gate').name}")


def counted_twice(metas):
    """A step of worker 1 is two."""
    twice = metas[1].graph_def.node.add()
    twice.CopyFrom(count(metas[1]))
    twice.name += "_again"
    (end,) = nodes(metas[1], lambda n: n.name == "train_op")
    end.input.append(f"^{twice.name}")


def counted_before(metas):
    """Worker 0 counts a step before it is let through and its updates are made."""
    (end,) = nodes(metas[0], lambda n: n.name == "train_op")
    end.input.append(count(metas[0]).input[2])
    del count(metas[0]).input[2:]


def not_counted(metas):
    """The name is what it was, without the count."""
    (end,) = nodes(metas[0], lambda n: n.name == "train_op")
    step = count(metas[0]).input[2]
    del end.input[:]
    end.input.append(step)


def other_name(metas):
    """Worker 1 counts in a variable of its own name."""
    part(metas[1], b"steps").attr["shared_name"].s += b"/own"


def other_device(metas):
    """Worker 1 counts on its own device."""
    server = part(metas[1], b"steps").device
    form = {part(metas[1], b"steps").name}
    for n in metas[1].graph_def.node:
        if n.device == server and (n.name.startswith("graft/") or any(i.lstrip("^") in form for i in n.input)):
            n.device = "/job:worker/task:1/device:CPU:0"


def never_zeros(metas):
    """Nothing makes the counts zeros."""
    for n in waiting(metas[0], b"zeros"):
        no_input(n, f"^{part(metas[0], b'zeros').name}")


def always_zeros(metas):
    """Each step makes the counts zeros."""
    nodes(metas[0], lambda n: n.op == "ResourceApplyAdam")[0].input.append(f"^{part(metas[0], b'zeros').name}")


def all_wait(metas):
    """A run that fetches the loss waits, too."""
    (loss,) = nodes(metas[0], lambda n: n.name == "loss")
    loss.input.append(f"^{part(metas[0], b'gate').name}")


def no_call(metas):
    """Worker 1 wakes nobody up."""
    (end,) = nodes(metas[1], lambda n: n.name == "train_op")
    kept = [i for i in end.input if not i.endswith("/put")]
    assert len(kept) < len(end.input)
    del end.input[:]
    end.input.extend(kept)


MUTANTS = [
    (own_slot, "waits for ever"),
    (own_lead, "ahead"),
    (bound_of_one, "ahead"),
    (escaped_update, "an update is made"),
    (counted_twice, "ahead"),
    (counted_before, "waits for ever"),
    (not_counted, "ahead"),
    (other_name, "error"),
    (other_device, "error"),
    (never_zeros, "error"),
    (always_zeros, "ahead"),
    (all_wait, "waits for ever"),
    (no_call, "waits for ever"),
]


class Wrong(Exception):
    pass


def outcome(paths):
    """How a session goes with a bound of 1, up to what is first wrong in it."""
    feed = dict(zip(("x:0", "y:0"), models.batches(SPEC.model, SPEC.dtype)[0]))
    with Cluster(paths, 1) as both:

        def run(worker, what="train_op", soon=False):
            """Returns true if a run ends; the test soon gives up one that may wait for the other."""
            options = tf1.RunOptions(timeout_in_ms=SOON_MS if soon else LATE_MS)
            try:
                both.sessions[worker].run(what, feed, options=options)
                return True
            except tf.errors.DeadlineExceededError:
                return False

        def goes(worker, what="train_op"):
            if not run(worker, what):
                raise Wrong("waits for ever")

        def waits(worker):
            before = both.one(0, both.variables)
            if run(worker, soon=True):
                raise Wrong("ahead")
            try:
                harness.assert_all_close(both.one(0, both.variables), before, "after a run that was given up")
            except AssertionError:
                raise Wrong("an update is made") from None

        both.one(0, "init")
        try:
            goes(0)
            waits(0)
            goes(0, "loss:0")
            late = both.pool.submit(run, 0)
            goes(1)
            if not late.result():
                raise Wrong("waits for ever")
            waits(0)
            goes(1)
            goes(1)
            waits(1)
            goes(0)
            goes(1)
        except Wrong as wrong:
            return str(wrong)
        except tf.errors.OpError:
            return "error"
    return "good"


def mutant(path, edit):
    return broken(files(path, 2, 1, "--staleness=1"), edit)


def test_good():
    """The files are good before the tests below break them."""
    assert outcome(mutant(harness.export(SPEC), lambda metas: None)) == "good"


@pytest.mark.parametrize("edit,want", MUTANTS, ids=lambda v: getattr(v, "__name__", str(v)))
def test_matters(edit, want):
    path = harness.export(SPEC)
    paths = mutant(path, edit)
    ran = certify(paths, path)
    assert ran.returncode == 1 and ("node '" in ran.stderr or "worker" in ran.stderr), ran.stderr
    assert outcome(paths) == want
