# SPDX-License-Identifier: Apache-2.0
"""A good result, broken a little, is refused: the certificate, the verifier and the numbers each do their part.

Program: what the pipeline makes before the certificate. `check-replication{input=ORIGINAL}` must refuse each mutant.
Lowered: the file that TensorFlow loads. The verifier (it runs on every load) or `check-replication{input=ORIGINAL}`,
which folds a lowered file, must refuse each mutant; and so do the numbers, where the mutation shows in them.

What survives on purpose is in `EQUIVALENT`, with the reason.
"""

import collections
import concurrent.futures
import dataclasses
import os
import re
import tempfile
from typing import Dict, List, Tuple

import harness
import models
import mutations
import pytest
import tensorflow as tf
from harness import Options
from models import BATCH, MATRIX, Spec

tf1 = tf.compat.v1

MOST = 6  # mutants of one category and graph
REPLICAS = 2
WAYS = [("all-reduce", "add"), ("all-reduce", "collective"), ("ps", "add")]

# (category, what, why it computes the same step)
EQUIVALENT: List[Tuple[str, str, str]] = []


def spec_of(model: str, strategy: str, reduction: str) -> Spec:
    """One kind and batch form each, so that together all of them occur."""
    turn = MATRIX.index(model) + WAYS.index((strategy, reduction))
    return Spec(model, ("resource", "ref")[turn % 2], (BATCH, None)[turn // 2 % 2])


@dataclasses.dataclass
class Subject:
    """A model, its program before the certificate, and its lowered form."""

    spec: Spec
    options: Options

    def __post_init__(self):
        self.input = harness.export(self.spec)
        flags = self.options.arguments()
        text = harness.run_graft([self.input, *flags, "--print-pipeline-passes"]).stdout.strip()
        pipeline = re.sub(r",check-replication,expand-replicas$", "", text)
        assert pipeline != text, f"the pipeline ends in other passes: {text}"
        stem = os.path.join(harness.workdir(), f"{self.spec}-{self.options.strategy}-{self.options.reduction}")
        self.program_path, self.lowered_path = f"{stem}.program.meta", f"{stem}.lowered.meta"
        harness.run_graft([self.input, f"--passes={pipeline}", "-o", self.program_path])
        harness.run_graft([self.input, *flags, "-o", self.lowered_path])
        self.program, self.lowered = read_meta(self.program_path), read_meta(self.lowered_path)

    def mutant(self, meta, mutation) -> str:
        """Writes a mutated copy of `meta`."""
        changed = type(meta)()
        changed.CopyFrom(meta)
        mutation.apply(mutations.Program(changed))
        assert changed != meta, f"{mutation.category}: {mutation.what} changes nothing"
        handle, path = tempfile.mkstemp(suffix=".meta", dir=harness.workdir())
        with os.fdopen(handle, "wb") as file:
            file.write(changed.SerializeToString())
        return path

    def refusal(self, path: str, *ways: str) -> str:
        """Which of the ways to check refuses a file, or ''."""
        for way in ways:
            arguments = [path, "-o", "/dev/null"]
            if way == "certificate":
                arguments = [path, f"--passes=check-replication{{input={self.input}}}", "--emit=none"]
            done = harness.run_graft(arguments, check=False)
            assert done.returncode in (0, 1), f"{' '.join(arguments)}: exit {done.returncode}\n{done.stderr}"
            if done.returncode == 1:
                assert "error:" in done.stderr, f"refused without a reason: {done.stderr}"
                return way
        return ""


def read_meta(path: str):
    meta = tf1.MetaGraphDef()
    with open(path, "rb") as file:
        meta.ParseFromString(file.read())
    return meta


@pytest.fixture(scope="module", params=[(m, *w) for m in MATRIX for w in WAYS], ids="-".join)
def subject(request):
    model, strategy, reduction = request.param
    return Subject(spec_of(*request.param), Options(REPLICAS, strategy, reduction))


def equivalent(mutation, subject) -> str:
    for category, what, why in EQUIVALENT:
        if category == mutation.category and re.search(what, mutation.what):
            return why
    return ""


def report(capsys, subject, scores: Dict[str, List[int]]):
    total = [sum(s[i] for s in scores.values()) for i in (0, 1)]
    details = ", ".join(f"{name} {killed}/{made}" for name, (killed, made) in scores.items())
    with capsys.disabled():
        print(f"\n{subject.spec} {subject.options.strategy} {subject.options.reduction}: {total[0]}/{total[1]} ({details})")


def run(subject, meta, chosen, judge, capsys):
    """Judges all mutants; those that nobody refuses and that are not equivalent fail the test."""
    scores, survivors = collections.OrderedDict(), []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        verdicts = list(pool.map(lambda m: judge(m, subject.mutant(meta, m)), chosen))
    for mutation, refused in zip(chosen, verdicts):
        if not refused and equivalent(mutation, subject):
            continue
        score = scores.setdefault(mutation.category, [0, 0])
        score[0] += bool(refused)
        score[1] += 1
        if not refused:
            survivors.append(f"{mutation.category}: {mutation.what}")
    report(capsys, subject, scores)
    assert not survivors, f"{len(survivors)} of {len(chosen)} mutants survive:\n  " + "\n  ".join(survivors)


def test_unbroken(subject):
    """What is not broken is accepted, in all the ways that the tests below use."""
    assert subject.refusal(subject.program_path, "certificate") == ""
    assert subject.refusal(subject.lowered_path, "verifier", "certificate") == ""


def test_program(subject, capsys):
    """The certificate refuses every mutant of the replicated program."""
    chosen = mutations.choose(mutations.program_mutations(subject.program), MOST)
    judge = lambda mutation, path: subject.refusal(path, "certificate")  # noqa: E731
    run(subject, subject.program, chosen, judge, capsys)


def test_lowered(subject, capsys):
    """The verifier or the certificate refuses every mutant of the lowered file."""
    chosen = mutations.choose(mutations.lowered_mutations(subject.lowered), MOST)
    judge = lambda mutation, path: subject.refusal(path, "verifier", "certificate")  # noqa: E731
    run(subject, subject.lowered, chosen, judge, capsys)


# --- The numbers. ---

# Categories of mutations that show in the numbers of every model: those of a lost reduction, scale or shard.
VISIBLE_PROGRAM = ("drop reduce", "power")
VISIBLE_LOWERED = (
    "drop member",
    "scale",
    "scale of all members",
    "shard twice",
    "led edge",
    "initializer edge",
    "restore edge",
    "swap gradients",
)


def numbers(path: str, subject: Subject, *targets: str) -> str:
    """What is wrong with a graph when TensorFlow runs it, and each of the targets alone, or ''."""
    reference = harness.reference(subject.spec, REPLICAS)
    data = models.batches(subject.spec.model)
    try:
        with harness.Session(path, REPLICAS) as session:
            session.restart()
            session.check(reference.variables[0], "after init")
            for i, batch in enumerate(data, start=1):
                loss = session.step(batch)
                harness.assert_close(loss, reference.losses[i - 1], f"loss of step {i}")
                session.check(reference.variables[i], f"after step {i}")
            if "graft/refresh_copies" in (op.name for op in session.graph.get_operations()):
                session.run("graft/refresh_copies")
                session.check(reference.variables[len(data)], "after a refresh of what is equal")
            session.restart()
            session.restore(reference.checkpoint)
            session.check(reference.variables[1], "restored")
            for target in ("train_op", "init", *targets):
                x, y = data[0]
                session.run(target, {"x:0": x, "y:0": y})
                session.check_copies(f"after {target}")
    except (AssertionError, ValueError, KeyError, tf.errors.OpError) as error:
        return str(error).splitlines()[0] or type(error).__name__
    return ""


@pytest.mark.parametrize("way", WAYS, ids="-".join)
@pytest.mark.parametrize("model", MATRIX)
def test_numbers(model, way, capsys, monkeypatch):
    """TensorFlow computes other numbers, or an error, for a mutant of each kind that must show."""
    monkeypatch.setattr(harness, "RUN_TIMEOUT_MS", 3000)
    subject = Subject(spec_of(model, *way), Options(REPLICAS, *way))
    assert numbers(subject.lowered_path, subject) == ""
    # A scale in a merged value that nothing reads shows under its own name only.
    used = set(mutations.Program(subject.lowered).users()) | set(mutations.DECLARED)
    every = mutations.lowered_mutations(subject.lowered)
    every = [m for m in every if m.category != "scale" or m.what.split("/factor")[0] in used]
    chosen = [m for m in mutations.choose(every, 1) if m.category in VISIBLE_LOWERED]

    def judge(mutation, path):
        # An op that lost an edge to a copy's is run alone, so that nothing else waits for the copy's.
        edge = re.fullmatch(r"\^\S+ of (\S+)", mutation.what)
        return numbers(path, subject, *([edge[1]] if edge and not edge[1].startswith("save/") else []))

    run(subject, subject.lowered, chosen, judge, capsys)


@pytest.mark.parametrize("model", MATRIX)
def test_numbers_of_programs(model, capsys):
    """The same for a reduction or a power that is lost in the program and then lowered."""
    way = ("all-reduce", "add")
    subject = Subject(spec_of(model, *way), Options(REPLICAS, *way))

    def judge(mutation, path):
        lowered = path + ".lowered.meta"
        done = harness.run_graft([path, "--passes=expand-replicas", "-o", lowered], check=False)
        return done.stderr if done.returncode else numbers(lowered, subject)

    # A power in a merged value that nothing reads shows under its own name only.
    used = set(mutations.Program(subject.program).users()) | set(mutations.DECLARED)
    every = [
        m
        for m in mutations.program_mutations(subject.program)
        if m.category in VISIBLE_PROGRAM and m.what.split(":")[0] in used
    ]
    chosen = mutations.choose(every, 2)
    run(subject, subject.program, chosen, judge, capsys)
