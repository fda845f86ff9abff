# SPDX-License-Identifier: Apache-2.0
"""graft.rewrite: a graph in, a graph out, by way of graft-opt."""

import errno
import json
import os
import shutil
import subprocess
import tempfile
import weakref
from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Union

from graft._diagnostics import Diagnostic, error_of
from graft._programs import program

Path = Union[str, "os.PathLike[str]"]
How = Union[str, int, None]


@dataclass(frozen=True)
class PlanRow:
    """The predicted cost of a step under a strategy; docs/Plan.md has the model."""

    strategy: str
    seconds: float
    busiest_link: str
    busiest_bytes: int
    network_bytes: int


@dataclass(frozen=True)
class Plan:
    """The predicted cost of a step under each strategy, the cheapest first."""

    replicas: int
    nodes: int
    """Machines."""
    variables: int
    variable_bytes: int
    strategies: List[PlanRow]

    @property
    def best(self) -> PlanRow:
        return self.strategies[0]


def version() -> str:
    """The version of graft-opt, such as "0.1.0"."""
    said = subprocess.run([program("graft-opt"), "--version"], stdout=subprocess.PIPE, universal_newlines=True, check=True)
    return said.stdout.split()[1]


def _name(of: Any) -> str:
    """The name of a node: of an op, of a tensor or variable, or as it is written, `x` or `x:0`."""
    name = of if isinstance(of, str) else of.name
    return name[:-2] if name.endswith(":0") else name


def _list(what: str, of: Any, kind: Any = str) -> List[Any]:
    """`of` as a list; a single name is a list of one."""
    if of is None:
        return []
    if isinstance(of, str) or hasattr(of, "name"):
        return [of]
    if isinstance(of, (int, float, bool)) or not isinstance(of, Iterable):
        raise TypeError(f"{what} is a list of names, not {of!r}")
    found = list(of)
    for each in found:
        if not isinstance(each, kind) and not hasattr(each, "name"):
            raise TypeError(f"{what} is a list of names, but {each!r} is a {type(each).__name__}")
    return found


def _number(what: str, of: Any) -> Any:
    if of is not None and (isinstance(of, bool) or not isinstance(of, int)):
        raise TypeError(f"{what} is a number, not {of!r}")
    return of


def _how(name: str, how: How) -> str:
    if how is None:
        return name
    return f"{name}=split({how})" if isinstance(how, int) else f"{name}={how}"


def _flags(options: Mapping[str, Any]) -> List[str]:
    """`min_spread=90` as `--min-spread=90`."""
    flags = []
    for key, value in options.items():
        flag = "--" + key.replace("_", "-")
        if value is True:
            flags.append(flag)
        elif value is None or value is False:
            continue
        elif isinstance(value, Mapping):
            flags += [f"{flag}={_name(of)}={what}" for of, what in value.items()]
        elif isinstance(value, (list, tuple)):
            flags += [f"{flag}={each}" for each in value]
        else:
            flags.append(f"{flag}={os.fspath(value) if isinstance(value, os.PathLike) else value}")
    return flags


def _argument(path: str) -> str:
    """`path` as graft-opt takes it for a file: `@` is that of a response file, `-` that of a flag."""
    return os.path.join(".", path) if path.startswith(("@", "-")) else path


def _remove(path: str, process: int) -> None:
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)


class _Folder:
    """A temporary folder, which goes with this object and with the process that made it; forked ones leave it."""

    def __init__(self) -> None:
        self.name = tempfile.mkdtemp(prefix="graft-")
        weakref.finalize(self, _remove, self.name, os.getpid())


def _kind(path: str) -> str:
    if os.path.isdir(path):
        return "savedmodel"
    extension = os.path.splitext(path)[1]
    return "metagraph" if extension == ".meta" else "graph"


class _Input:
    """The file of a graph. A graph in memory is written to `folder` once."""

    def __init__(self, model: Any, folder: str):
        self.message: Any = None
        if isinstance(model, (str, os.PathLike)):
            self.path = os.fspath(model)
            self.kind = _kind(self.path)
            return
        if hasattr(model, "as_graph_def"):
            from tensorflow.compat.v1 import train

            with model.as_default():
                model = train.export_meta_graph(graph=model, saver_def=_saver_def(model))
        name = getattr(getattr(model, "DESCRIPTOR", None), "name", "")
        self.kind = {"MetaGraphDef": "metagraph", "GraphDef": "graph"}.get(name, "")
        if not self.kind and hasattr(model, "compute_loss"):
            raise TypeError(
                "graft.rewrite takes a graph, not a Keras model; write its training step with "
                "graft.keras_step(model, folder), and rewrite this folder"
            )
        if not self.kind:
            raise TypeError(f"graft.rewrite takes a path, a tf.Graph, a GraphDef or a MetaGraphDef, not {type(model).__name__}")
        self.message = type(model)
        self.path = os.path.join(folder, "input.meta" if self.kind == "metagraph" else "input.pb")
        with open(self.path, "wb") as file:
            file.write(model.SerializeToString())


def _saver_def(graph: Any) -> Any:
    """The definition of a saver that the graph has in a collection, as MonitoredTrainingSession makes it."""
    savers = graph.get_collection("savers")
    return savers[0].as_saver_def() if savers and hasattr(savers[0], "as_saver_def") else None


class Rewrite:
    """The result of `rewrite`: a file, and the messages about it."""

    def __init__(self, path: str, source: _Input, diagnostics: List[Diagnostic], flags: List[str], folder: Any):
        self.path = path
        """The file; a temporary one, which goes when this object does, unless `output` was given."""
        self.kind = source.kind
        """`graph`, `metagraph` or `savedmodel`."""
        self.diagnostics = diagnostics
        """All remarks and warnings."""
        self._source = source
        self._flags = flags
        self._folder = folder
        self._plan: Optional[Plan] = None

    @property
    def remarks(self) -> List[Diagnostic]:
        """The decisions of graft, with their reasons."""
        return [each for each in self.diagnostics if each.level == "remark"]

    @property
    def warnings(self) -> List[Diagnostic]:
        """The values that are not proved, or rest on an assumption."""
        return [each for each in self.diagnostics if each.level == "warning"]

    @property
    def meta_graph(self) -> Any:
        """The MetaGraphDef, parsed anew at each access. ValueError if the input was none; ImportError without TensorFlow."""
        if self.kind != "metagraph":
            raise ValueError(f"the input was a {self.kind}, which has no MetaGraphDef of its own")
        kind = self._source.message
        if kind is None:
            from tensorflow.core.protobuf.meta_graph_pb2 import MetaGraphDef as kind
        return self._parse(kind())

    @property
    def graph_def(self) -> Any:
        """The GraphDef, parsed anew at each access. ImportError without TensorFlow."""
        if self.kind == "metagraph":
            return self.meta_graph.graph_def
        if self.kind == "savedmodel":
            raise ValueError("of a SavedModel load the folder with TensorFlow")
        kind = self._source.message
        if kind is None:
            from tensorflow.core.framework.graph_pb2 import GraphDef as kind
        return self._parse(kind())

    def _parse(self, message: Any) -> Any:
        if self.path.endswith(".pbtxt"):
            from google.protobuf import text_format

            with open(self.path, encoding="utf-8") as text:
                return text_format.Parse(text.read(), message)
        with open(self.path, "rb") as file:
            message.ParseFromString(file.read())
        return message

    @property
    def plan(self) -> Plan:
        """The predicted cost of a step of each strategy on these devices, in seconds and bytes.

        graft-opt is run for it when it is asked for first. GraftError if the graph trains no variable."""
        if self._plan is None:
            command = [program("graft-opt"), _argument(self._source.path), "--plan=json", *self._flags]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, check=False)
            if done.returncode != 0:
                raise error_of(done.returncode, done.stderr, [], command)
            table = json.loads(done.stdout)
            rows = [PlanRow(**{key.replace("-", "_"): value for key, value in row.items()}) for row in table["strategies"]]
            self._plan = Plan(table["replicas"], table["nodes"], table["variables"], table["variable-bytes"], rows)
        return self._plan

    def save(self, path: Path) -> str:
        """Copies the file to `path`, as a link if the file system can, and gives `path`. OSError if that cannot be written."""
        path = os.fspath(path)
        # Beside it, where nobody else writes, and then renamed: nobody sees half a file.
        with tempfile.TemporaryDirectory(prefix=".graft-", dir=os.path.dirname(path) or ".") as folder:
            beside = os.path.join(folder, "output")
            if os.path.isdir(self.path):
                if os.path.lexists(path):
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
                shutil.copytree(self.path, beside)
            else:
                try:
                    os.link(self.path, beside)
                except OSError:
                    shutil.copyfile(self.path, beside)
            os.replace(beside, path)
        return path

    def __repr__(self) -> str:
        return f"<graft.Rewrite {self.path}: {len(self.warnings)} warnings>"


def rewrite(
    model: Any,
    *,
    replicas: Optional[int] = None,
    devices: Union[str, Sequence[str], None] = None,
    device_type: Optional[str] = None,
    strategy: Optional[Path] = None,
    feeds: Union[Mapping[Any, How], Iterable[Any], str, None] = None,
    fetches: Union[Iterable[Any], str, None] = None,
    strict: bool = False,
    output: Optional[Path] = None,
    **options: Any,
) -> Rewrite:
    """Rewrites a training graph so that its step is spread over many devices.

    Args:
      model: The graph: a path (of a `.meta`, a `.pb`, a `.pbtxt` or a SavedModel folder), a MetaGraphDef, a GraphDef, or a
        tf.Graph, which is exported with its collections. A path is best for a large graph: it is read where it is.
      replicas: How many; replica i is on `/device:TYPE:i`.
      devices: The devices of the replicas instead, such as `["/device:GPU:0", "/device:GPU:1"]`.
      device_type: `"CPU"` or `"GPU"`. Default: GPU if the graph names one, else CPU.
      strategy: The name of one (docs/Strategies.md), or a strategy file. Default: `"all-reduce"`.
      feeds: How feeds are divided, by their names, ops or tensors: `"split"`, an axis, `"copy"`, or `"sparse"`; None: as it
        is inferred. Feeds that are not named are inferred.
      fetches: What will be fetched, by names, ops or tensors; none: all that could be.
      strict: Raise InputError when anything is not proved.
      output: The file to write; a temporary one if there is none. A SavedModel needs one.
      **options: Any other option of graft-opt (docs/Cli.md), such as `reduction="add"`, `check_copies=True`,
        `variable={"*/moving_*": "sync-on-read,mean"}`, `min_spread=90` (percent), `bucket_bytes="64M"` (bytes),
        `custom_ops=["MyOp"]` (of libraries that TensorFlow loads beside its own ops).

    Returns:
      A Rewrite.

    Raises:
      UsageError: An argument is at fault.
      InputError: The graph is, or with `strict` what is not proved. `diagnostics` says what and where.
      InternalError: graft is.
      TypeError: `model` or another argument has a type that is not listed above.
    """
    folder = _Folder()
    source = _Input(model, folder.name)
    if isinstance(feeds, Mapping):
        feed = [_how(_name(of), how) for of, how in feeds.items()]
    else:
        feed = [_name(of) for of in _list("feeds", feeds)]
    flags = _flags(
        {
            "replicas": _number("replicas", replicas),
            "devices": ",".join(_list("devices", devices)) if devices is not None else None,
            "device_type": device_type,
            "strategy": strategy,
            "feed": feed,
            "fetch": [_name(of) for of in _list("fetches", fetches)],
            **options,
        }
    )
    if output is not None:
        path = os.fspath(output)
    elif source.kind == "savedmodel":
        raise TypeError("of a SavedModel give output=, the folder to write")
    else:
        path = os.path.join(folder.name, "output" + os.path.splitext(source.path)[1])
    said = os.path.join(folder.name, "remarks.json")
    command = [program("graft-opt"), _argument(source.path), "-o", _argument(path), f"--remarks={said}", *flags]
    if strict:
        command.append("--strict")
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, check=False)
    diagnostics: List[Diagnostic] = []
    if os.path.exists(said):
        with open(said, encoding="utf-8") as file:
            diagnostics = [Diagnostic.of(entry) for entry in json.load(file)]
    if done.returncode != 0:
        raise error_of(done.returncode, done.stderr, diagnostics, command)
    return Rewrite(path, source, diagnostics, flags, folder)
