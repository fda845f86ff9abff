# SPDX-License-Identifier: Apache-2.0
"""Runs a model before and after graft-opt in real TensorFlow, and compares.

    export(spec)                      the model's MetaGraphDef, written once
    reference(spec)                   what the single-device graph (or, for batch norm, the tower graph) computes
    rewrite(path, Options(...))       graft-opt on a file; raises GraftError when it fails
    Session(path, replicas)           the rewritten graph, loaded by its original names

The environment variable GRAFT_OPT names the compiler; the default is build/release/bin/graft-opt.
"""

import atexit
import collections
import dataclasses
import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from typing import Callable, Dict, List, Optional, Sequence, Tuple

import models
import numpy as np
import summary
import tensorflow as tf
from google.protobuf import text_format
from google.protobuf.message import DecodeError
from models import STEPS, Spec
from tensorflow.python.framework.meta_graph import read_meta_graph_file

tf1 = tf.compat.v1

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RUN_TIMEOUT_MS = 60000  # a collective that lacks a member must fail, not hang


def graft_opt() -> str:
    return os.environ.get("GRAFT_OPT") or os.path.join(ROOT, "build", "release", "bin", "graft-opt")


@functools.lru_cache(maxsize=None)
def workdir() -> str:
    directory = tempfile.mkdtemp(prefix="graft-conformance-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory


# --- Running graft-opt. ---


# Files that graft-opt wrote and no session has loaded yet: the time and size of each, and the input.
WRITTEN: Dict[str, Tuple[Tuple[int, int], str]] = {}
MODEL_OF: Dict[str, str] = {}  # the model that a file holds, for the table of results


class GraftError(AssertionError):
    pass


@dataclasses.dataclass(frozen=True)
class Options:
    """How a graph is rewritten."""

    replicas: int
    strategy: str = "all-reduce"
    reduction: str = "auto"
    extra: Tuple[str, ...] = ()

    def arguments(self) -> List[str]:
        flags = [f"--replicas={self.replicas}", "--device-type=CPU", f"--strategy={self.strategy}"]
        return flags + [f"--reduction={self.reduction}", *self.extra]


# graft has no check of the output of these: docs/Guarantees.md says why.
UNVERIFIED = {"--strategy=ipu-multi-worker"}


DISTRIBUTES = ("--replicas", "--devices", "--strategy", "--cluster", "--resources")
SAYS_STATISTICS = ("--batch-norm", "--passes", "--certify")


# The memory of a process counts from its fork on, so its parent is a small process without TensorFlow.
MEASURED = """
import os, sys
child = os.fork()
if child == 0:
    os.execv(sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(child, 0)
print(usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def cost(arguments: Sequence[str]) -> tuple[float, int]:
    """Seconds of the processor, and peak resident KiB, of one good run of graft-opt."""
    command = [sys.executable, "-S", "-c", MEASURED, graft_opt(), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=600)
    assert done.returncode == 0, done.stderr
    seconds, memory = done.stdout.split()[-2:]
    return float(seconds), int(memory)


def run_graft(arguments: Sequence[str], check: bool = True, verify: bool = True) -> subprocess.CompletedProcess:
    """Runs graft-opt; with `verify`, what it writes is read again and checked against the input."""
    command = [graft_opt(), *arguments]
    # The oracle of a graph with batch norms takes the statistics of each replica's rows.
    if any(a.startswith(DISTRIBUTES) for a in arguments) and not any(a.startswith(SAYS_STATISTICS) for a in arguments):
        command.append("--batch-norm=local")
    if verify and "-o" in command and not UNVERIFIED & set(command) and "--verify-output" not in command:
        command.append("--verify-output")
    if not os.path.exists(command[0]):
        raise GraftError(f"there is no {command[0]}: build the preset 'release', or set GRAFT_OPT")
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=120)
    if check and done.returncode != 0:
        raise GraftError(f"exit status {done.returncode} of {' '.join(command)}\n{done.stderr}")
    # A program is no graph of TensorFlow's ops.
    of_program = any(a.startswith(("--passes", "--emit")) for a in command)
    if done.returncode == 0 and "-o" in command and not of_program and any(a.startswith(DISTRIBUTES) for a in command):
        note_written(command[command.index("-o") + 1], next((a for a in command[1:] if os.path.isfile(a)), ""))
    return done


def version_of(path: str) -> Tuple[int, int]:
    status = os.stat(path)
    return status.st_mtime_ns, status.st_size


def note_written(path: str, source: str):
    if os.path.isfile(path) and os.path.splitext(path)[1] in (".meta", ".pb", ".pbtxt"):
        WRITTEN[path] = version_of(path), source


def load_written():
    """TensorFlow imports every file that was written with status 0 and no session has loaded, if it imports the input."""

    def imports(path: str):
        with tf.Graph().as_default():
            tf.import_graph_def(graph_of(path), name="")

    try:
        for path, (version, source) in WRITTEN.items():
            if not os.path.exists(path) or version_of(path) != version:
                continue
            try:
                imports(path)
            except Exception:
                try:
                    imports(source)
                except Exception:
                    continue
                raise
    finally:
        WRITTEN.clear()


def graph_of(path: str):
    """The graph of a file, which is that of a MetaGraphDef or a GraphDef, as its input was."""
    with open(path, "rb") as file:
        content = file.read()
    for message in tf1.MetaGraphDef(), tf1.GraphDef():
        try:
            if path.endswith(".pbtxt"):
                text_format.Parse(content, message)
            else:
                message.ParseFromString(content)
        except (text_format.ParseError, DecodeError):
            continue
        graph = message.graph_def if isinstance(message, tf1.MetaGraphDef) else message
        if graph.node and all(node.op for node in graph.node):
            return graph
    raise AssertionError(f"{path} holds no graph")


def assert_same_bytes(got: str, want: str):
    """Two files are equal; what differs in meaning, if they are not, is in the message."""
    with open(got, "rb") as one, open(want, "rb") as other:
        if one.read() == other.read():
            return
    diff = os.path.join(os.path.dirname(graft_opt()), "graft-diff")
    done = subprocess.run([diff, want, got], capture_output=True, text=True, errors="replace", check=False)
    raise AssertionError(f"{got} has other bytes than {want}\n{done.stdout or 'and the same meaning'}{done.stderr}")


def rewrite(path: str, options: Options, suffix: Optional[str] = None) -> Tuple[str, str]:
    """Returns the output's path and what was said on stderr."""
    handle, out = tempfile.mkstemp(suffix=suffix or os.path.splitext(path)[1], dir=workdir())
    os.close(handle)
    done = run_graft([path, "-o", out, *options.arguments()], check=False)
    model = MODEL_OF.get(path, "other graphs")
    strategy = "a record" if os.path.exists(options.strategy) else options.strategy
    summary.note(model, strategy, options.replicas, done.stderr, done.returncode)
    if done.returncode != 0:
        raise GraftError(f"exit status {done.returncode} of graft-opt {path}\n{done.stderr}")
    return out, without_even_rows(without_spread(done.stderr))


def without_spread(said: str) -> str:
    """The messages about values, without those about the spread of the work."""
    return re.sub(r"(?m)^.* % of the work of a step is spread .*\n(?:  note: .*\n)*", "", said)


def without_even_rows(said: str) -> str:
    """The messages besides the remark of a node that needs rows that the replicas divide. test_any_rows.py runs such steps."""
    return re.sub(r"(?m)^.*remark: node '.*': fails in a step whose number of rows .*\n?", "", said)


def without_order(said: str, *readers: str) -> str:
    """The messages besides those about reads that nothing orders with an update; one of `readers` has to be their first."""
    line = re.compile(r"(?m)^.*warning: node '(.*?)': reads a variable, and nothing in the input orders .*\n")
    found = line.search(said)
    assert found and found[1] in readers, said
    return line.sub("", said)


# --- Comparing. ---


def assert_close(got, want, what: str, slack: float = 1.0):
    """|got - want| <= 1e-5 * max(1e-2, max|want|), 1e-10 for float64, both times `slack`; integers are equal."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"{what}: shape {got.shape}, not {want.shape}"
    assert got.dtype == want.dtype, f"{what}: type {got.dtype}, not {want.dtype}"
    if not np.issubdtype(want.dtype, np.floating):
        assert np.array_equal(got, want), f"{what}: {got}, not {want}"
        return
    assert np.all(np.isfinite(got)), f"{what}: not finite"
    limit, worst = slack * tolerance(want), float(np.max(np.abs(got - want), initial=0.0))
    assert worst <= limit, f"{what}: off by {worst:.3g}, more than {limit:.3g} (largest value {np.max(np.abs(want)):.3g})"


def tolerance(want) -> float:
    relative = 1e-10 if want.dtype == np.float64 else 1e-5
    return relative * max(1e-2, float(np.max(np.abs(want), initial=0.0)))


def assert_all_close(got: Dict[str, np.ndarray], want: Dict[str, np.ndarray], what: str, slack: float = 1.0):
    assert sorted(got) == sorted(want), f"{what}: other variables: {sorted(set(got) ^ set(want))}"
    errors = []
    for name in want:
        try:
            assert_close(got[name], want[name], name, slack)
        except AssertionError as error:
            errors.append(str(error))
    assert not errors, f"{what}:\n  " + "\n  ".join(errors)


# --- Graphs in a session. ---


def read_name(variable) -> str:
    """The declared tensor that holds a variable's value: '<v>/read:0' or '<v>/Read/ReadVariableOp:0'."""
    return variable.to_proto().snapshot_name


class Session:
    """A graph file in a TensorFlow session of its own, used through the names that the input file declares."""

    def __init__(self, path: str, replicas: int = 1):
        self.replicas = replicas
        self.graph = tf.Graph()
        WRITTEN.pop(path, None)
        with self.graph.as_default():
            self.saver = tf1.train.import_meta_graph(path)
            self._restore_devices(path)
            self.variables = {v.op.name: read_name(v) for v in tf1.global_variables()}
            self.trainable = [v.op.name for v in tf1.trainable_variables()]
            self.copies = self._find_copies()
        self.session = None
        self.restart(init=False)

    def _restore_devices(self, path: str):
        """Every node gets the device that the file says. To import a graph with Python moves a node to what it is colocated
        with; whoever loads the file otherwise is refused when that is on another device."""
        for node in read_meta_graph_file(path).graph_def.node:
            self.graph.get_operation_by_name(node.name)._set_device(node.device)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.session is not None:
            self.session.close()
        self.session = None

    def restart(self, init: bool = True, grappler: bool = True):
        """A new session: no variable has a value, and seeded random operations start again."""
        self.close()
        config = tf1.ConfigProto(
            device_count={"CPU": self.replicas},
            allow_soft_placement=False,
            inter_op_parallelism_threads=2,
            intra_op_parallelism_threads=1,
        )
        if not grappler:
            config.graph_options.rewrite_options.disable_meta_optimizer = True
        self.session = tf1.Session(graph=self.graph, config=config)
        if init:
            self.run("init")

    def _find_copies(self) -> Dict[str, Dict[int, tf.Tensor]]:
        """Tensors that hold the copies `<v>/replica_<i>` of each variable."""
        copies = {name: {} for name in self.variables}
        for op in self.graph.get_operations():
            if "_graft_aggregation" in op.node_def.attr:
                continue  # sync-on-read: each replica has a part
            match = re.fullmatch(r"(.*)/replica_(\d+)", op.name)
            if not match or match[1] not in copies:
                continue
            if op.type == "VarHandleOp":
                with tf1.device(op.device):
                    value = tf.raw_ops.ReadVariableOp(resource=op.outputs[0], dtype=op.get_attr("dtype"))
            elif op.type in ("VariableV2", "Variable"):
                value = op.outputs[0]
            else:
                continue
            copies[match[1]][int(match[2])] = value
        return copies

    def run(self, fetches, feeds=None, metadata=None, trace=False):
        options = tf1.RunOptions(timeout_in_ms=RUN_TIMEOUT_MS)
        if trace:
            options.trace_level = tf1.RunOptions.FULL_TRACE
        return self.session.run(fetches, feeds, options=options, run_metadata=metadata)

    def step(self, batch, **kwargs) -> np.ndarray:
        """One training step on a global batch, in the input's names. Returns the loss."""
        x, y = batch
        return self.run(["loss:0", "train_op"], {"x:0": x, "y:0": y}, **kwargs)[0]

    def values(self) -> Dict[str, np.ndarray]:
        return self.run(self.variables)

    def check_copies(self, what: str):
        """Every copy of a variable equals the primary."""
        values, copies = self.run([self.variables, self.copies])
        for name, by_replica in copies.items():
            for replica, value in by_replica.items():
                assert_close(value, values[name], f"{what}: {name}/replica_{replica}")

    def check(self, want: Dict[str, np.ndarray], what: str):
        assert_all_close(self.values(), want, what)
        self.check_copies(what)

    def save(self) -> str:
        prefix = os.path.join(tempfile.mkdtemp(dir=workdir()), "model")
        return self.saver.save(self.session, prefix, write_meta_graph=False, write_state=False)

    def restore(self, prefix: str):
        self.saver.restore(self.session, prefix)


# --- Exports and references, made once. ---


@functools.lru_cache(maxsize=None)
def exports() -> str:
    """Returns the folder of exported models of these sources and this TensorFlow. All processes of a run share it."""
    digest = hashlib.sha256(f"{tf.__version__} {sys.version}".encode())
    folder = os.path.dirname(os.path.abspath(__file__))
    for name in sorted(os.listdir(folder)):
        if name.startswith("models") and name.endswith(".py"):
            with open(os.path.join(folder, name), "rb") as file:
                digest.update(file.read())
    path = os.path.join(ROOT, "build", "exports", digest.hexdigest()[:16])
    os.makedirs(path, exist_ok=True)
    return path


def exported(name: str, path: str, write: Callable[[str], str]) -> str:
    """Copies the export `name` to `path`. If no process has exported it yet, `write` does so."""
    name = f"{models.BATCH}-{name}"  # some tests export models of other batches
    kept = os.path.join(exports(), name)
    if not os.path.exists(kept):
        # Another process may write the same file: the last one replaces it.
        with tempfile.TemporaryDirectory(dir=exports()) as folder:
            os.replace(write(os.path.join(folder, name)), kept)
    shutil.copyfile(kept, path)
    return path


@functools.lru_cache(maxsize=None)
def export(spec: Spec, extension: str = ".meta") -> str:
    name = str(spec) + extension
    path = os.path.join(workdir(), name)
    MODEL_OF[path] = spec.model
    return exported(name, path, lambda to: models.build(spec).write(to))


@dataclasses.dataclass
class Reference:
    """A run of the oracle: the variables before step 0 and after each step, the losses, the checkpoint after step 1."""

    variables: List[Dict[str, np.ndarray]]
    losses: List[np.ndarray]
    checkpoint: str


def oracle(spec: Spec, replicas: int) -> str:
    """The graph whose numbers a rewritten one must have: the input itself, but for local batch-norm statistics."""
    if models.MODELS[spec.model].batch_norm and replicas > 1:
        path = os.path.join(workdir(), f"{spec}-towers{replicas}.meta")
        return exported(os.path.basename(path), path, lambda to: models.build(spec, towers=replicas).write(to))
    return export(spec)


def run_reference(path: str, batches) -> Reference:
    with Session(path) as session:
        session.restart()
        variables, losses, checkpoint = [session.values()], [], None
        for batch in batches:
            losses.append(session.step(batch))
            variables.append(session.values())
            checkpoint = checkpoint or session.save()
        return Reference(variables, losses, checkpoint)


def reference(spec: Spec, replicas: int = 1) -> Reference:
    return _reference(spec, replicas if models.MODELS[spec.model].batch_norm else 1)


@functools.lru_cache(maxsize=None)
def _reference(spec: Spec, replicas: int) -> Reference:
    return run_reference(oracle(spec, replicas), models.batches(spec.model, spec.dtype))


# --- Checks on a rewritten graph. ---


class Rewritten(Session):
    """A model after graft-opt."""

    def __init__(self, spec: Spec, options: Options, path: Optional[str] = None):
        self.spec, self.options = spec, options
        self.zoo = models.MODELS[spec.model]
        self.batches = models.batches(spec.model, spec.dtype)
        self.path, self.stderr = rewrite(path or export(spec), options)
        super().__init__(self.path, options.replicas)

    @property
    def reference(self) -> Reference:
        return reference(self.spec, self.replicas)

    def check_steps(self):
        """Initial values, then the loss of every step and the variables after the first and the last."""
        self.restart()
        self.check(self.reference.variables[0], "after init")
        for i, batch in enumerate(self.batches, start=1):
            loss = self.step(batch)
            assert_close(loss, self.reference.losses[i - 1], f"loss of step {i}")
            if i in (1, STEPS):
                self.check(self.reference.variables[i], f"after step {i}")

    def check_interface(self):
        """Feeds keep their global shape; each replica owns a copy of each mirrored variable."""
        want = models.build(self.spec).graph
        for name in ("x:0", "y:0", "loss:0"):
            got, expected = self.graph.get_tensor_by_name(name), want.get_tensor_by_name(name)
            assert got.dtype == expected.dtype, name
            assert got.shape.as_list() == expected.shape.as_list(), name
        others = list(range(1, self.replicas))
        for name, copies in self.copies.items():
            wanted = [others] if self.options.strategy == "all-reduce" and name in self.trainable else [others, []]
            assert sorted(copies) in wanted, f"{name} has copies {sorted(copies)}"
            for replica, value in copies.items():
                assert value.op.device.endswith(f"CPU:{replica}"), f"{value.op.name} is on {value.op.device}"

    def check_diagnostics(self):
        """Silent on success; what is assumed is a warning that names the op."""
        if self.zoo.batch_norm and self.replicas > 1:
            names = {
                re.sub(r"^replica_\d+/", "", op.name)
                for op in self.graph.get_operations()
                if op.type.startswith("FusedBatchNorm") and "Grad" not in op.type
            }
            # One warning for all of them: it names the first, its notes up to three more.
            named = {name for name in names if f"'{name}'" in self.stderr}
            more = re.search(r"; and (\d+) more like this", self.stderr)
            assert len(named) == min(len(names), 4), self.stderr
            assert len(names) == 1 + (int(more[1]) if more else 0), self.stderr
        else:
            assert self.stderr == "", self.stderr

    def check_checkpoints(self):
        """The reference's checkpoint restores every copy here, and ours restores the single-device graph."""
        want = self.reference
        self.restore(want.checkpoint)
        self.check(want.variables[1], "restored from the single-device checkpoint")
        assert_close(self.step(self.batches[1]), want.losses[1], "loss after restore")
        self.check(want.variables[2], "a step after restore")
        ours = self.save()
        reader = tf.train.load_checkpoint(ours)
        keys = reader.get_variable_to_shape_map()
        assert sorted(keys) == sorted(want.variables[2]), "the checkpoint has other keys"
        with Session(oracle(self.spec, self.replicas)) as single:
            single.restore(ours)
            single.check(want.variables[2], "the single-device graph restored from our checkpoint")
            assert_close(single.step(self.batches[2]), want.losses[2], "its loss")
            single.check(want.variables[3], "a step of it")

    def trace(self) -> List["Executed"]:
        """Every node that ran in one step, with its device and the rows of its first output."""
        metadata = tf1.RunMetadata()
        self.restart(init=False, grappler=False)  # Grappler would fuse nodes into others
        self.restore(self.reference.checkpoint)
        self.step(self.batches[0], metadata=metadata, trace=True)
        return executed(metadata)

    def check_spread(self):
        """Each replica works on its own device, on its share of the batch, and nobody works on the whole batch."""
        ran = self.trace()
        share = models.BATCH // self.replicas
        seen = collections.defaultdict(list)
        for node in ran:
            if re.search(r"/_\d+$", node.name):
                continue  # TensorFlow's own sends and receives between devices
            match = re.fullmatch(r"(?:replica_(\d+)/)?(.*)", node.name)
            replica = int(match[1]) if match[1] else None
            # A lookup in a shared table runs where the table is.
            at_table = self.options.strategy == "ps" and match[2].split(":")[0] == "lookup"
            if replica is not None and not at_table:
                assert node.device == replica, f"{node.name} ran on CPU:{node.device}"
            if match[2].split(":")[0] == self.zoo.anchor and node.rows is not None:
                seen[replica or 0 if at_table else node.device].append((replica, node.rows))
        for replica in range(self.replicas):
            assert seen[replica], f"{self.zoo.anchor} did not run on CPU:{replica}"
            for name, rows in seen[replica]:
                assert rows == share, f"replica {replica}: {self.zoo.anchor} worked on {rows} rows, not {share}"
                if self.replicas > 1:
                    assert name == replica, f"{self.zoo.anchor} of replica {replica} has no prefix"


@dataclasses.dataclass(frozen=True)
class Executed:
    name: str
    device: int
    rows: Optional[int]


def executed(metadata) -> List[Executed]:
    result = []
    for device in metadata.step_stats.dev_stats:
        match = re.fullmatch(r".*/device:CPU:(\d+)", device.device)
        if not match:
            continue
        for node in device.node_stats:
            shapes = [o.tensor_description.shape for o in node.output if o.slot == 0]
            rows = shapes[0].dim[0].size if shapes and shapes[0].dim else None
            result.append(Executed(node.node_name, int(match[1]), rows))
    return result


def read_graph_def(path: str) -> tf1.GraphDef:
    graph = tf1.GraphDef()
    with open(path, "rb") as file:
        data = file.read()
    if path.endswith(".pbtxt"):
        text_format.Parse(data.decode("utf-8"), graph)
    else:
        graph.ParseFromString(data)
    return graph


def read_meta(path: str) -> tf1.MetaGraphDef:
    meta = tf1.MetaGraphDef()
    with open(path, "rb") as file:
        meta.ParseFromString(file.read())
    return meta


def compare_graph_def(path: str, spec: Spec, options: Options):
    """Runs a rewritten GraphDef, by name only."""
    graph = tf.Graph()
    with graph.as_default():
        tf1.import_graph_def(read_graph_def(path), name="")
    want = reference(spec, options.replicas)
    names = {}
    for name in want.variables[0]:
        names[name] = f"{name}/Read/ReadVariableOp:0" if spec.kind == "resource" else f"{name}/read:0"
    config = tf1.ConfigProto(device_count={"CPU": options.replicas}, inter_op_parallelism_threads=2)
    run_options = tf1.RunOptions(timeout_in_ms=RUN_TIMEOUT_MS)
    with tf1.Session(graph=graph, config=config) as session:
        session.run("init", options=run_options)
        for i, (x, y) in enumerate(models.batches(spec.model, spec.dtype), start=1):
            feeds = {"x:0": x, "y:0": y}
            loss, _ = session.run(["loss:0", "train_op"], feeds, options=run_options)
            assert_close(loss, want.losses[i - 1], f"loss of step {i}")
            assert_all_close(session.run(names), want.variables[i], f"after step {i}")
