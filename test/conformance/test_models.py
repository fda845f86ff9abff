# SPDX-License-Identifier: Apache-2.0
"""Every model, rewritten, makes the same training step as the single-device graph.

Default: a deterministic subset that meets every combination of any three factors. --full: everything.
"""

import cases
import harness
import models
import numpy as np
import pytest
import tensorflow.compat.v1 as tf1
from harness import Options, Rewritten
from models import Spec


def pytest_generate_tests(metafunc):
    if "rewritten" in metafunc.fixturenames:
        chosen = cases.matrix(metafunc.config.getoption("--full"))
        metafunc.parametrize("rewritten", chosen, indirect=True, scope="module", ids=str)


@pytest.fixture(scope="module")
def rewritten(request):
    with Rewritten(request.param.spec, request.param.options) as session:
        session.case = request.param
        yield session


@pytest.fixture(autouse=True)
def _record(request, record_property):
    if "rewritten" in request.fixturenames:
        record_property("case", str(request.node.callspec.params["rewritten"]))


def test_steps(rewritten):
    rewritten.check_steps()


def test_interface(rewritten):
    rewritten.check_interface()


def test_diagnostics(rewritten):
    rewritten.check_diagnostics()


def test_checkpoints(rewritten):
    rewritten.check_checkpoints()


def test_spread(rewritten):
    rewritten.check_spread()


@pytest.mark.parametrize("case", cases.matrix(False, strength=2, dtype="float64"), ids=str)
def test_float64(case):
    """In double precision nothing is left to rounding: 1e-10."""
    with Rewritten(case.spec, case.options) as session:
        session.check_steps()


@pytest.mark.parametrize("strategy", ["all-reduce", "ps"])
@pytest.mark.parametrize("kind", ["ref", "resource"])
@pytest.mark.parametrize("replicas", [1, 2, 3, 4])
def test_unseeded_initializers(replicas, kind, strategy):
    """Random initial values without a seed: the copies agree, and a checkpoint carries the values over."""
    spec = Spec("mlp_random", kind)
    batches = models.batches(spec.model)
    with Rewritten(spec, Options(replicas, strategy)) as ours, harness.Session(harness.export(spec)) as single:
        ours.restart()
        ours.check_copies("after init")
        single.restore(ours.save())
        for i, batch in enumerate(batches, start=1):
            harness.assert_close(ours.step(batch), single.step(batch), f"loss of step {i}")
            ours.check(single.values(), f"after step {i}")
        single.restart()
        ours.restore(single.save())
        ours.check(single.values(), "restored")
        harness.assert_close(ours.step(batches[0]), single.step(batches[0]), "loss after restore")
        ours.check(single.values(), "a step after restore")


@pytest.mark.parametrize("strategy", ["all-reduce", "ps"])
@pytest.mark.parametrize("model", models.MATRIX)
def test_one_initializer(model, strategy):
    """Running the initializer of one variable initialises all its copies, in whatever way `init` is cut down."""
    spec = Spec(model)
    with Rewritten(spec, Options(2, strategy)) as ours:
        ours.restart(init=False)
        for name in ours.variables:
            ours.run(f"{name}/Assign")
        ours.check(ours.reference.variables[0], "after the initializers one by one")


@pytest.mark.parametrize("model", ["mlp_adam", "cnn", "embedding"])
@pytest.mark.parametrize("extension", [".pb", ".pbtxt"])
def test_graph_def(model, extension):
    """A GraphDef has no collections: feeds, fetches and variables are found in the graph itself."""
    spec, options = Spec(model), Options(2)
    out, _ = harness.rewrite(harness.export(spec, extension), options)
    harness.compare_graph_def(out, spec, options)


def test_named_feeds_and_fetches():
    spec = Spec("mlp_adam")
    with Rewritten(spec, Options(3, extra=("--feed=x", "--feed=y=split", "--fetch=loss"))) as session:
        session.check_steps()


@pytest.mark.parametrize("kind", ("ref", "resource"))
@pytest.mark.parametrize("strategy", ("all-reduce", "ps"))
def test_load(kind, strategy):
    """Variable.load, which feeds the initial value, reaches every copy."""
    with Rewritten(Spec("mlp_clip", kind=kind), Options(3, strategy=strategy)) as session:
        session.restart()
        with session.graph.as_default():
            loaded = {v.op.name: v for v in tf1.global_variables()}
        for i, (name, variable) in enumerate(sorted(loaded.items())):
            variable.load(np.full(variable.shape.as_list(), i + 0.5).astype(variable.dtype.as_numpy_dtype), session.session)
        values = session.values()
        for i, name in enumerate(sorted(loaded)):
            assert np.all(values[name] == np.asarray(i + 0.5).astype(values[name].dtype)), name
        session.check_copies("after load")
