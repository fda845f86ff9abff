# SPDX-License-Identifier: Apache-2.0
"""Every model under every strategy of AutoDist's makes the step of the single-device graph.

Default: a deterministic subset that meets every pair of factors. --full: everything.
"""

import itertools

import harness
import models
import pytest
from covering import covering
from models import BATCH, MATRIX, Spec
from strategies import SMALL, STRATEGIES, Placed, Strategic

FACTORS = {
    "model": MATRIX,
    "strategy": STRATEGIES,
    "where": [2, 3, 4, "2x2"],
    "kind": ["ref", "resource"],
    "batch": [None, BATCH],
    "loss": ["mean", "sum"],
    "reduction": ["add", "collective"],
}
PARTITIONING = ["partitioned-ps", "uneven-partitioned-ps", "partitioned-all-reduce", "random-axis-partition-all-reduce"]


def cases(full: bool):
    if full:
        chosen = [dict(zip(FACTORS, values)) for values in itertools.product(*FACTORS.values())]
    else:
        chosen = covering(FACTORS, 2)
        # Every model meets every strategy twice: in the subset above, and in another place.
        for i, (model, strategy) in enumerate(itertools.product(MATRIX, STRATEGIES)):
            rest = {name: values[(i // (j + 1)) % len(values)] for j, (name, values) in enumerate(FACTORS.items())}
            chosen.append({**rest, "model": model, "strategy": strategy})
    unique = {}
    for f in chosen:
        f = dict(f)
        if not isinstance(f["where"], int):
            f["reduction"] = "add"  # a collective between tasks is not for one graph
        unique[str(sorted(f.items(), key=str))] = f
    return sorted(unique.values(), key=lambda f: [str(f[name]) for name in FACTORS])


def name(f) -> str:
    batch = "unknown" if f["batch"] is None else "static"
    return "-".join(map(str, (f["model"], f["kind"], batch, f["loss"], f["strategy"], f["reduction"], f["where"])))


def pytest_generate_tests(metafunc):
    if "rewritten" in metafunc.fixturenames:
        chosen = cases(metafunc.config.getoption("--full"))
        metafunc.parametrize("rewritten", chosen, indirect=True, scope="module", ids=name)


@pytest.fixture(scope="module")
def rewritten(request):
    f = request.param
    spec = Spec(f["model"], f["kind"], f["batch"], f["loss"])
    options = Placed(f["where"], f["strategy"], f["reduction"], (*SMALL, "--verify-output"))
    with Strategic(spec, options) as session:
        yield session


def test_steps(rewritten):
    rewritten.check_steps()


def test_checkpoints(rewritten):
    rewritten.check_checkpoints()


def test_interface(rewritten):
    """Feeds and fetches keep their shapes; what a strategy promises is in the graph."""
    want = models.build(rewritten.spec).graph
    for tensor in ("x:0", "y:0", "loss:0"):
        got, expected = rewritten.graph.get_tensor_by_name(tensor), want.get_tensor_by_name(tensor)
        assert got.dtype == expected.dtype, tensor
        assert got.shape.as_list() == expected.shape.as_list(), tensor
    parts = rewritten.parts
    if rewritten.options.strategy in PARTITIONING:
        assert parts, "no variable is in parts"
        assert all(len(names) > 1 for names in parts.values()), parts
    elif rewritten.options.strategy != "auto":
        assert not parts, parts


def test_diagnostics(rewritten):
    rewritten.check_diagnostics()


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("model", [m for m in MATRIX if models.MODELS[m].float64])
def test_float64(model, strategy):
    """In double precision nothing is left to rounding: 1e-10."""
    spec = Spec(model, "resource" if len(strategy) % 2 else "ref", None, "mean", "float64")
    with Strategic(spec, Placed(3, strategy, "add", SMALL)) as session:
        session.check_steps()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_one_replica(strategy):
    with Strategic(Spec("embedding"), Placed(1, strategy, "add", SMALL)) as session:
        session.check_steps()
        session.check_checkpoints()


@pytest.mark.parametrize("pair", [("partitioned-ps", "all-reduce"), ("parallax", "random-axis-partition-all-reduce")])
def test_checkpoints_between_strategies(pair):
    """A checkpoint of one strategy is one of another."""
    spec = Spec("embedding")
    want = harness.reference(spec)
    first, second = (Strategic(spec, Placed(n, s, "add", SMALL)) for n, s in zip((2, 3), pair))
    with first as one, second as other:
        one.restart()
        one.step(one.batches[0])
        other.restore(one.save())
        other.check(want.variables[1], "restored")
        other.step(one.batches[1])
        other.check(want.variables[2], "a step after restore")
        one.restore(other.save())
        one.check(want.variables[2], "restored back")
