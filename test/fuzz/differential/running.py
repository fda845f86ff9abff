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
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import pywrap_tf_session as c_api
from tensorflow.python.framework import c_api_util, op_def_registry

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


def configuration(devices: int, grappler: bool):
    config = tf1.ConfigProto(
        device_count={"CPU": devices},
        allow_soft_placement=False,
        inter_op_parallelism_threads=2,
        intra_op_parallelism_threads=1,
    )
    if not grappler:
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        config.graph_options.optimizer_options.opt_level = -1
    return config


class Running:
    """A GraphDef in a session of its own.

    TensorFlow's importer in C++ reads it, and runs go by names: no object of Python exists for a node, which is what most of
    the time of `tf.import_graph_def` and of `Session.run` is for. Devices are as they are written.
    """

    def __init__(self, graph_def, devices: int, grappler: bool = False):
        self.graph = tf.Graph()
        options = c_api_util.ScopedTFImportGraphDefOptions()
        c_api.TF_ImportGraphDefOptionsSetValidateColocationConstraints(options.options, True)
        with self.graph._c_graph.get() as graph, c_api_util.tf_buffer(graph_def.SerializeToString()) as text:
            c_api.TF_GraphImportGraphDefWithResults(graph, text, options.options)
        self.session = tf1.Session(graph=self.graph, config=configuration(devices, grappler))
        self.calls = {}

    def call(self, names, feeds=None, targets=()):
        """Values of tensors, after or beside the operations `targets`."""
        fed = sorted(feeds or {})
        key = (tuple(names), tuple(fed), tuple(targets))
        if key not in self.calls:
            options = config_pb2.CallableOptions(feed=fed, fetch=names, target=targets)
            options.run_options.timeout_in_ms = RUN_TIMEOUT_MS
            self.calls[key] = self.session._make_callable_from_options(options)
        # What is fetched of a reference is its memory.
        return [np.array(v) for v in self.calls[key](*[np.asarray(feeds[n]) for n in fed])]

    def run(self, fetches, feeds=None):
        """An operation, a list of tensors, or a dictionary of them."""
        if isinstance(fetches, str):
            return self.call([], feeds, [fetches])
        if isinstance(fetches, dict):
            return dict(zip(fetches, self.call(list(fetches.values()), feeds)))
        return self.call(list(fetches), feeds)

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
    state = {**built.variables, **copies}

    def look(where):
        values = running.run(state)
        rows.append((where, {n: values[n] for n in built.variables}))
        if copies:
            rows.append((f"copies {where}", {n: values[n] for n in copies}))

    running.run("init")
    look("after init")
    if can_probe:
        rows.append(("before the first step", running.run({n: n for n in probes}, built.feeds[0])))
    for i, feeds in enumerate(built.feeds, start=1):
        for train in built.trains:
            running.run(train, feeds)
        look(f"after step {i}")
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


SHAKES = 8  # runs of the input that tell what a rounding makes; the first ones with the same inputs: it may race with itself


class Reference:
    """What the single device computes; raises where the graph does not run."""

    def __init__(self, built: Built):
        self.built = built
        self.types = output_types(built.meta.graph_def)
        self.running = Running(built.meta.graph_def, 1)
        self.rows = steps(self.running, built, built.probes, {})
        self.noise = {}
        self.shakes = 0

    def close(self):
        self.running.close()

    def is_noise(self, where: str, name: str, off: float, limit: float = 0.0) -> bool:
        """Does the number change by as much when every input changes by a rounding?"""
        while off > limit + 30 * self.noise.get((where, name), 0.0):
            if self.shakes == SHAKES:
                return False
            self.shake()
        return True

    def shake(self):
        draw, self.shakes = self.shakes, self.shakes + 1
        rng = np.random.RandomState(draw)
        graph_def, built = self.built.meta.graph_def, self.built
        if draw >= 5:
            graph_def, built = shaken(graph_def, rng, built.dtype), shaken_feeds(built, rng)
        try:
            with Running(graph_def, 1, grappler=draw % 2 == 1) as r:
                rows = steps(r, built, self.built.probes, {})
        except tf.errors.OpError:
            return
        for (where, values), (_, ours) in zip(self.rows, rows):
            for name, value in values.items():
                off = difference(ours[name], value)
                self.noise[where, name] = max(self.noise.get((where, name), 0.0), off)


def output_types(graph_def) -> Dict[str, int]:
    """The type of each output of the nodes, by the name of the tensor; of a reference, that of what it refers to."""
    types = {}
    for node in graph_def.node:
        definition = op_def_registry.get(node.op)
        if definition is None:  # a function is called by its name
            continue
        port = 0
        for out in definition.output_arg:
            if out.type_list_attr:
                found = list(node.attr[out.type_list_attr].list.type)
            else:
                found = [node.attr[out.type_attr].type if out.type_attr else out.type]
                found *= node.attr[out.number_attr].i if out.number_attr else 1
            for kind in found:
                types[f"{node.name}:{port}"] = kind % 100
                port += 1
    return types


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
    kinds = output_types(meta.graph_def)
    wanted = [p for p in built.probes if p in kinds and kinds[p] == reference.types.get(p)]
    if "--strategy=tpu" in flags:
        wanted = []  # who fetches what a TPU computation has computed runs all of it, updates too
    lost = [p for p in built.variables.values() if p.split(":")[0] not in types]
    if lost:
        return Verdict("fails", f"'{lost[0]}' is not in the output", lost[0], tuple(warnings))
    try:
        with Running(meta.graph_def, built.replicas, mix(flags, built.meta.ByteSize()) < 0.1) as running:
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
                    if not reference.is_noise(where[len("copies ") :], primary, off):
                        return Verdict("drift", detail, name, warned)
            continue
        for name, value in values.items():
            theirs = want[where][name]
            off = difference(value, theirs)
            limit = tolerance(theirs, built.dtype)
            if off <= limit:
                continue
            if found is None or found.kind == "sensitive":
                # What is excused needs no noise to be.
                kind = "differs" if excuses else "sensitive" if reference.is_noise(where, name, off, limit) else "wrong"
                if found is None or kind != "sensitive":
                    noise = reference.noise.get((where, name), 0.0)
                    found = Verdict(kind, f"{where}: {name} is off by {off:.3g}, limit {limit:.3g}, noise {noise:.3g}", name)
    if found is None:
        return Verdict("warned" if excuses else "ok", warnings=warned)
    found.warnings = warned
    return found
