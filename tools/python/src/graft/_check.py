# SPDX-License-Identifier: Apache-2.0
"""graft.check: runs two graphs of one training step, and compares what they compute."""

import os
import re
import sys
import tempfile
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple, Union

from graft._load import CPU, Loaded, load
from graft._rewrite import Rewrite

# A name of a copy of a variable, and the name of the variable.
COPY = re.compile(r"/replica_\d+$")
SMALL = 1e-12


@dataclass
class Step:
    """One step on both graphs."""

    rows: Optional[int]
    """The rows of the drawn feeds; None if the feeds were given or there are none."""
    number: int
    """From 1 on, for each number of rows."""
    values: Dict[str, Tuple[float, float]]
    """The scalars that both graphs have, such as losses: the value of each graph."""
    error: str = ""
    """The error of the second graph, or "" if it ran."""


@dataclass
class Check:
    """The result of `graft.check`. Its text is a table."""

    steps: List[Step] = field(default_factory=list)
    variables: Dict[str, float] = field(default_factory=dict)
    """For each variable, the largest difference after a step, as a fraction of its largest element."""
    tolerance: float = 1e-4
    skipped: List[str] = field(default_factory=list)
    """Runs that the first graph does not make, with the reason."""
    apart: Set[str] = field(default_factory=set)
    """Variables that the second graph does not have as one, and that were not compared."""

    @property
    def worst(self) -> float:
        """The largest difference of a value or a variable."""
        found = [difference(one, two) for step in self.steps for one, two in step.values.values()]
        return max([*found, *self.variables.values()], default=0.0)

    @property
    def same(self) -> bool:
        """True if every step ran on both graphs and nothing differs by more than the tolerance."""
        return bool(self.steps) and not any(step.error for step in self.steps) and self.worst <= self.tolerance

    def __bool__(self) -> bool:
        return self.same

    def __str__(self) -> str:
        lines = [f"{'rows':>6} {'step':>4}  {'value':<32} {'one':>14} {'two':>14}"]
        for step in self.steps:
            rows = "" if step.rows is None else step.rows
            for name, (one, two) in list(step.values.items())[:4]:
                mark = "" if difference(one, two) <= self.tolerance else "  differs"
                lines.append(f"{rows:>6} {step.number:>4}  {name:<32} {one:>14.7g} {two:>14.7g}{mark}")
            if step.error:
                lines.append(f"{rows:>6} {step.number:>4}  the second graph fails: {step.error}")
            elif not step.values:
                lines.append(f"{rows:>6} {step.number:>4}  ran")
        worst = sorted(self.variables.items(), key=lambda item: -item[1])
        if worst:
            lines.append(f"variables: {len(worst)}, largest difference {worst[0][1]:.2g} of '{worst[0][0]}'")
            lines += [f"  '{name}' differs by {by:.2g}" for name, by in worst[:8] if by > self.tolerance]
        if self.apart:
            lines.append(f"not compared, since the second graph has them in parts: {', '.join(sorted(self.apart)[:8])}")
        lines += self.skipped
        if not self.steps:
            lines.append("nothing was compared")
        lines.append("the same step" if self.same else "NOT the same step")
        return "\n".join(lines)


def difference(one: Any, two: Any) -> float:
    """The largest difference of two arrays, as a fraction of the largest element; infinite for other shapes or NaN."""
    import numpy as np

    one, two = np.asarray(one), np.asarray(two)
    if one.shape != two.shape:
        return float("inf")
    if one.size == 0:
        return 0.0
    if one.dtype.kind not in "fiubc":
        return 0.0 if np.array_equal(one, two) else float("inf")
    one, two = (x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) for x in (one, two))
    if not np.array_equal(np.isfinite(one), np.isfinite(two)):
        return float("inf")
    one, two = (np.where(np.isfinite(x), x, 0) for x in (one, two))
    largest = float(np.max(np.abs(one)))
    return float(np.max(np.abs(one - two))) / max(largest, SMALL) if largest > SMALL else float(np.max(np.abs(two)))


class _Graph:
    """A graph in a session, with the variables under the names of the input."""

    def __init__(self, loaded: Loaded):
        import tensorflow.compat.v1 as tf

        self.loaded, self.session, self.graph = loaded, loaded.session, loaded.graph
        self.values: Dict[str, Any] = {}
        self.setters: Dict[str, List[Tuple[Any, Any]]] = {}
        # A metric has a term on each replica: only its sum can be compared.
        known = {each.op.name for each in self.graph.get_collection(tf.GraphKeys.GLOBAL_VARIABLES)}
        with self.graph.as_default():
            for op in self.graph.get_operations():
                if op.type not in ("VariableV2", "Variable", "VarHandleOp"):
                    continue
                kind = tf.as_dtype(op.get_attr("dtype")).base_dtype
                fed = tf.placeholder(kind, None)
                if op.type == "VarHandleOp":
                    read = tf.raw_ops.ReadVariableOp(resource=op.outputs[0], dtype=kind)
                    setter = tf.raw_ops.AssignVariableOp(resource=op.outputs[0], value=fed)
                else:
                    read = tf.raw_ops.Identity(input=op.outputs[0])
                    setter = tf.raw_ops.Assign(ref=op.outputs[0], value=fed, validate_shape=False)
                name = COPY.sub("", op.name)
                if name == op.name and (not known or name in known):
                    self.values[name] = read
                self.setters.setdefault(name, []).append((setter, fed))
            makers = [op for op in self.graph.get_operations() if op.type == "MakeIterator"]
            self.makers = [op for op in makers if not _depends_on_feed(op)]

    def start(self) -> None:
        self.session.run(self.loaded.init_op)
        if self.makers:
            self.session.run(self.makers)

    def state(self) -> Dict[str, Any]:
        """The values of the variables that have one."""
        found = {}
        for name, read in self.values.items():
            try:
                found[name] = self.session.run(read)
            except Exception:  # The variable is not initialized, or lives in another process.
                continue
        return found

    def set(self, state: Mapping[str, Any]) -> None:
        todo = [(setter, fed, state[name]) for name, setters in self.setters.items() if name in state for setter, fed in setters]
        self.session.run([setter for setter, _, _ in todo], {fed: value for _, fed, value in todo})


def _depends_on_feed(op: Any) -> bool:
    seen, work = set(), [op]
    while work:
        each = work.pop()
        if each in seen:
            continue
        seen.add(each)
        if each.type in ("Placeholder", "PlaceholderV2"):
            return True
        work += [source.op for source in each.inputs]
    return False


def _draw(name: str, tensor: Any, rows: int, seed: int) -> Any:
    """A value for a placeholder: an unknown first size is the number of rows, another one is 4."""
    import numpy as np

    rng = np.random.default_rng([seed, *name.encode()]) if hasattr(np.random, "default_rng") else np.random.RandomState(seed)
    sizes = [] if tensor.shape.ndims is None else tensor.shape.as_list()
    sizes = [(rows if axis == 0 else 4) if size is None else size for axis, size in enumerate(sizes)]
    kind = tensor.dtype
    if kind.is_floating or kind.is_complex:
        return rng.uniform(0.1, 1.0, sizes).astype(kind.as_numpy_dtype)
    if kind.is_bool:
        return np.asarray(rng.uniform(size=sizes) < 0.5) if sizes else np.bool_(seed % 2)
    if kind.is_integer:
        return np.asarray(rng.uniform(0, 2, sizes)).astype(kind.as_numpy_dtype)
    return np.full(sizes, b"a", object)


def _replicas(graph: Any) -> int:
    found = (CPU.search(op.device) for op in graph.get_operations())
    return max((int(match.group(1)) + 1 for match in found if match), default=1)


def _scalars(one: Any, two: Any, fetches: Optional[Sequence[str]]) -> List[str]:
    """The names of the values to compare: `fetches`, or the losses of the collection, or the scalars that both graphs have."""
    if fetches is not None:
        fetches = [fetches] if isinstance(fetches, str) else fetches
        return [name if ":" in name else name + ":0" for name in fetches]
    import tensorflow.compat.v1 as tf

    names = {op.name for op in two.get_operations()}
    losses = [tensor.name for tensor in one.get_collection(tf.GraphKeys.LOSSES) if tensor.op.name in names]
    if losses:
        return losses
    found = []
    for op in one.get_operations():
        is_value = op.type in ("Mean", "Sum", "AddV2", "Add", "AddN", "Mul", "RealDiv", "L2Loss", "Max", "Min", "DivNoNan", "Identity")
        if is_value and op.name in names and op.outputs[0].dtype.is_floating and op.outputs[0].shape.ndims == 0:
            if _depends_on_feed(op) or any(each.type.startswith("Iterator") for each in one.get_operations()):
                found.append(op.outputs[0].name)
    # Gradients of scalars have their sizes, too.
    return [name for name in found if not name.startswith("gradients")][:8]


def _counts(replicas: int) -> List[int]:
    """The numbers of rows to try: also those that the replicas do not divide."""
    return sorted({rows for rows in (1, replicas - 1, replicas, replicas + 1, 2 * replicas) if rows > 0})


def _check_functions(one: str, two: str, feeds: Mapping[str, Any], steps: int, fetches: Optional[Sequence[str]], result: Check) -> Check:
    """Calls the functions that both SavedModels have, with equal arguments. `fetches` names functions."""
    import numpy as np
    import tensorflow as tf

    with open(os.path.join(two, "saved_model.pb"), "rb") as file:
        replicas = max([int(found) + 1 for found in re.findall(rb"/device:CPU:(\d+)", file.read())], default=1)
    try:
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * replicas)
    except RuntimeError:  # TensorFlow has its devices already, and runs all on those that it has.
        pass
    first, second = tf.saved_model.load(one), tf.saved_model.load(two)
    names = [name for name, value in sorted(vars(first).items()) if hasattr(value, "concrete_functions") and hasattr(second, name)]
    if fetches is not None:
        names = [name for name in names if name in fetches]
    for name in names:
        ours, theirs = (getattr(each, name) for each in (first, second))
        if not ours.concrete_functions:
            continue
        body, other = ours.concrete_functions[0], theirs.concrete_functions[0]
        arguments, named = body.structured_input_signature
        specs = tf.nest.flatten((arguments, named))
        # An argument that is no tensor has one value in each trace.
        tensors = [spec for spec in specs if isinstance(spec, tf.TensorSpec)]
        if any(isinstance(spec, tf.TypeSpec) and spec not in tensors for spec in specs):
            result.skipped.append(f"function '{name}' is not called: an argument is neither a tensor nor a constant")
            continue
        open_rows = any(spec.shape.rank and spec.shape[0] is None and spec.name not in feeds for spec in tensors)
        for rows in _counts(replicas) if open_rows else [None]:
            for number in range(1, steps + 1):
                drawn = []
                for spec in specs:
                    if spec not in tensors:
                        drawn.append(spec)
                        continue
                    value = feeds[spec.name] if spec.name in feeds else _draw(str(spec.name), spec, rows or 1, number)
                    drawn.append(tf.constant(value, spec.dtype))
                values = tf.nest.pack_sequence_as((arguments, named), drawn)
                step = Step(rows, number, {})
                try:
                    mine = tf.nest.flatten(ours(*values[0], **values[1]))
                except tf.errors.OpError as error:
                    result.skipped.append(f"{rows} rows: function '{name}' of the first does not run: {str(error)[:160]}")
                    break
                result.steps.append(step)
                try:
                    others = tf.nest.flatten(theirs(*values[0], **values[1]))
                except tf.errors.OpError as error:
                    step.error = str(error).strip().splitlines()[0][:160]
                    return result
                for index, (x, y) in enumerate(zip(mine, others)):
                    if not hasattr(x, "dtype"):
                        continue
                    if x.dtype.is_floating and x.shape.rank == 0:
                        step.values[f"{name}:{index}"] = (float(x), float(y))
                    key = f"result {index} of {name}"
                    result.variables[key] = max(result.variables.get(key, 0.0), difference(np.asarray(x), np.asarray(y)))
                for x, y in zip(body.graph.variables, other.graph.variables):
                    by = difference(x.numpy(), y.numpy()) if x.shape == y.shape else float("inf")
                    result.variables[x.name] = max(result.variables.get(x.name, 0.0), by)
                    # Each step begins at equal variables, so rounding does not add up.
                    if x.shape == y.shape:
                        y.assign(x)
    return result


def check(
    one: Any,
    two: Any,
    feeds: Optional[Mapping[str, Any]] = None,
    steps: int = 3,
    fetches: Union[str, Sequence[str], None] = None,
    tolerance: float = 1e-4,
) -> Check:
    """Runs the step of both graphs from equal variables in this process, and compares losses and variables.

    Args:
      one: The input of graft: the path of a `.meta` file or of the folder of a SavedModel, or a MetaGraphDef.
      two: The output, likewise, or a Rewrite. Functions of SavedModels are called in this process.
      feeds: Values by the names of feeds. Feeds without a value are drawn, for 1, N-1, N, N+1 and 2N rows, N the number of
        replicas of `two`. If all feeds have values, the given rows are run.
      steps: The number of steps for each number of rows.
      fetches: The names of tensors to compare, or of functions to call. Default: the losses of the collection, or scalars that
        both graphs have; all functions of the loaded object.
      tolerance: The largest difference that counts as equal, as a fraction of the largest element.

    Returns:
      A Check. It is true if the graphs compute the same step.

    Raises:
      ImportError: There is no TensorFlow.
      ValueError: A graph has no train op in its collection.
    """
    result = Check(tolerance=tolerance)
    folders = [each.path if isinstance(each, Rewrite) else each for each in (one, two)]
    if all(isinstance(each, (str, os.PathLike)) and os.path.isdir(each) for each in folders):
        chosen = [fetches] if isinstance(fetches, str) else fetches
        return _check_functions(os.fspath(folders[0]), os.fspath(folders[1]), feeds or {}, steps, chosen, result)
    with load(one) as first, load(two) as second:
        for each in (first, second):
            if each.train_op is None:
                raise ValueError("a graph has no op in the collection train_op; build the step with minimize() before the export")
        ours, theirs = _Graph(first), _Graph(second)
        names = _scalars(first.graph, second.graph, fetches)
        given = {key.split(":")[0]: value for key, value in (feeds or {}).items()}
        unknown = sorted(set(given) - set(first.feeds))
        if unknown:
            raise ValueError(f"the graph has no feed '{unknown[0]}'; it has {', '.join(sorted(first.feeds)) or 'none'}")
        drawn = {
            name: tensor for name, tensor in first.feeds.items() if name not in given and tensor.op.type != "PlaceholderWithDefault"
        }
        counts = _counts(_replicas(second.graph)) if drawn else [None]
        ours.start()
        theirs.start()
        for rows in counts:
            for number in range(1, steps + 1):
                _copy_state(ours, theirs)
                fed = dict(given)
                fed.update({name: _draw(name, tensor, rows, number) for name, tensor in drawn.items()})
                if not _step(result, ours, theirs, names, fed, rows, number):
                    break
    return result


def _copy_state(ours: _Graph, theirs: _Graph) -> None:
    """Gives the second graph the variables of the first. Each step begins at equal variables, so rounding does not add up."""
    first, second = ours.loaded, theirs.loaded
    if first.saver is None or second.saver is None:
        theirs.set(ours.state())
        return
    with tempfile.TemporaryDirectory() as folder:
        with first.graph.as_default():
            saved = first.saver.save(first.session, os.path.join(folder, "model"), write_meta_graph=False)
        with second.graph.as_default():
            second.saver.restore(second.session, saved)
    # A Saver that is made after the import restores only the first copy of a variable.
    try:
        refresh = second.graph.get_operation_by_name("graft/refresh_copies")
    except KeyError:
        return
    second.session.run(refresh)


def _step(result: Check, ours: _Graph, theirs: _Graph, names: List[str], fed: Dict[str, Any], rows: Optional[int], number: int) -> bool:
    """Runs one step of both graphs. Returns false if one of them fails."""
    import numpy as np
    from tensorflow import errors

    before = ours.state()
    try:
        one = ours.session.run([names, ours.loaded.train_op], {f"{name}:0": value for name, value in fed.items()})[0]
    except errors.OutOfRangeError:
        return False
    except errors.OpError as error:
        text = (error.message or str(error)).strip().splitlines()[0]
        result.skipped.append(f"{rows} rows: the first graph does not run them: {text[:160]}")
        ours.set(before)
        return False
    step = Step(rows, number, {})
    result.steps.append(step)
    try:
        two = theirs.session.run([names, theirs.loaded.train_op], {f"{name}:0": value for name, value in fed.items()})[0]
    except errors.OpError as error:
        step.error = (error.message or str(error)).strip().splitlines()[0][:160]
        return False
    for name, x, y in zip(names, one, two):
        step.values[name.split(":")[0]] = (float(np.mean(x)), float(np.mean(y)))
    mine, others = ours.state(), theirs.state()
    for name, value in mine.items():
        if name in others:
            result.variables[name] = max(result.variables.get(name, 0.0), difference(value, others[name]))
        elif name not in result.variables:
            result.apart.add(name)
    return True


def main(arguments: Sequence[str]) -> int:
    """`python -m graft check ONE TWO [--steps=N] [--fetch=NAME]... [--tolerance=X]`. Returns 0 if both are the same step."""
    import argparse

    parser = argparse.ArgumentParser(prog="python -m graft check", description="Runs two graphs of one training step and compares them.")
    parser.add_argument("one", help="the input of graft, a .meta file")
    parser.add_argument("two", help="the output of graft")
    parser.add_argument("--steps", type=int, default=3, help="steps for each number of rows (default: 3)")
    parser.add_argument("--fetch", action="append", help="a tensor to compare; may be repeated")
    parser.add_argument("--tolerance", type=float, default=1e-4, help="the largest difference that counts as equal (default: 1e-4)")
    given = parser.parse_args(arguments)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        result = check(given.one, given.two, steps=given.steps, fetches=given.fetch, tolerance=given.tolerance)
    except (ImportError, OSError, ValueError) as error:
        print(f"python -m graft check: error: {error}", file=sys.stderr)
        return 2
    print(result)
    return 0 if result.same else 1
