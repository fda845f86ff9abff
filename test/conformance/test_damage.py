# SPDX-License-Identifier: Apache-2.0
"""Damaged graphs: what TensorFlow refuses graft refuses, and what graft writes TensorFlow imports. See damage.py.

Each kind of graph is damaged for some seconds, from a seed on; `--full` takes other seeds too. Every single kind of damage
is told from none at all once.
"""

import os
import time

import damage
import harness
import models
import models_functions
import models_habits
import models_loops
import pytest
from models import Spec

INPUTS = os.path.join(harness.ROOT, "test", "inputs")
SECONDS = 9
# No more than were looked at, so that a faster machine finds nothing new in a change that has nothing to do with it.
SEEDS = 200


def written(name, fill):
    path = os.path.join(harness.workdir(), f"damage-{name}.meta")
    if not os.path.exists(path):
        models_habits.build(Spec(name, "resource"), fill).write(path)
    return path


def zoo(group):
    if group == "inputs":
        return [os.path.join(INPUTS, name) for name in ("mlp.pb", "mlp_ref.meta")]
    if group == "models":
        return [harness.export(Spec(name, kind)) for name in ("embedding", "mlp_clip") for kind in ("resource", "ref")]
    if group == "loops":
        return [written(name, models_loops.LOOPS[name].build) for name in sorted(models_loops.LOOPS)[:3]]
    tables = (models_functions.BRANCHES, models_functions.FUNCTIONS, models_functions.LOOPS)
    with models_functions.form(True):
        return [
            written(name, models_functions.importable(table[name].build)) for table in tables for name in sorted(table)[:3]
        ]


GROUPS = {"inputs": 100000, "models": 200000, "loops": 300000, "functions": 400000}


@pytest.mark.parametrize("group", GROUPS)
def test_damaged(group, request):
    full = request.config.getoption("--full")
    paths, first, done = zoo(group), GROUPS[group], 0
    end = time.monotonic() + (SECONDS * 20 if full else SECONDS)
    wrong = []
    while time.monotonic() < end and (full or done < SEEDS):
        wrong += damage.run(paths, range(first + done, first + done + 10))[1]
        done += 10
    assert not wrong, "\n".join(wrong)
    assert done >= 10


def test_every_kind_is_damage():
    """A damage that changes nothing would find nothing."""
    import random

    from tensorflow.core.framework import graph_pb2
    from tensorflow.core.protobuf import meta_graph_pb2

    with models_functions.form(True):
        name = sorted(models_functions.FUNCTIONS)[0]
        path = written(name, models_functions.importable(models_functions.FUNCTIONS[name].build))
    with open(path, "rb") as file:
        data = file.read()
    whole = meta_graph_pb2.MetaGraphDef.FromString(data)
    for name, kind in [*damage.KINDS.items(), *damage.META_KINDS.items()]:
        changed = 0
        for seed in range(40):
            rng, meta = random.Random(seed), meta_graph_pb2.MetaGraphDef.FromString(data)
            try:
                if name in damage.META_KINDS:
                    kind(rng, meta)
                else:
                    kind(rng, meta.graph_def, rng.choice(meta.graph_def.node))
            except ValueError:
                continue
            changed += meta != whole
        assert changed or (name == "type_of_many"), name


@pytest.mark.parametrize("table", ["FUNCTIONS", "LOOPS", "BRANCHES"])
def test_the_same_in_every_process(table, tmp_path):
    """Files of two processes are damaged alike, although these number functions and order sets differently."""
    built = []
    for i in range(2):
        with models_functions.form(True):
            fills = getattr(models_functions, table)
            name = sorted(fills)[0]
            path = tmp_path / str(i) / "graph.meta"
            path.parent.mkdir()
            models_habits.build(Spec(name, "resource"), models_functions.importable(fills[name].build)).write(str(path))
            built.append(str(path))
    assert open(built[0], "rb").read() != open(built[1], "rb").read(), "the numbers of functions are the same"
    for seed in range(30):
        assert damage.damage(seed, built[0]) == damage.damage(seed, built[1]), seed


def test_values_of_a_loop_are_a_set():
    from tensorflow.core.protobuf import control_flow_pb2, meta_graph_pb2

    path = written(sorted(models_loops.LOOPS)[0], models_loops.LOOPS[sorted(models_loops.LOOPS)[0]].build)
    with open(path, "rb") as file:
        meta = meta_graph_pb2.MetaGraphDef.FromString(file.read())
    other = meta_graph_pb2.MetaGraphDef.FromString(meta.SerializeToString())
    entries = other.collection_def["while_context"].bytes_list.value
    for i, entry in enumerate(entries):
        context = control_flow_pb2.WhileContextDef.FromString(entry)
        context.values_def.values[:] = list(context.values_def.values)[::-1]
        entries[i] = context.SerializeToString()
    assert entries and other != meta
    assert damage.canonical(other) == damage.canonical(meta)


def test_the_judge_tells_a_fault():
    """TensorFlow's word is heard: a graph that it refuses, and one that it takes."""
    path = os.path.join(INPUTS, "mlp.pb")
    with open(path, "rb") as file:
        data = file.read()
    assert damage.imports(data, is_meta=False) == ""
    assert damage.imports(data.replace(b"MatMul", b"MatBul"), is_meta=False)
    assert damage.reason("NodeDef missing attr 'T'") is None
