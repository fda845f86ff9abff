# SPDX-License-Identifier: Apache-2.0
"""Breaks good results in every way that applies, and counts who sees it.

    build/venv/bin/python test/conformance/mutation_score.py            a sample of each kind, for each model
    build/venv/bin/python test/conformance/mutation_score.py --full     all mutants, each model in every way
    build/venv/bin/python test/conformance/mutation_score.py --model=fetched --kind='attribute.*'

Program: what the pipeline makes before the certificate. Lowered: the file that TensorFlow loads. Each mutant is shown to
the verifier, which runs on every load, and to the certificate, `check-replication{input=ORIGINAL}`. What neither refuses
runs in TensorFlow: two streams of batches, three steps each, and what the steps fetch, all copies of all variables, each
pure tensor that has a name of the input, initialisers and restores one by one are compared with the unbroken result.

A mutant that changes no number must be listed in `mutants_equivalent.txt`, with the reason. Any other is a hole.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import functools
import os
import re
import sys
import tempfile
from typing import Dict, List, Optional, Tuple

import harness
import models_habits
import mutation_models
import mutations
import mutations_any
import numpy as np
import tensorflow as tf
from harness import Options, Session
from models import BATCH, Spec

tf1 = tf.compat.v1

REPLICAS = 2
STREAMS = 2
WAYS = [("all-reduce", "add"), ("all-reduce", "collective"), ("ps", "add")]
VERDICTS = ("verifier", "certificate", "numbers", "same file", "equivalent", "unlisted")
EQUIVALENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mutants_equivalent.txt")


@functools.lru_cache(maxsize=None)
def read_equivalent(path: str = EQUIVALENT) -> List[Tuple[str, str, str, str]]:
    """(level, kind, what, reason): the first three are regular expressions, matched whole."""
    rows = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                level, kind, what, reason = (part.strip() for part in line.split(" | "))
                rows.append((level, kind, what, reason))
    return rows


def is_listed(level: str, mutation: mutations.Mutation) -> bool:
    return any(
        re.fullmatch(l, level) and re.fullmatch(k, mutation.category) and re.fullmatch(w, mutation.what)
        for l, k, w, _ in read_equivalent()
    )


def choose(level: str, every: List[mutations.Mutation], most: Optional[int], numeric: int) -> List[mutations.Mutation]:
    """At most `most` mutants of a kind; of kinds that TensorFlow has to judge, `numeric`, as it takes its time."""
    kinds = collections.OrderedDict()
    for mutation in every:
        slow = any(re.fullmatch(l, level) and re.fullmatch(k, mutation.category) for l, k, _, _ in read_equivalent())
        kinds.setdefault((mutation.category, slow), []).append(mutation)
    chosen = []
    for (_, slow), group in kinds.items():
        limit = numeric if slow else most
        chosen += mutations.spread(group, len(group) if limit is None else limit)
    return chosen


def write_meta(meta, suffix: str = ".meta") -> str:
    handle, path = tempfile.mkstemp(suffix=suffix, dir=harness.workdir())
    with os.fdopen(handle, "wb") as file:
        file.write(meta.SerializeToString())
    return path


def spec_of(model: str, strategy: str, reduction: str) -> Spec:
    """One kind and batch form each, so that together all of them occur."""
    names = list(mutation_models.MODELS)
    turn = names.index(model) + WAYS.index((strategy, reduction))
    batch = (BATCH, None)[turn // 2 % 2] if (model, BATCH) not in STATIC_FAILS else None
    losses = mutation_models.MODELS[model].losses
    return Spec(model, ("resource", "ref")[turn % 2], batch, losses[turn // 3 % len(losses)])


STATIC_FAILS = {("recurrent", BATCH)}


class Subject:
    """A model, its program before the certificate, and its lowered form."""

    def __init__(self, spec: Spec, options: Options):
        self.spec = spec
        self.model = mutation_models.MODELS[spec.model]
        self.options = dataclasses.replace(options, extra=(*options.extra, *self.model.flags))
        handle, self.input = tempfile.mkstemp(suffix=".meta", dir=harness.workdir())
        os.close(handle)
        mutation_models.build(spec).write(self.input)
        meta = harness.read_meta(self.input)
        mutation_models.sign(meta, spec.model)
        self.input = write_meta(meta)
        self.input_meta = meta
        flags = self.options.arguments()
        text = harness.run_graft([self.input, *flags, "--print-pipeline-passes"]).stdout.strip()
        pipeline = re.sub(r",check-replication(\{[^}]*\})?,expand-replicas$", "", text)
        assert pipeline != text, f"the pipeline ends in other passes: {text}"
        stem = self.input[: -len(".meta")]
        self.program_path, self.lowered_path = f"{stem}.program.meta", f"{stem}.lowered.meta"
        harness.run_graft([self.input, f"--passes={pipeline}", "-o", self.program_path])
        harness.run_graft([self.input, *flags, "-o", self.lowered_path])
        self.program, self.lowered = harness.read_meta(self.program_path), harness.read_meta(self.lowered_path)
        self.relowered_path = self.lower(self.program_path)[0]
        self._reference = None

    def __str__(self):
        return f"{self.spec} {self.options.strategy} {self.options.reduction}"

    def meta(self, level: str):
        return self.program if level == "program" else self.lowered

    def tensors(self, level: str):
        graph = tf.Graph()
        with graph.as_default():
            tf1.train.import_meta_graph(self.input if level == "program" else self.lowered_path)
        known = mutations_any.tensors_of(graph)
        if level == "program":
            known = mutations_any.tensors_of_program(mutations.Program(self.program), known)
        return known

    def mutations(self, level: str) -> List[mutations.Mutation]:
        meta = self.meta(level)
        special = mutations.program_mutations if level == "program" else mutations.lowered_mutations
        return special(meta) + mutations_any.any_mutations(meta, self.tensors(level), level == "lowered")

    def mutant(self, level: str, mutation) -> Optional[str]:
        """Writes a mutated copy; None if nothing changed."""
        changed = mutations.mutant_of(self.meta(level), mutation)
        return None if changed is None else write_meta(changed)

    def refusal(self, path: str, *ways: str) -> str:
        """Which of the ways to check refuses a file, or ''."""
        for way in ways:
            arguments = [path, "-o", "/dev/null"]
            if way == "certificate":
                fetched = "".join(f",fetch={flag.removeprefix('--fetch=')}" for flag in self.model.flags if flag.startswith("--fetch="))
                arguments = [path, f"--passes=check-replication{{input={self.input}{fetched}}}", "--emit=none"]
            done = harness.run_graft(arguments, check=False, verify=False)
            if done.returncode not in (0, 1):
                raise AssertionError(f"{' '.join(arguments)}: exit {done.returncode}\n{done.stderr}")
            if done.returncode == 1:
                assert "error:" in done.stderr, f"refused without a reason: {done.stderr}"
                # The verifier runs on loading, before the pass.
                if way == "certificate" and "verifier" not in ways:
                    return way if "check-replication" in done.stderr else "verifier"
                return way
        return ""

    # --- The numbers. ---

    def observe(self, path: str) -> Dict[str, np.ndarray]:
        """All that a user may see of a graph: see the top of the file."""
        return Observer(self, path).all()

    @property
    def reference(self):
        if self._reference is None:
            self._reference = self.observe(self.lowered_path)
        return self._reference

    def lower(self, path: str) -> Tuple[Optional[str], str]:
        """A program's lowered file, or why there is none."""
        out = path[: -len(".meta")] + ".out.meta"
        done = harness.run_graft([path, "--passes=expand-replicas", "-o", out], check=False, verify=False)
        return (None, "not lowered: " + done.stderr.splitlines()[0]) if done.returncode else (out, "")

    def numbers(self, path: str) -> str:
        """The fault of a mutant when TensorFlow runs it, or ''."""
        want = self.reference
        try:
            got = self.observe(path)
            for name in want:  # an undeclared name may go, but not lie
                assert name in got or name.startswith("pure "), f"no {name}"
            for name in got:
                if name in want:
                    harness.assert_close(got[name], want[name], name)
        except (AssertionError, ValueError, KeyError, TypeError, tf.errors.OpError) as error:
            return (str(error).splitlines() or [type(error).__name__])[0][:200]
        return ""


IMPURE = ("Switch", "RefSwitch", "Assign", "Apply", "ResourceApply", "Scatter", "ResourceScatter", "Sparse", "Restore", "Save", "Random", "Print", "Truncated")


class Observer:
    def __init__(self, subject: Subject, path: str):
        self.subject, self.path = subject, path
        self.seen: Dict[str, np.ndarray] = {}

    def all(self):
        model, subject = self.subject.model, self.subject
        with Session(self.path, REPLICAS) as session:
            self.find_unnamed_copies(session)
            pure = self.pure(session)
            for stream in range(STREAMS):
                rng = np.random.default_rng(7 + stream)
                data = [model.data(rng, "float32") for _ in range(3)]
                session.restart()
                self.note(session, f"stream {stream} init")
                for i, (x, y) in enumerate(data):
                    if stream == 1 and subject.spec.batch is None and subject.options.reduction != "collective":
                        x, y = x[: REPLICAS + 1], y[: REPLICAS + 1]  # rows that the replicas do not divide
                    feeds = {"x:0": x, "y:0": y}
                    step = model.steps[i % len(model.steps)]
                    fetched = session.run([*model.fetches, step], feeds)[:-1]
                    for name, value in zip(model.fetches, fetched):
                        self.put(f"stream {stream} step {i} {name}", value)
                    self.note(session, f"stream {stream} step {i}")
                    self.put_all(f"stream {stream} step {i} ", session.run({n: n for n in model.after}, feeds))
                if stream == 0:
                    checkpoint = session.save()
                    self.put_all(f"pure {i} ", session.run(pure, feeds))
                    # Each result alone: nothing may wait for what only another fetch runs.
                    for name in (*model.fetches, *model.after):
                        self.put(f"alone {name}", session.run(name, feeds))
                    self.note(session, "after fetches")
            session.restart(init=False)
            session.restore(checkpoint)
            self.note(session, "restored")
            session.restart(init=False)
            with session.graph.as_default():
                initializers = [variable.initializer for variable in tf1.global_variables()]
            for initializer in initializers:
                session.run(initializer)
            self.note(session, "initialised one by one")
        return self.seen

    def find_unnamed_copies(self, session):
        """Copies of a variable under the names that other nodes' copies have."""
        for op in session.graph.get_operations():
            base, replica = mutations_any.copy_name(op.name)
            if replica and base in session.copies and replica not in session.copies[base]:
                with tf1.device(op.device), session.graph.as_default():
                    if op.type == "VarHandleOp":
                        value = tf.raw_ops.ReadVariableOp(resource=op.outputs[0], dtype=op.get_attr("dtype"))
                    else:
                        value = op.outputs[0]
                session.copies[base][replica] = value

    def put(self, name, value):
        value = np.asarray(value)
        if value.dtype == object or value.dtype.kind in "SU":
            return  # summaries hold times and rounded floats
        self.seen[name] = value

    def put_all(self, prefix, values):
        for name, value in values.items():
            self.put(prefix + name, value)

    def note(self, session, when):
        values, copies = session.run([session.variables, session.copies])
        self.put_all(f"{when}: ", values)
        for name, by_replica in copies.items():
            for replica, value in by_replica.items():
                self.put(f"{when}: {name}/replica_{replica}", value)

    def pure(self, session) -> Dict[str, tf.Tensor]:
        """Tensors under names of the input that nothing which has an effect or a draw leads to."""
        names = {node.name for node in self.subject.input_meta.graph_def.node}
        dirty, result = {}, {}

        def is_dirty(op):
            stack = [op]
            while stack:
                top = stack[-1]
                if top.name in dirty:
                    stack.pop()
                    continue
                below = [t.op for t in top.inputs] + list(top.control_inputs)
                missing = [o for o in below if o.name not in dirty]
                if missing and top.type not in ("Merge", "NextIteration"):
                    stack += missing
                    continue
                dirty[top.name] = top.type.startswith(IMPURE) or any(dirty.get(o.name, True) for o in below)
                stack.pop()
            return dirty[op.name]

        for op in session.graph.get_operations():
            if op.name in names and not op.name.startswith("save/") and not is_dirty(op):
                for tensor in op.outputs:
                    dtype = tensor.dtype
                    if session.graph.is_fetchable(tensor) and not dtype._is_ref_dtype and dtype not in (tf.resource, tf.variant, tf.string):
                        if "Switch" not in op.type and "Merge" not in op.type:
                            result[tensor.name] = tensor
        return result


# --- Judging. ---


def same_bytes(a: str, b: str) -> bool:
    with open(a, "rb") as one, open(b, "rb") as two:
        return one.read() == two.read()


@dataclasses.dataclass
class Score:
    """Mutants by (level, kind) and verdict, and what is wrong."""

    counts: Dict[Tuple[str, str], List[int]] = dataclasses.field(default_factory=dict)
    holes: List[str] = dataclasses.field(default_factory=list)

    def add(self, level: str, kind: str, verdict: str):
        row = self.counts.setdefault((level, kind), [0] * len(VERDICTS))
        row[VERDICTS.index(verdict)] += 1

    def rows(self) -> List[Tuple[str, str, List[int]]]:
        """The counts, as a process can tell them to another."""
        return [(level, kind, row) for (level, kind), row in self.counts.items()]

    def add_rows(self, rows: List[Tuple[str, str, List[int]]]):
        for level, kind, row in rows:
            mine = self.counts.setdefault((level, kind), [0] * len(VERDICTS))
            for i, count in enumerate(row):
                mine[i] += count

    def table(self) -> str:
        lines = [f"{'':7} {'mutation':44} {'made':>6} " + " ".join(f"{v:>11}" for v in VERDICTS) + f" {'score':>6}"]

        def line(level, kind, row):
            made, changing = sum(row), sum(row[:3])
            share = f"{100 * sum(row[:2]) // changing}%" if changing else "-"
            lines.append(f"{level:7} {kind:44} {made:>6} " + " ".join(f"{c:>11}" for c in row) + f" {share:>6}")

        for (level, kind), row in sorted(self.counts.items()):
            line(level, kind, row)
        line("total", "", [sum(row[i] for row in self.counts.values()) for i in range(len(VERDICTS))])
        return "\n".join(lines)


def judge_all(subject: Subject, level: str, chosen: List[mutations.Mutation]) -> Score:
    """Shows every mutant to the verifier, the certificate and, if need be, TensorFlow."""
    score = Score()

    def refused(mutation):
        path = subject.mutant(level, mutation)
        if path is None:
            return None, ""
        try:
            by = subject.refusal(path, "certificate")
        except AssertionError as error:
            return path, f"crash: {mutation.what}: {error}"
        if by:
            os.unlink(path)
        return path, by

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        verdicts = list(pool.map(refused, chosen))
    for mutation, (path, by) in zip(chosen, verdicts):
        if path is None:
            continue
        if by.startswith("crash: "):
            score.holes.append(f"{subject} {level} | {mutation.category} | {by}")
            by = "unlisted"
        if not by:
            made, wrong = (path, "") if level == "lowered" else subject.lower(path)
            if made is not None and level == "program" and same_bytes(made, subject.relowered_path):
                score.add(level, mutation.category, "same file")
                continue
            wrong = wrong or subject.numbers(made)
            by = "numbers" if wrong else "equivalent" if is_listed(level, mutation) else "unlisted"
            if by != "equivalent":
                score.holes.append(f"{subject} {level} | {mutation.category} | {mutation.what} | {wrong or 'no number changes'}")
        score.add(level, mutation.category, by)
    return score


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="all mutants, not a sample")
    parser.add_argument("--most", type=int, default=3, help="mutants of one kind and graph in a sample")
    parser.add_argument("--numeric", type=int, default=2, help="the same, of kinds that TensorFlow has to judge")
    parser.add_argument("--model", action="append", help="only these models")
    parser.add_argument("--way", type=int, action="append", help="only these of the ways: 0 add, 1 collective, 2 ps")
    parser.add_argument("--level", choices=("program", "lowered"))
    parser.add_argument("--kind", default="", help="only kinds that match")
    arguments = parser.parse_args()
    total = Score()
    names = arguments.model or list(mutation_models.MODELS)
    for i, name in enumerate(mutation_models.MODELS):
        if name not in names:
            continue
        ways = range(len(WAYS)) if arguments.full or arguments.way else [i % len(WAYS)]
        for way in arguments.way or ways:
            subject = Subject(spec_of(name, *WAYS[way]), Options(REPLICAS, *WAYS[way]))
            for level in ("program", "lowered"):
                if arguments.level not in (None, level):
                    continue
                every = [m for m in subject.mutations(level) if re.search(arguments.kind, m.category)]
                most, numeric = (None, 2 * arguments.numeric) if arguments.full else (arguments.most, arguments.numeric)
                chosen = choose(level, every, most, numeric)
                score = judge_all(subject, level, chosen)
                print(f"{subject} {level}: {len(chosen)} of {len(every)} mutants, {len(score.holes)} holes", flush=True)
                for hole in score.holes:
                    print("  HOLE " + hole, flush=True)
                total.add_rows(score.rows())
                total.holes += score.holes
    print(total.table())
    sys.exit(1 if total.holes else 0)


if __name__ == "__main__":
    main()
