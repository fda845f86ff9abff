# SPDX-License-Identifier: Apache-2.0
"""A good result, broken a little, is refused: the certificate, the verifier and the numbers each do their part.

`mutation_score.py` says how. Default: some mutants of each kind, each model in one way. --full: all mutants in that way,
and some in the others. The score is printed at the end of the run.
"""

import harness
import mutation_models
import mutation_score
import mutations
import pytest
from harness import Options
from mutation_score import WAYS, Subject

MOST, NUMERIC = 2, 1  # mutants of one kind and graph; of kinds that TensorFlow has to judge
SLICES = 2  # of the kinds of a graph, in a default run: each is tried on half of the models


def pytest_generate_tests(metafunc):
    if "subject_way" in metafunc.fixturenames:
        full, chosen = metafunc.config.getoption("--full"), []
        for i, model in enumerate(mutation_models.MODELS):
            turn = i % len(WAYS)
            chosen += [(model, way, way == turn) for way in range(len(WAYS)) if full or way == turn]
        metafunc.parametrize("subject_way", chosen, ids=lambda c: f"{c[0]}-{'-'.join(WAYS[c[1]])}")


@pytest.mark.parametrize("level", ["program", "lowered"])
def test_score(subject_way, level, request, record_property):
    """The certificate accepts the unbroken program; it refuses every mutant, or the mutant is listed and changes no number."""
    model, index, turn = subject_way
    subject = Subject(mutation_score.spec_of(model, *WAYS[index]), Options(mutation_score.REPLICAS, *WAYS[index]))
    assert subject.refusal(subject.program_path, "certificate") == ""
    assert subject.refusal(subject.lowered_path, "certificate") == ""
    every = subject.mutations(level)
    if request.config.getoption("--full") and turn:
        chosen = mutation_score.choose(level, every, None, 5 * NUMERIC)
    else:
        kinds = sorted({m.category for m in every})
        place = list(mutation_models.MODELS).index(model) + (level == "lowered")
        kinds = {k for i, k in enumerate(kinds) if (i + place) % SLICES == 0}
        chosen = mutation_score.choose(level, [m for m in every if m.category in kinds], MOST, NUMERIC)
    score = mutation_score.judge_all(subject, level, chosen)
    record_property("mutants", score.rows())
    assert score.counts, "no mutation applies"
    assert not score.holes, f"{len(score.holes)} of {len(chosen)} mutants survive:\n  " + "\n  ".join(score.holes)


# --- The numbers: what judges the mutants that nobody refuses must be able to fail. ---

# Kinds that show in the numbers of every model: those of a lost reduction, scale or shard, or of a copy left behind.
VISIBLE = {
    "program": ("drop reduce", "power"),
    "lowered": (
        "drop member",
        "scale",
        "scale of all members",
        "shard twice",
        "initializer edge",
        "restore edge",
        "swap gradients",
    ),
}


@pytest.mark.parametrize("level", list(VISIBLE))
@pytest.mark.parametrize("model,way", [("mlp_adam", 1), ("embedding", 0), ("mlp_clip", 1), ("wide_mlp", 2)])
def test_numbers(model, way, level, monkeypatch):
    """TensorFlow computes other numbers, or an error, for a mutant of each kind that must show."""
    monkeypatch.setattr(harness, "RUN_TIMEOUT_MS", 3000)
    subject = Subject(mutation_score.spec_of(model, *WAYS[way]), Options(mutation_score.REPLICAS, *WAYS[way]))
    assert subject.numbers(subject.lowered_path) == ""
    used = set(mutations.Program(subject.program).users()) | set(mutations.DECLARED)
    shown = set(mutations.Program(subject.lowered).users()) | set(mutations.DECLARED)
    every = [
        m
        for m in subject.mutations(level)
        # A power in a merged value that nothing reads shows under its own name only.
        if m.category in VISIBLE[level] and (level == "lowered" or m.what.split(":")[0] in used)
        # Nor does what no step runs, or what is for those who fetch it.
        and "graft/refresh_copies" not in m.what
        and not (m.category == "scale" and m.what.split("/factor")[0] not in shown)
        # The factor of a share is a table.
        and not (m.category == "power" and m.what.split(":")[0].endswith("/share"))
    ]
    assert every
    unseen = []
    for mutation in mutations.choose(every, 1):
        path, wrong = subject.mutant(level, mutation), ""
        if level == "program":
            path, wrong = subject.lower(path)
        if not wrong and not subject.numbers(path):
            unseen.append(f"{mutation.category}: {mutation.what}")
    assert not unseen, "\n".join(unseen)
