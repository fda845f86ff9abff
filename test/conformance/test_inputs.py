# SPDX-License-Identifier: Apache-2.0
"""The bundled graphs of test/inputs/: as the script writes them, and rewritten they train as their models do."""

import importlib.util
import os

import harness
import models
import pytest
from harness import Options, Rewritten

_spec = importlib.util.spec_from_file_location(
    "export_inputs", os.path.join(harness.ROOT, "tools", "scripts", "export_inputs.py")
)
export_inputs = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(export_inputs)

INPUTS = os.path.join(harness.ROOT, "test", "inputs")


@pytest.mark.parametrize("name", export_inputs.INPUTS)
def test_up_to_date(name, tmp_path):
    fresh = models.build(export_inputs.INPUTS[name]).write(str(tmp_path / name))
    with open(fresh, "rb") as a, open(os.path.join(INPUTS, name), "rb") as b:
        assert a.read() == b.read(), "run tools/scripts/export_inputs.py"


@pytest.mark.parametrize("strategy", ["all-reduce", "ps"])
@pytest.mark.parametrize("replicas", [1, 2, 4])
def test_residual_network(replicas, strategy):
    """Many relus lie near 0, where rounding decides their gradient: a step at a time, and 1e-3 in place of 1e-5."""
    spec = export_inputs.INPUTS["cnn_bn.meta"]
    with Rewritten(spec, Options(replicas, strategy), os.path.join(INPUTS, "cnn_bn.meta")) as session:
        want = session.reference
        session.check_interface()
        session.check_diagnostics()
        session.restart()
        session.check(want.variables[0], "after init")
        for i in (0, 1):
            if i == 1:
                session.restore(want.checkpoint)
                session.check(want.variables[1], "restored")
            loss = session.step(session.batches[i])
            harness.assert_close(loss, want.losses[i], f"loss of step {i + 1}")
            harness.assert_all_close(session.values(), want.variables[i + 1], f"after step {i + 1}", slack=100)
            session.check_copies(f"after step {i + 1}")


@pytest.mark.parametrize("name", [n for n in export_inputs.INPUTS if n.startswith("mlp")])
def test_perceptron(name):
    spec, options = export_inputs.INPUTS[name], Options(4)
    path = os.path.join(INPUTS, name)
    if name.endswith(".meta"):
        with Rewritten(spec, options, path) as session:
            session.check_steps()
            session.check_checkpoints()
    else:
        harness.compare_graph_def(harness.rewrite(path, options)[0], spec, options)
