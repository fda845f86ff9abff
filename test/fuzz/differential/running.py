# SPDX-License-Identifier: Apache-2.0
"""One graph through graft-opt and TensorFlow: what is compared, and the verdict.

    Reference(built)                 the steps of the single device
    judge(built, reference, flags)   graft-opt with these flags, the steps of what it writes, the verdict

Numbers are compared in three places: all variables after the initializers and after each step, all copies of each, and
every tensor of the input that has its name in the output still (before the first step and after the last).
"""

import dataclasses
import json
import os
import re
import subprocess
import tempfile
from typing import Dict, List, Optional

import genes
import numpy as np
import tensorflow.compat.v2 as tf
import sessions
from genes import Built, mix, tf1
from sessions import Running
from tensorflow.python.framework import op_def_registry

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
GRAFT_TIMEOUT = 60

# A warning that says that numbers may differ. With --fallback=once what is not proved is computed once, so only what rests
# on an assumption or was asked for is excused.
ASKED = {"random", "local-batch-norm", "compressor", "policy", "grad", "one-step", "combine"}
NOT_PROVED = {"fallback", "write", "fetch", "effect", "call"}
BAD = ("wrong", "fails", "drift", "crash", "hang")
# Refusals of the certificate that a user can mend in the input. Any other refusal of the certificate is one of
# a program that graft should not have made.
MENDABLE = (
    "may be out of its range at run time",
    "mixes a per-replica shard",
    "combines a tensor whose size depends on the values",
    "applies a size that does not scale",
    "takes a fixed number of rows",
    "splits rows into parts",
    "splits a per-replica shard",
    "so TensorFlow would not load the graph",
)
# The error of `Split` for a feed that the replicas do not divide; a step of a family may have such a feed.
NOT_DIVIDED = "Number of ways to split should evenly divide the split dimension"
NOT_SHARED = "is the number of rows of all replicas: feed a multiple of"  # FedSizes.cpp
NOT_EQUAL = "have different numbers of rows"  # RepeatRows.cpp: one of them has a row that one device would broadcast
NOT_SHARDS = "is combined with a multiple of"  # RepeatRows.cpp: one of two feeds has a static batch
NO_ROWS = "and a collective gathers no tensor without rows"  # RepeatRows.cpp
NOT_CUT = "array split does not result in an equal division"  # numpy, of the rows of workers


def odd(built: Built) -> bool:
    """Returns true if the replicas do not divide the rows of a step."""
    if built.plan is not None and built.plan.head.get("odd", 0) % built.replicas:
        return True
    return built.beside is not None and any(len(feeds[n]) % built.replicas for feeds in built.feeds for n in built.split if n in feeds)


def graft_opt() -> str:
    return os.environ.get("GRAFT_OPT") or os.path.join(ROOT, "build", "release", "bin", "graft-opt")


# --- Runs. ---


def steps(running: Running, built: Built, probes: List[str], copies: Dict[str, str], saves: str, restores: str = ""):
    """[(where, {name: value})] of a whole run. A graph with a saver writes the checkpoint `saves` after the first step, and
    goes on from the checkpoint `restores` at the end: from the one of somebody else, or its own."""
    rows, saver = [], built.saver
    can_probe = built.source == "feed" and probes and built.beside is None
    # One look at both: what makes a run ready takes longer than the run.
    everything = {**built.variables, **{n: n for n in probes}} if can_probe else built.variables

    def look(where, probed="", feeds=None):
        feeds = (feeds or built.feeds[-1]) if can_probe else None
        values, others = running.look(everything, copies, feeds)
        for row, names in ((where, built.variables), (probed, probes if can_probe else [])):
            if row and (names or row == where):
                rows.append((row, {n: values[n] for n in names}))
                theirs = {n: v for n, v in others.items() if n.rpartition("/replica_")[0] in names}
                if theirs:
                    rows.append((f"copies {row}", theirs))

    def step(feeds, number=0):
        if built.beside is not None:
            names = [p for p in built.beside[number] if p in probes]
            rows.append((f"of step {number + 1}", dict(zip(names, running.call(names, feeds, built.trains)))))
            return
        for train in built.trains:
            running.run(train, feeds)

    running.run("init")
    look("after init", "before the first step", built.feeds[0])
    for i, feeds in enumerate(built.feeds, start=1):
        step(feeds, i - 1)
        look(f"after step {i}", "after the last step" if i == len(built.feeds) else "")
        if saver and i == 1:
            running.run(saver.save, {saver.file: np.array(saves, object)})
    if saver:
        running.run(saver.restore, {saver.file: np.array(restores or saves, object)})
        look("after restoring")
        step(built.feeds[-1])
        look("after another step")
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
    """The results of the single device; raises if the graph does not run.

    Other numbers are no defect where they follow from a rounding: if the input's own change as much when all inputs change by
    a rounding (is_noise), or if an op makes them of numbers that are the same but for a rounding (follows): what is 0 on the
    single device in exact arithmetic only is 1e-18 on replicas, and an op asks whether it is greater than 0."""

    def __init__(self, built: Built):
        self.built = built
        self.types = output_types(built.meta.graph_def)
        self.running = Running(built.meta.graph_def, 1)
        self.folder = tempfile.TemporaryDirectory(prefix="graft-fuzz-") if built.saver else None
        self.checkpoint = os.path.join(self.folder.name, "own") if built.saver else ""
        self.rows = steps(self.running, built, built.probes, {}, self.checkpoint)
        self.noise = {}
        self.shakes = 0
        self.nodes = None

    def restored(self, checkpoint):
        """The saved variables, out of a checkpoint that somebody else wrote."""
        saver = self.built.saver
        self.running.run(saver.restore, {saver.file: np.array(checkpoint, object)})
        return self.running.look({n: self.built.variables[n] for n in saver.variables}, {})[0]

    def close(self):
        self.running.close()
        if self.folder:
            self.folder.cleanup()

    def is_noise(self, where: str, name: str, off: float, limit: float = 0.0) -> bool:
        """Does the number change by as much when every input changes by a rounding?"""
        while off > limit + 30 * self.noise.get((where, name), 0.0):
            if self.shakes == SHAKES:
                return False
            self.shake()
        return True

    def follows(self, name: str, values: Dict[str, np.ndarray], where: str, limits) -> bool:
        """Does the op of tensor `name` give this value of the others, of which each is right or follows?"""
        if self.nodes is None:
            self.nodes = {n.name: n for n in self.built.meta.graph_def.node}
        node, feeds = self.nodes[name.partition(":")[0]], {}
        theirs = dict(self.rows)[where]
        for text in node.input:
            tensor = text if ":" in text else text + ":0"
            kind = self.nodes[text.lstrip("^").partition(":")[0]].op
            if text.startswith("^") or kind == "Const":
                continue
            if tensor in self.built.feeds[0]:
                continue
            if tensor not in values or tensor not in theirs:
                return False
            off = difference(values[tensor], theirs[tensor])
            if off > limits(theirs[tensor]) and not self.follows(tensor, values, where, limits):
                return False
            feeds[tensor] = values[tensor]
        if not feeds:
            return False
        given = self.built.feeds[0 if where.startswith("before") else -1]
        try:
            value = self.running.call([name], {**given, **feeds})[0]
        except tf.errors.OpError:
            return False
        return difference(value, values[name]) <= limits(value)

    def shake(self):
        draw, self.shakes = self.shakes, self.shakes + 1
        rng = np.random.RandomState(draw)
        graph_def, built = self.built.meta.graph_def, self.built
        if draw >= 5:
            graph_def, built = shaken(graph_def, rng, built.dtype), shaken_feeds(built, rng)
        try:
            with Running(graph_def, 1, grappler=draw % 2 == 1) as r:
                rows = steps(r, built, self.built.probes, {}, self.checkpoint + "-shaken")
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


EPSILON = {"float32": 3e-7, "float64": 1e-13, "half": 5e-3}


def shake(value, rng, dtype):
    value = np.asarray(value)
    if value.dtype not in (np.float32, np.float64):
        return value
    return (value * (1 + EPSILON[dtype] * rng.uniform(-1, 1, value.shape))).astype(value.dtype)


def shaken(graph_def, rng, dtype):
    result = tf1.GraphDef()
    result.CopyFrom(graph_def)
    for node in result.node:
        if node.op == "Const" and node.attr["dtype"].type in (1, 2):
            value = tf.make_ndarray(node.attr["value"].tensor)
            moved = shake(value, rng, dtype)
            node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(moved, dtype=value.dtype, shape=value.shape))
    shake_results(result, rng, dtype)
    return result


# A processor computes packets of elements in one way, and the elements left over in another: how many these are depends on the
# rows. So equal elements of the input need not give equal results, and which of them is largest is chance.
PACKETS = {"Sigmoid", "Tanh", "Exp", "Expm1", "Log", "Log1p", "Softplus", "Softsign", "Elu", "Selu", "Erf", "Pow", "Rsqrt", "Sin",
           "Cos", "Softmax", "LogSoftmax"}  # fmt: skip


def shake_results(graph_def, rng, dtype):
    """Each element of what is computed in packets is off by a rounding of its own."""
    shaken = {}
    for node in list(graph_def.node):
        if node.op not in PACKETS or node.attr["T"].type not in (1, 2):
            continue
        kind, name = node.attr["T"].type, f"{node.name}/fuzz"
        new = lambda op, suffix, *inputs: graph_def.node.add(op=op, name=name + suffix, input=inputs, device=node.device)
        new("Shape", "_shape", node.name).attr["T"].type = kind
        draw = new("RandomUniform", "_draw", name + "_shape")
        draw.attr["dtype"].type, draw.attr["T"].type = kind, 3
        draw.attr["seed"].i, draw.attr["seed2"].i = 1, rng.randint(1 << 30)
        ends = {"_epsilon": 2 * EPSILON[dtype], "_least": 1 - EPSILON[dtype]}
        for suffix, value in ends.items():
            end = new("Const", suffix, "^" + node.name)  # in the same loop
            end.attr["dtype"].type = kind
            end.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, dtype=kind))
        for op, suffix, *inputs in (
            ("Mul", "_off", name + "_draw", name + "_epsilon"),
            ("AddV2", "_factor", name + "_off", name + "_least"),
            ("Mul", "", node.name, name + "_factor"),
        ):
            new(op, suffix, *inputs).attr["T"].type = kind
        shaken[node.name] = shaken[node.name + ":0"] = name
    for node in graph_def.node:
        if "/fuzz" not in node.name:
            node.input[:] = [shaken.get(t, t) for t in node.input]


def shaken_feeds(built, rng):
    return dataclasses.replace(built, feeds=[{n: shake(v, rng, built.dtype) for n, v in feeds.items()} for feeds in built.feeds])


def difference(a, b) -> float:
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return float("inf")
    if a.size == 0 or a.tobytes() == b.tobytes():
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
    if value.dtype == tf.bfloat16.as_numpy_dtype:
        value = value.astype(np.float32)
    if not np.issubdtype(value.dtype, np.floating):
        return 0.0
    relative = 3e-2 if dtype == "half" else 1e-9 if value.dtype == np.float64 and dtype == "float64" else 2e-5
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


def warning_ids(remarks: str):
    return sorted(set(re.findall(r'^--- !Warning\nId: "([^"]*)"', remarks, re.M)))


def split_feeds(remarks: str) -> Dict[str, int]:
    """Along which axis feeds are split."""
    found = re.findall(r'^Id: "feed"\nPass: ".*"\nNode: "(.*)"\n(?:Line: .*\n)?Message: "split along axis (\d+)', remarks, re.M)
    return {name if ":" in name else name + ":0": int(axis) for name, axis in found}


def own_rows(remarks: str):
    return set(re.findall(r'^--- !Remark\nId: "worker"\nPass: ".*"\nNode: "(.*)"', remarks, re.M))


OF_BUILDERS = ("--strategy", "--emit-strategy", "--seed", "--m", "--group-size", "--spec", "--compressor", "--local-repl")


def rewrite(built: Built, flags: List[str], folder: str):
    """(exit code, stderr, what --remarks says, the paths of the outputs: one, or one for each worker)

    `{folder}` in an option is the folder of the files."""
    flags = [f.replace("{folder}", folder) for f in flags]
    source, out, said = (os.path.join(folder, n) for n in ("in.meta", "out.meta", "remarks.yml"))
    with open(source, "wb") as file:
        file.write(built.meta.SerializeToString(deterministic=True))
    outs, own = [out], [[]]
    for flag in flags:
        if flag.startswith("--workers="):
            count = int(flag.partition("=")[2])
            outs = [out.replace(".meta", f"-{i}.meta") for i in range(count)]
            own = [[f"--worker={i}"] for i in range(count)]
        if flag.startswith("--cluster="):
            tasks = built.replicas // int(value_of(flags, "--replicas"))
            with open(flag.partition("=")[2], "w", encoding="utf-8") as file:
                json.dump({"cluster": {"worker": [f"h{i}:1" for i in range(tasks)]}}, file)
    for path in (*outs, said):
        if os.path.exists(path):
            os.remove(path)
    try:
        for path, more in zip(outs, own):
            command = [graft_opt(), source, "-o", path, f"--remarks={said}", *flags, *more]
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=GRAFT_TIMEOUT)
            if done.returncode:
                break
    except subprocess.TimeoutExpired:
        return None, "", "", outs
    remarks = ""
    if os.path.exists(said):
        with open(said, encoding="utf-8", errors="replace") as file:
            remarks = file.read()
    return done.returncode, done.stderr, remarks, outs


def value_of(flags: List[str], option: str) -> str:
    return next((f.partition("=")[2] for f in flags if f.startswith(option + "=")), "")


def strategy_again(flags: List[str], folder: str, out: str) -> str:
    """The fault of the emitted strategy file: reading it must give the same bytes again."""
    file = value_of(flags, "--emit-strategy").replace("{folder}", folder)
    again = [f.replace("{folder}", folder) for f in flags if not f.startswith(OF_BUILDERS)]
    new, emitted = out.replace(".meta", "-again.meta"), file.replace("strategy.", "again.")
    command = [graft_opt(), os.path.join(folder, "in.meta"), "-o", new, *again, f"--strategy={file}", f"--emit-strategy={emitted}"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=GRAFT_TIMEOUT)
    if done.returncode:
        return f"the strategy file is refused: {done.stderr[:500]}"
    # These two decide on a policy alone, and the file on groups and servers.
    if value_of(flags, "--strategy") not in ("all-reduce", "ps") and not same_bytes(out, new):
        return "the strategy file makes another graph"
    return "" if same_bytes(file, emitted) else "the strategy file is not emitted again as it is"


def same_bytes(one: str, other: str) -> bool:
    with open(one, "rb") as a, open(other, "rb") as b:
        return a.read() == b.read()


def read_meta(path: str):
    meta = tf1.MetaGraphDef()
    with open(path, "rb") as file:
        meta.ParseFromString(file.read())
    return meta


def reference_of(built: Built, flags: List[str], reference: Reference) -> Reference:
    """That of the options: replicas that take a batch each take one of all of them, and a tensor may be fed."""
    if "--batch=per-replica" in flags:
        return Reference(built.again(built.replicas))
    for flag in flags:
        name = flag.split("=")[1] + ":0" if flag.startswith("--feed=") else ""
        if name in built.axes:
            value = dict(reference.rows).get("before the first step", {}).get(name)
            if value is None:
                raise genes.Illegal("what is fed is not known")
            fed = [{**feeds, name: (value * (0.9 - 0.1 * i)).astype(value.dtype)} for i, feeds in enumerate(built.feeds)]
            probes = [p for p in built.probes if p != name]  # no run feeds and fetches one tensor
            return Reference(dataclasses.replace(built, feeds=fed, probes=probes))
    return reference


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
    code, said, remarks, outs = rewrite(built, flags, folder)
    warnings = tuple(warning_ids(remarks))
    if code is None:
        return Verdict("hang", "graft-opt does not end")
    if code != 0:
        if code != 1 or "internal error" in said:
            return Verdict("crash", f"exit {code}: {said[-1500:]}")
        first = next((line for line in said.splitlines() if "error:" in line), said[:200])
        own = re.search(r"\[(check-replication|verify-output)\]", first) and not any(text in first for text in MENDABLE)
        return Verdict("uncertified" if own else "refused", re.sub(r"^\S*error: |^.*?error: ", "", first))
    if value_of(flags, "--emit-strategy"):
        wrong = strategy_again(flags, folder, outs[0])
        if wrong:
            return Verdict("fails", wrong, warnings=warnings)
    on_tpu = "--strategy=tpu" in flags
    if on_tpu:
        import tpu_expand

        try:
            outs = [tpu_expand.expand(outs[0], outs[0].replace(".meta", "-cpu.meta"))]
        except AssertionError as error:
            return Verdict("fails", f"not a TPU form: {error}", warnings=warnings)
    metas = [read_meta(path) for path in outs]
    for meta in metas:
        if change is not None:
            change(meta.graph_def)
        if value_of(flags, "--cluster"):
            sessions.on_one_machine(meta.graph_def, int(value_of(flags, "--replicas")))
    try:
        mine = reference_of(built, flags, reference)
    except (tf.errors.OpError, genes.Illegal) as error:
        return Verdict("illegal", first_line(error))
    try:
        return judge_steps(mine.built, mine, flags, folder, metas, remarks, warnings)
    finally:
        if mine is not reference:
            mine.close()


def judge_steps(built, reference, flags, folder, metas, remarks, warnings) -> Verdict:
    means = "--fallback=mean" in flags or "--strategy=tpu" in flags or "--strategy=ipu-multi-worker" in flags
    excuses = set(warnings) & (ASKED | NOT_PROVED if means else ASKED)
    if any("sync-on-read,mean" in flag for flag in flags):
        # The mean of three equal numbers may be a rounding off, and there are float32 ones in a graph of doubles.
        built = dataclasses.replace(built, dtype="float32")
    copies = {} if len(metas) > 1 else find_copies(metas[0].graph_def, built.variables)
    if "policy" in warnings:
        copies = {}
    wanted = built.probes
    if "--strategy=tpu" in flags:
        wanted = []  # who fetches what a TPU computation has computed runs all of it, updates too
    for meta in metas:
        names = {n.name for n in meta.graph_def.node}
        lost = [p for p in built.variables.values() if p.split(":")[0] not in names]
        if lost:
            return Verdict("fails", f"'{lost[0]}' is not in the output", lost[0], warnings)
        kinds = output_types(meta.graph_def)
        wanted = [p for p in wanted if p in kinds and kinds[p] == reference.types.get(p)]
    grappler = mix(flags, built.meta.ByteSize()) < 0.1
    checkpoint = os.path.join(folder, "theirs")
    try:
        if len(metas) > 1:
            rows = dict(reference.rows)
            looks = [rows[w] for w in ("before the first step", "after the last step") if w in rows]
            own = {n: {np.shape(v[n]) for v in looks} for n in wanted if n.split(":")[0] in own_rows(remarks)}
            running = sessions.Workers([m.graph_def for m in metas], split_feeds(remarks), own, grappler)
        else:
            running = Running(metas[0].graph_def, built.replicas, grappler)
        with running:
            rows = steps(running, built, wanted, copies, checkpoint, reference.checkpoint)
        if mix(flags, "import") < 0.05:
            # The objects that Python makes from a file: collections, contexts of conditionals and loops.
            for meta in metas:
                with tf.Graph().as_default():
                    tf1.train.import_meta_graph(meta)
        if built.saver:
            rows.append(("after step 1, as it was saved", reference.restored(checkpoint)))
    except (tf.errors.OpError, ValueError, KeyError, TypeError, AssertionError) as error:
        if isinstance(error, tf.errors.DeadlineExceededError):
            return Verdict("hang", first_line(error), warnings=warnings)
        if odd(built) and any(text in str(error) for text in (NOT_DIVIDED, NOT_SHARED, NOT_EQUAL, NOT_SHARDS, NOT_CUT)):
            return Verdict("indivisible", first_line(error), warnings=warnings)
        if NO_ROWS in str(error) and any(len(feeds[n]) == 0 for feeds in built.feeds for n in built.split if n in feeds):
            return Verdict("indivisible", first_line(error), warnings=warnings)
        if "size" in warnings:
            return Verdict("differs", "the warning 'size' says that it may not load", warnings=warnings)
        return Verdict("fails", first_line(error), warnings=warnings)
    if "policy" in warnings:
        rows = [row for row in rows if not row[0].startswith("copies")]
    elif excuses:  # copies of variables are equal all the same
        rows = [row for row in rows if not (row[0].startswith("copies") and "the" in row[0].split())]
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
            key = where.partition(",")[0]
            theirs = want[key][name]
            off = difference(value, theirs)
            limit = tolerance(theirs, built.dtype)
            if off <= limit:
                continue
            if found is None or found.kind == "sensitive":
                # An excused difference needs no measurement of noise.
                limits = lambda value: tolerance(value, built.dtype)
                is_probe = key in ("before the first step", "after the last step")
                follows = lambda: is_probe and reference.follows(name, values, key, limits)
                kind = "differs" if excuses else "sensitive" if reference.is_noise(key, name, off, limit) or follows() else "wrong"
                if found is None or kind != "sensitive":
                    noise = reference.noise.get((key, name), 0.0)
                    found = Verdict(kind, f"{where}: {name} is off by {off:.3g}, limit {limit:.3g}, noise {noise:.3g}", name)
    if found is None:
        return Verdict("warned" if excuses else "ok", warnings=warned)
    found.warnings = warned
    return found
