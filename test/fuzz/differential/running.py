# SPDX-License-Identifier: Apache-2.0
"""One graph through graft-opt and TensorFlow: what is compared, and the verdict.

    Reference(built)                 the steps of the single device
    judge(built, reference, flags)   graft-opt with these flags, the steps of what it writes, the verdict

Numbers are compared in three places: all variables after the initializers and after each step, all copies of each, and
every tensor of the input that has its name in the output still (before the first step and after the last).
"""

import dataclasses
import os
import re
import subprocess
import tempfile
from typing import Dict, List, Optional

import numpy as np
import tensorflow.compat.v2 as tf
from genes import Built, mix, tf1

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
RUN_TIMEOUT_MS = 20000
GRAFT_TIMEOUT = 60

# A warning that says that numbers may differ. With --fallback=once what is not proved is computed once, so only what rests
# on an assumption or was asked for is excused.
ASKED = {"random", "local-batch-norm", "compressor", "policy", "grad", "one-step", "combine"}
NOT_PROVED = {"fallback", "write", "fetch", "effect", "call"}
BAD = ("wrong", "fails", "drift", "crash", "hang")
# What the certificate refuses because of what a user may mend in the input. Any other refusal of the certificate is one of
# a program that graft should not have made.
MENDABLE = (
    "may be out of its range at run time",
    "mixes a per-replica shard",
    "mixes a number of elements",
    "applies a size that does not scale",
    "takes a fixed number of rows",
    "splits rows into parts",
    "splits a per-replica shard",
    "so TensorFlow would not load the graph",
)


def graft_opt() -> str:
    return os.environ.get("GRAFT_OPT") or os.path.join(ROOT, "build", "release", "bin", "graft-opt")


_help: Optional[str] = None


def has_option(option: str) -> bool:
    global _help
    if _help is None:
        _help = subprocess.run([graft_opt(), "--help"], capture_output=True, text=True).stdout
    return option in _help


# --- Sessions. ---


class Running:
    """A GraphDef in a session of its own."""

    def __init__(self, graph_def, devices: int, grappler: bool = False):
        self.graph = tf.Graph()
        with self.graph.as_default():
            tf1.import_graph_def(graph_def, name="")
        for node in graph_def.node:  # an import moves what is colocated
            op = self.graph.get_operation_by_name(node.name)
            if op.device != node.device:
                op._set_device(node.device)
        config = tf1.ConfigProto(
            device_count={"CPU": devices},
            allow_soft_placement=False,
            inter_op_parallelism_threads=2,
            intra_op_parallelism_threads=1,
        )
        if not grappler:
            config.graph_options.rewrite_options.disable_meta_optimizer = True
            config.graph_options.optimizer_options.opt_level = -1
        self.session = tf1.Session(graph=self.graph, config=config)

    def run(self, fetches, feeds=None):
        return self.session.run(fetches, feeds, options=tf1.RunOptions(timeout_in_ms=RUN_TIMEOUT_MS))

    def close(self):
        self.session.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def steps(running: Running, built: Built, probes: List[str], copies: Dict[str, str]):
    """[(where, {name: value})] of a whole run."""
    rows = []
    can_probe = built.source == "feed" and probes
    running.run("init")
    rows.append(("after init", running.run({**built.variables})))
    if can_probe:
        rows.append(("before the first step", running.run({n: n for n in probes}, built.feeds[0])))
    for i, feeds in enumerate(built.feeds, start=1):
        for train in built.trains:
            running.run(train, feeds)
        values = running.run({"variables": built.variables, "copies": copies})
        rows.append((f"after step {i}", values["variables"]))
        if copies:
            rows.append((f"copies after step {i}", values["copies"]))
    if can_probe:
        rows.append(("after the last step", running.run({n: n for n in probes}, built.feeds[-1])))
    return rows


def finite(rows) -> bool:
    return all(
        np.all(np.isfinite(v))
        for where, values in rows
        if where.startswith("after")
        for v in values.values()
        if np.issubdtype(np.asarray(v).dtype, np.floating)
    )


class Reference:
    """What the single device computes; raises where the graph does not run."""

    def __init__(self, built: Built):
        self.built = built
        self.running = Running(built.meta.graph_def, 1)
        self.rows = steps(self.running, built, built.probes, {})
        self._noise = None

    def close(self):
        self.running.close()

    def noise(self):
        """By how much each number changes when every input changes by a rounding."""
        if self._noise is None:
            self._noise = {}
            for draw in range(8):  # the first ones with the same inputs: a graph may race with itself
                rng = np.random.RandomState(draw)
                graph_def, built = self.built.meta.graph_def, self.built
                if draw >= 5:
                    graph_def, built = shaken(graph_def, rng, built.dtype), shaken_feeds(built, rng)
                try:
                    with Running(graph_def, 1, grappler=draw % 2 == 1) as r:
                        rows = steps(r, built, self.built.probes, {})
                except tf.errors.OpError:
                    continue
                for (where, values), (_, ours) in zip(self.rows, rows):
                    for name, value in values.items():
                        off = difference(ours[name], value)
                        key = (where, name)
                        self._noise[key] = max(self._noise.get(key, 0.0), off)
        return self._noise


EPSILON = {np.dtype(np.float32): 3e-7, np.dtype(np.float64): 1e-13}


def shake(value, rng, dtype):
    value = np.asarray(value)
    epsilon = EPSILON.get(value.dtype) and EPSILON[np.dtype(dtype)]
    if epsilon is None:
        return value
    return (value * (1 + epsilon * rng.uniform(-1, 1, value.shape))).astype(value.dtype)


def shaken(graph_def, rng, dtype):
    result = tf1.GraphDef()
    result.CopyFrom(graph_def)
    for node in result.node:
        if node.op == "Const" and node.attr["dtype"].type in (1, 2):
            value = tf.make_ndarray(node.attr["value"].tensor)
            moved = shake(value, rng, dtype)
            node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(moved, dtype=value.dtype, shape=value.shape))
    return result


def shaken_feeds(built, rng):
    return dataclasses.replace(built, feeds=[{n: shake(v, rng, built.dtype) for n, v in feeds.items()} for feeds in built.feeds])


def difference(a, b) -> float:
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return float("inf")
    if a.size == 0:
        return 0.0
    a, b = np.atleast_1d(a), np.atleast_1d(b)
    if a.dtype == bool:
        return float(np.any(a != b))
    same = (a == b) | (np.isnan(a.astype(float)) & np.isnan(b.astype(float)))
    with np.errstate(invalid="ignore"):
        off = np.abs(a.astype(float) - b.astype(float))
    off[same] = 0.0
    return float("inf") if np.any(np.isnan(off)) else float(np.max(off))


def tolerance(value, dtype: str) -> float:
    value = np.asarray(value)
    if not np.issubdtype(value.dtype, np.floating):
        return 0.0
    relative = 1e-9 if value.dtype == np.float64 and dtype == "float64" else 2e-5
    with np.errstate(invalid="ignore"):
        largest = float(np.max(np.abs(value[np.isfinite(value)]), initial=0.0)) if value.size else 0.0
    return relative * max(1e-2, largest)


# --- graft-opt. ---


@dataclasses.dataclass
class Verdict:
    kind: str  # ok, warned, differs (with a warning), refused, sensitive, and BAD
    detail: str = ""
    where: str = ""  # the tensor or variable
    warnings: tuple = ()


def warning_ids(path: str):
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    return sorted(set(re.findall(r'^--- !Warning\nId: "([^"]*)"', text, re.M)))


def rewrite(built: Built, flags: List[str], folder: str):
    """(exit code, stderr, warnings, the path of the output)"""
    source, out, said = (os.path.join(folder, n) for n in ("in.meta", "out.meta", "remarks.yml"))
    with open(source, "wb") as file:
        file.write(built.meta.SerializeToString(deterministic=True))
    for path in (out, said):
        if os.path.exists(path):
            os.remove(path)
    command = [graft_opt(), source, "-o", out, f"--remarks={said}", *flags]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=GRAFT_TIMEOUT)
    except subprocess.TimeoutExpired:
        return None, "", [], out
    return done.returncode, done.stderr, warning_ids(said) if os.path.exists(said) else [], out


def find_copies(graph_def, variables):
    """Tensors that read the copies `<v>/replica_<i>`; reads of handles are added to the graph."""
    copies = {}
    for node in list(graph_def.node):
        match = re.fullmatch(r"(.*)/replica_(\d+)", node.name)
        if not match or match[1] not in variables or "_graft_aggregation" in node.attr:
            continue
        if node.op == "VarHandleOp":
            read = graph_def.node.add(name=f"fuzz_read/{len(copies)}", op="ReadVariableOp", input=[node.name])
            read.device = node.device
            read.attr["dtype"].CopyFrom(node.attr["dtype"])
            copies[node.name] = read.name + ":0"
        elif node.op in ("VariableV2", "Variable"):
            copies[node.name] = node.name + ":0"
    return copies


def judge(built: Built, reference: Reference, flags: List[str], folder: str, change=None) -> Verdict:
    """`change` edits the output before it runs: a test of the test."""
    code, said, warnings, out = rewrite(built, flags, folder)
    if code is None:
        return Verdict("hang", "graft-opt does not end")
    if code != 0:
        if code != 1 or "internal error" in said:
            return Verdict("crash", f"exit {code}: {said[-1500:]}")
        first = next((line for line in said.splitlines() if "error:" in line), said[:200])
        own = "[check-replication]" in first and not any(text in first for text in MENDABLE)
        return Verdict("uncertified" if own else "refused", re.sub(r"^\S*error: |^.*?error: ", "", first))
    meta = tf1.MetaGraphDef()
    if "--strategy=tpu" in flags:
        import tpu_expand

        try:
            out = tpu_expand.expand(out, out.replace(".meta", "-cpu.meta"))
        except AssertionError as error:
            return Verdict("fails", f"not a TPU form: {error}", warnings=tuple(warnings))
    with open(out, "rb") as file:
        meta.ParseFromString(file.read())
    if change is not None:
        change(meta.graph_def)
    once = has_option("--fallback") and "--fallback=mean" not in flags and "--strategy=tpu" not in flags
    excuses = set(warnings) & (ASKED if once else ASKED | NOT_PROVED)
    types = {n.name: n for n in meta.graph_def.node}
    copies = find_copies(meta.graph_def, built.variables)
    if "policy" in warnings:
        copies = {}
    wanted = [p for p in built.probes if p.split(":")[0] in types]
    if "--strategy=tpu" in flags:
        wanted = []  # who fetches what a TPU computation has computed runs all of it, updates too
    lost = [p for p in built.variables.values() if p.split(":")[0] not in types]
    if lost:
        return Verdict("fails", f"'{lost[0]}' is not in the output", lost[0], tuple(warnings))
    try:
        with Running(meta.graph_def, built.replicas, mix(flags, built.meta.ByteSize()) < 0.1) as running:
            wanted = [p for p in wanted if comparable(running.graph, p, reference)]
            rows = steps(running, built, wanted, copies)
    except (tf.errors.OpError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, tf.errors.DeadlineExceededError):
            return Verdict("hang", first_line(error), warnings=tuple(warnings))
        if "size" in warnings:
            return Verdict("differs", "the warning 'size' says that it may not load", warnings=tuple(warnings))
        return Verdict("fails", first_line(error), warnings=tuple(warnings))
    return compare(built, reference, rows, excuses, warnings)


def first_line(error) -> str:
    lines = [line for line in str(error).strip().splitlines() if "Graph execution error" not in line and line]
    return f"{type(error).__name__}: {' '.join(lines)[:500]}"


def comparable(graph, name: str, reference: Reference) -> bool:
    try:
        return graph.get_tensor_by_name(name).dtype == reference.running.graph.get_tensor_by_name(name).dtype
    except KeyError:
        return False


def compare(built, reference, rows, excuses, warnings) -> Verdict:
    want = dict(reference.rows)
    warned = tuple(warnings)
    found = None
    for where, values in rows:
        if where.startswith("copies"):
            own = dict(rows)[where[len("copies ") :]]
            for name, value in values.items():
                primary = re.fullmatch(r"(.*)/replica_\d+", name)[1]
                off = difference(value, own[primary])
                if off > tolerance(own[primary], built.dtype) * 1e-3:
                    detail = f"{where}: {name} is off {primary} by {off:.3g}"
                    noise = reference.noise().get((where[len("copies ") :], primary), 0.0)
                    if off > 30 * noise:
                        return Verdict("drift", detail, name, warned)
            continue
        for name, value in values.items():
            theirs = want[where][name]
            off = difference(value, theirs)
            limit = tolerance(theirs, built.dtype)
            if off <= limit:
                continue
            if found is None or found.kind == "sensitive":
                noise = reference.noise().get((where, name), 0.0)
                kind = "wrong" if off > limit + 30 * noise else "sensitive"
                if found is None or kind == "wrong":
                    found = Verdict(kind, f"{where}: {name} is off by {off:.3g}, limit {limit:.3g}, noise {noise:.3g}", name)
    if found is None:
        return Verdict("warned" if excuses else "ok", warnings=warned)
    found.warnings = warned
    if found.kind == "wrong" and excuses:
        found.kind = "differs"
    return found
