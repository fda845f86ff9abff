# SPDX-License-Identifier: Apache-2.0
"""The analysis knows every op of every model that graft proves: `tools/scripts/rule_coverage.py` says what that means.

Models that are there because graft refuses them (models_loops.UNPROVED, and those of models_random that mix rows) are
not asked: some have an op that no rule can relate. Nor is the one that test_functions.py expects to fail: the lists that a
functional While keeps for its gradient.
"""

import os
import subprocess
import sys

import compare
import harness
import models
import models_batches
import models_bn
import models_functions
import models_loops
import models_habits
import models_random
import test_sampled
from models import Spec

SCRIPT = os.path.join(harness.ROOT, "tools", "scripts", "rule_coverage.py")


def cover(*paths):
    command = [sys.executable, SCRIPT, f"--graft-opt={harness.graft_opt()}", *paths]
    return subprocess.run(command, capture_output=True, text=True)


def graphs():
    """A file for each model; variants with ref variables and as functions, where models differ in them."""
    for name in models.MODELS:
        for kind in ("resource", "ref"):
            yield harness.export(Spec(name, kind))
    fills = {}
    for more in (models_habits.HABITS, models_loops.LOOPS, models_batches.SOURCES, models_bn.FUSED, models_bn.EXACT):
        fills.update({f"{name} {len(fills)}": model.build for name, model in more.items()})
    fills.update({name: fill for draws in (models_random.ROWS, models_random.ONE) for name, fill in draws.items()})
    fills.update({f"sampled_{name}": test_sampled.sampled(sampler=name) for name in test_sampled.SAMPLERS})
    for name, fill in fills.items():
        yield compare.export(Spec(name.replace(" ", "_")), fill)
    for more in (models_functions.BRANCHES, models_functions.FUNCTIONS, models_functions.LOOPS):
        for name, model in more.items():
            # A call behind a Switch is made in version 1 only.
            for functional in (False,) if name in ("looped_layer", "twice_in_a_branch") else (False, True):
                with models_functions.form(functional):
                    yield compare.export(Spec(name), models_functions.importable(model.build))


def test_models():
    paths = list(graphs())
    assert len(paths) > 100
    done = cover(*paths)
    missing = sorted({line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ")})
    assert not missing, done.stdout
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("100 % covered") == len(paths)


def test_missing_op_is_an_error(tmp_path):
    """An op without a rule, and one that the registry does not know."""
    path = tmp_path / "graph.pbtxt"
    feed = 'node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }'
    types = 'attr { key: "T" value { type: DT_FLOAT } } attr { key: "type" value { type: DT_INT32 } }'
    for op, said in (("CheckPinned", "  CheckPinned 1\n"), ("NoSuchOp", "  NoSuchOp 1 (not in the registry)\n")):
        path.write_text(feed + f' node {{ name: "n" op: "{op}" input: "x" {types} }}')
        done = cover(str(path))
        assert done.returncode == 1 and said in done.stdout, done.stdout + done.stderr
    # The same op on what is no part of the batch.
    variable = feed.replace("Placeholder", "VariableV2").removesuffix("}") + 'attr { key: "shape" value { shape { } } } }'
    path.write_text(variable + f' node {{ name: "n" op: "CheckPinned" input: "x" {types} }}')
    assert cover(str(path)).returncode == 0
