# SPDX-License-Identifier: Apache-2.0
"""Variables in parts: TensorFlow runs a graph before and after `partition-variables`, alone and on one device.

A case names what is cut, `VAR=AXIS/COUNT` or `VAR=AXIS:SIZE,...`. What a variable is after the rewrite is what its old
read gives; what its parts are is compared with it.
"""

import os
import tempfile

import compare
import harness
import models
import models_functions
import models_habits
import numpy as np
import pytest
import tensorflow as tf
from harness import GraftError, assert_all_close, assert_close, run_graft
from models import Spec
from models_loops import LOOPS
from models_habits import HABITS

tf1 = tf.compat.v1


def partition(path, rules, before=""):
    """The path of the graph in parts."""
    handle, out = tempfile.mkstemp(suffix=os.path.splitext(path)[1], dir=harness.workdir())
    os.close(handle)
    passes = f"--passes={before}partition-variables{{partition='{';'.join(rules)}'}}"
    done = run_graft([path, "-o", out, passes], check=False)
    if done.returncode != 0:
        raise GraftError(done.stderr)
    assert done.stderr == "", done.stderr
    return out


class Parts(harness.Session):
    """A graph in parts. `variables` are those of the input, by their reads; `parts` those that are there."""

    def __init__(self, path, original, replicas=1):
        super().__init__(path, replicas)
        with self.graph.as_default():
            self.parts = {v.op.name: v for v in tf1.global_variables()}
        with tf.Graph().as_default():
            tf1.train.import_meta_graph(original)
            self.variables = {v.op.name: harness.read_name(v) for v in tf1.global_variables()}

    def check_parts(self, want, rules):
        """The parts that each variable has are the slices that their attribute says, and there is no whole one."""
        with self.graph.as_default():
            values = self.run({name: harness.read_name(v) for name, v in self.parts.items()})
        seen = set()
        for name, value in values.items():
            node = self.graph.get_operation_by_name(name).node_def
            if "_graft_slice" not in node.attr:
                continue
            whole, *shape, slices = node.attr["_graft_slice"].s.decode().split(" ")
            assert tuple(map(int, shape)) == want[whole].shape
            index = tuple(slice(int(o), int(o) + int(n)) for o, n in (s.split(",") for s in slices.split(":")))
            assert np.array_equal(value, want[whole][index]), name
            info = self.parts[name]._get_save_slice_info()
            assert info.spec == " ".join(shape) + " " + slices and info.full_name == whole
            seen.add(whole)
        for rule in rules:
            assert rule.split("=")[0] in seen, rule
        for name in seen:
            assert not any(op.name == name for op in self.graph.get_operations()), name


CASES = [
    ("linear", ["w=0/2"]),
    ("linear", ["w=0:1,3,1", "b=0:1"]),
    ("mlp_adam", ["hidden/kernel=1:3,13", "hidden/bias=0/4", "output/kernel=0/5"]),
    ("mlp_clip", ["hidden/kernel=0/3", "output/kernel=1/2"]),
    ("cnn", ["conv1/kernel=3/2", "conv2/gamma=0/3", "conv2/moving_mean=0/2", "dense/kernel=1/3"]),
    ("cnn_nobn", ["conv2/kernel=2:1,5", "dense/kernel=0/4", "dense/bias=0/5"]),
    ("embedding", ["table=0/3", "w=0/2"]),
    ("embedding", ["table=0:1,9,1"]),
    ("embedding", ["table=1:2,3"]),
    ("wide_mlp", ["hidden/kernel=0/12", "output/bias=0/2"]),
    ("adamw_assign", ["hidden/kernel=0/2", "output/kernel=1/4", "output/kernel/adam_m=0/3"]),
]


def ids(case):
    return case[0] + "-" + ";".join(case[1]).replace("/", "|")


# Every case in both kinds, and in float64 where the model has that.
VARIANTS = [
    (case, kind, dtype)
    for case in CASES
    for kind, dtype in (("ref", "float32"), ("resource", "float32"), ("resource", "float64"))
    if dtype == "float32" or models.MODELS[case[0]].float64
]


@pytest.mark.parametrize("case, kind, dtype", VARIANTS, ids=lambda v: ids(v) if isinstance(v, tuple) else v)
def test_models(case, kind, dtype):
    """Initial values, losses, variables after each step, checkpoints in both directions."""
    model, rules = case
    spec = Spec(model, kind=kind, dtype=dtype)
    original = harness.export(spec)
    want, batches = harness.reference(spec), models.batches(model, dtype)
    out = partition(original, rules)
    with Parts(out, original) as session:
        session.restart()
        assert_all_close(session.values(), want.variables[0], "after init")
        for i, batch in enumerate(batches, start=1):
            assert_close(session.step(batch), want.losses[i - 1], f"loss of step {i}")
            values = session.values()
            assert_all_close(values, want.variables[i], f"after step {i}")
            session.check_parts(values, [r for r in rules if r != "b=0:1"])
        session.restart(init=False)
        session.restore(want.checkpoint)
        restored = session.values()
        for name, value in want.variables[1].items():
            assert np.array_equal(restored[name], value), name
        session.step(batches[1])
        values, ours = session.values(), session.save()
        assert_all_close(values, want.variables[2], "a step after restore")
        keys = tf.train.load_checkpoint(ours).get_variable_to_shape_map()
        assert {k: tuple(s) for k, s in keys.items()} == {k: v.shape for k, v in values.items()}
        with harness.Session(original) as single:
            single.restore(ours)
            for name, value in single.values().items():
                assert np.array_equal(value, values[name]), name
        # A Saver that is built after the import.
        with session.graph.as_default():
            saver = tf1.train.Saver()
        session.restart(init=False)
        saver.restore(session.session, ours)
        for name, value in session.values().items():
            assert np.array_equal(value, values[name]), name
        prefix = os.path.join(tempfile.mkdtemp(dir=harness.workdir()), "later")
        later = tf.train.load_checkpoint(saver.save(session.session, prefix, write_meta_graph=False))
        for name, value in values.items():
            assert np.array_equal(later.get_tensor(name), value), name
        # A function that is called after the import initialises parts together.
        session.restart(init=False)
        with session.graph.as_default():
            session.run(tf1.global_variables_initializer())
        assert_all_close(session.values(), want.variables[0], "after the initialisers of the parts")


def draw(path, rng, share=1.0):
    """Parts of the trainable variables of a graph, along any axis, of any sizes."""
    with tf.Graph().as_default():
        tf1.train.import_meta_graph(path)
        shapes = {v.op.name: v.shape.as_list() for v in tf1.trainable_variables()}
    rules = []
    for name, shape in shapes.items():
        axes = [a for a, size in enumerate(shape) if size > 1]
        if not axes or rng.random() >= share:
            continue
        axis = int(rng.choice(axes))
        cuts = rng.choice(np.arange(1, shape[axis]), min(shape[axis] - 1, int(rng.integers(1, 4))), replace=False)
        ends = sorted(map(int, cuts)) + [shape[axis]]
        rules.append(f"{name}={axis}:" + ",".join(str(e - b) for b, e in zip([0, *ends], ends)))
    return rules


def written():
    """Models as people write them, with conditionals, loops and functions."""
    for kind, models_of in (("more", HABITS), ("loop", LOOPS), ("branch", models_functions.BRANCHES)):
        for name in models_of:
            if name != "dropout":
                yield pytest.param(name, models_of[name], False, id=f"{kind}-{name}")
    for models_of in (models_functions.BRANCHES, models_functions.FUNCTIONS, models_functions.LOOPS):
        for name in models_of:
            yield pytest.param(name, models_of[name], True, id=f"function-{name}")


def pytest_generate_tests(metafunc):
    """A default run takes every fourth of the written models."""
    if metafunc.function is test_written:
        chosen = list(written())
        if not metafunc.config.getoption("--full"):
            chosen = chosen[::4]
        metafunc.parametrize("name, model, functional", chosen)


def test_written(name, model, functional):
    """All trainable variables in parts: the same steps."""
    # With references, layers race with the updates of those above them, but in these.
    kinds = ("ref", "resource") if name.startswith("dense_") else ("resource",)
    for number, kind in enumerate(kinds):
        with models_functions.form(functional):
            path = compare.export(Spec(name, kind), models_functions.importable(model.build))
        rules = draw(path, np.random.default_rng([len(name), number]))
        data = models_habits.batches(model.data, len(model.steps))
        want = compare.run(path, data, model.steps, model.fetches, model.after)
        out = partition(path, rules, before="inline-functions,")
        with Parts(out, path) as session:
            got = compare.advance(session, data, model.steps, model.fetches, model.after)
        for i, (ours, theirs) in enumerate(zip(got, want)):
            assert_all_close(ours[1], theirs[1], f"{rules} after step {i}")
            for what, a, b in zip((*model.fetches, *model.after), ours[0] + ours[2], theirs[0] + theirs[2]):
                assert_close(a, b, f"{rules} {what} of step {i}")
