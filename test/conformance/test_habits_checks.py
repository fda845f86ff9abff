# SPDX-License-Identifier: Apache-2.0
"""The models of `models_habits.py` again: names, checkpoints both ways, where the work ran, double precision.

Default: each model is checked with one strategy, in turn; double precision and checkpoints for every third. --full: all
of it, and the steps for N = 1 to 4 under both strategies.
"""

import collections
import re

import compare
import harness
import models_habits
import pytest
import tensorflow.compat.v1 as tf1
from harness import Options, Session
from models import BATCH, Spec
from models_habits import HABITS
from test_habits import KNOWN

NAMES = [name for name in HABITS if name != "dropout"]
# TensorFlow's own functions take or compute in float32 here.
NO_FLOAT64 = ("dense_proximal_adagrad", "dense_proximal_sgd", "losses_module", "scheduled")
STRATEGIES = ("all-reduce", "ps")


def case(name, replicas, strategy, batch=None, dtype="float32"):
    model, turn = HABITS[name], NAMES.index(name) + replicas
    kind = "ref" if name.startswith("dense_") and turn % 2 else "resource"
    spec = Spec(name, kind, batch, model.losses[turn % len(model.losses)], dtype)
    options = Options(replicas, strategy, ("add", "collective")[turn // 2 % 2], model.flags)
    marks = [pytest.mark.xfail(strict=False, reason=KNOWN[name, batch])] if (name, batch) in KNOWN else []
    return pytest.param(spec, options, marks=marks, id=f"{spec}-{strategy}-{options.reduction}-{replicas}")


def pytest_generate_tests(metafunc):
    if "spec" not in metafunc.fixturenames:
        return
    full, which = metafunc.config.getoption("--full"), metafunc.function.__name__
    chosen = []
    for i, name in enumerate(NAMES):
        batch = (None, BATCH)[i // 2 % 2]
        if which == "test_steps":
            if full:
                chosen += [case(name, n, s, b) for n in (1, 2, 3, 4) for s in STRATEGIES for b in (None, BATCH)]
            elif i % 6 == 0:
                chosen += [case(name, (1, 4)[i // 6 % 2], STRATEGIES[i // 6 % 2], batch)]
        elif which == "test_float64":
            if (full or i % 3 == 0) and name not in NO_FLOAT64:
                chosen.append(case(name, 3, STRATEGIES[i % 2], batch, "float64"))
        elif full:
            chosen += [case(name, n, s, batch) for n in (2, 3) for s in STRATEGIES]
        elif which != "test_checkpoints" or i % 3 == 1:
            chosen.append(case(name, 2, STRATEGIES[i % 2], batch))
    metafunc.parametrize("spec,options", chosen)


def data_of(spec):
    return models_habits.batches(HABITS[spec.model].data, len(HABITS[spec.model].steps), spec.dtype)


def test_steps(spec, options):
    model = HABITS[spec.model]
    path = compare.export(spec, model.build)
    compare.same_steps(path, options, data_of(spec), model.steps, model.fetches, model.after)


def test_float64(spec, options):
    """In double precision nothing is left to rounding: 1e-10."""
    model = HABITS[spec.model]
    path = compare.export(spec, model.build)
    with Session(path) as session:
        assert any(v.dtype.base_dtype == tf1.float64 for v in session.graph.get_collection("variables"))
    compare.same_steps(path, options, data_of(spec), model.steps, model.fetches, model.after)


def test_interface(spec, options):
    """Feeds and fetches keep their types and shapes; each replica owns a copy of each mirrored variable; work is spread."""
    model, path = HABITS[spec.model], compare.export(spec, HABITS[spec.model].build)
    out, _ = harness.rewrite(path, options)
    with Session(path) as single, Session(out, options.replicas) as session:
        for name in ("x:0", "y:0", *model.fetches, *model.after):
            got, want = (s.graph.get_tensor_by_name(name) for s in (session, single))
            assert (got.dtype, got.shape.as_list()) == (want.dtype, want.shape.as_list()), name
        others = list(range(1, options.replicas))
        mirrored = {name for name in session.trainable if session.copies[name]}
        assert bool(mirrored) == (options.strategy == "all-reduce"), f"mirrored: {sorted(mirrored)}"
        for name, copies in session.copies.items():
            assert sorted(copies) in (others, []), f"{name} has copies {sorted(copies)}"
            for replica, value in copies.items():
                assert value.op.device.endswith(f"CPU:{replica}"), f"{value.op.name} is on {value.op.device}"
        check_spread(session, spec, options, model)


def check_spread(session, spec, options, model):
    """Each replica runs as many ops as any other, on its own device, and works on its share of the rows only."""
    (x, y), metadata = data_of(spec)[0], tf1.RunMetadata()
    session.restart(init=False, grappler=False)
    session.run("init")
    session.run(model.steps[0], {"x:0": x, "y:0": y}, metadata=metadata, trace=True)
    ops = {op.name: op for op in session.graph.get_operations()}
    counts, shares = collections.Counter(), collections.Counter()
    for node in harness.executed(metadata):
        match = re.fullmatch(r"replica_(\d+)/([^:]*).*", node.name)
        if not match or f"replica_{match[1]}/{match[2]}" not in ops:
            continue  # TensorFlow's own sends, receives and folded constants
        replica, op = int(match[1]), ops[f"replica_{match[1]}/{match[2]}"]
        if spec.model == "warm_up" and op.type == "Switch":
            continue  # TensorFlow runs both where the predicate is, whatever device they have
        # A node that uses an unreplicated variable runs on the device of the variable.
        assert node.device == replica or options.strategy == "ps", f"{node.name} ran on CPU:{node.device}"
        assert op.device.endswith(f"CPU:{node.device}"), f"{node.name} ran on CPU:{node.device}"
        # The rows of two lookups of half the batch are as many as the batch, and those that a condition selects may be. Constants, which
        # only control edges read, are no work.
        if spec.model not in ("two_lookups", "padding_removed") and op.type != "Const":
            assert node.rows != BATCH, f"{node.name} works on the whole batch"
        counts[replica] += 1
        shares[replica] += node.rows == BATCH // options.replicas
    for replica in range(1, options.replicas):
        assert counts[replica] == counts[1], f"replicas ran {dict(counts)} ops"
        assert shares[replica] > 0, f"replica {replica} worked on no share of the batch"


def test_checkpoints(spec, options):
    """A checkpoint of the single-device graph restores every copy, and ours restores the single-device graph."""
    model, path, data = HABITS[spec.model], compare.export(spec, HABITS[spec.model].build), data_of(spec)
    out, _ = harness.rewrite(path, options)
    local = {"x:0": data[0][0], "y:0": data[0][1]}
    with Session(path) as single, Session(out, options.replicas) as ours:
        single.restart()
        single.run(model.steps[0], local)
        ours.restart()
        ours.restore(single.save())
        ours.check(single.values(), "restored from the single-device checkpoint")
        for session in (ours, single):
            session.run(model.steps[1], {"x:0": data[1][0], "y:0": data[1][1]})
        ours.check(single.values(), "a step after restore")
        saved, want = ours.save(), ours.values()
        keys = tf1.train.load_checkpoint(saved).get_variable_to_shape_map()
        assert set(keys) == set(want), "the checkpoint has other keys"
        single.restart()
        single.restore(saved)
        single.check(want, "the single-device graph restored from our checkpoint")
