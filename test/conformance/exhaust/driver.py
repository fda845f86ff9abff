# SPDX-License-Identifier: Apache-2.0
"""Many small instances of ops in one graph, each with a claim that TensorFlow can refute.

The input is run for the true values, what graft-opt writes of it for those of every replica. What TensorFlow refuses in the
input is dropped; what graft-opt refuses is found by halves, and counted.
"""

import collections
import dataclasses
import itertools
import os
import pickle
import random
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
from typing import Dict, List, Optional, Sequence, Set, Tuple

import harness
import numpy as np
import tensorflow as tf
from exhaust import claims, operands, table
from exhaust.operands import BATCH
from tensorflow.python.framework import importer, op_def_library, op_def_registry

tf1 = tf.compat.v1

# Every call of graft-opt has these: what is not proved is computed by replicas and is no warning, and stays as it is.
FLAGS = ("--device-type=CPU", "--fetch=none", "--reduction=add", "--fallback=mean", "--batch-norm=local")
AT_ONCE = 100  # instances in a graph
ALIKE = 100  # recipes of an op in a full run, if another one has the same entry and the same operands
REPLICAS = (2, 3)
OUTCOMES = ("held", "varying", "refused", "invalid", "known", "failed")


@dataclasses.dataclass(frozen=True)
class Recipe:
    """One op with its operands: for each the number of an alternative of the line, and a kind."""

    op: str
    choices: Tuple[Tuple[int, str], ...]
    attributes: Tuple[Tuple[str, str], ...]  # values as text
    static: bool

    def __str__(self):
        line = table.line_of(self.op)
        shown = []
        for (index, kind), options in zip(self.choices, line.operands):
            what = options[index % len(options)]
            shown.append(f"{kind} {what}" if what.shape is not None else str(what))
        attributes = "".join(f" {name}={value}" for name, value in self.attributes)
        return f"{self.op}({'; '.join(shown)}){attributes}{' static' if self.static else ''}"


@dataclasses.dataclass
class Instance:
    recipe: Recipe
    name: str
    outputs: List[str]  # names of tensors
    feeds: frozenset = frozenset()


@dataclasses.dataclass
class Failure:
    recipe: Recipe
    replicas: int
    rows: int
    what: str

    def __str__(self):
        return f"{self.recipe}, N={self.replicas}, {self.rows} rows: {self.what}"


def new_zeros():
    return {"kept": set(), "lost": set(), "other": set()}


class Result:
    def __init__(self):
        self.counts: Dict[str, collections.Counter] = collections.defaultdict(collections.Counter)  # by op
        self.failures: List[Failure] = []
        self.unproved: Dict[str, Dict[str, str]] = collections.defaultdict(dict)  # by op: a recipe, its types
        self.refusals: Dict[str, str] = {}  # by recipe
        self.crashes: List[str] = []  # recipes that end the process
        # By op, operands that are zeros, and result: recipes where zeros are claimed of it, are not although it is, and where
        # it is not.
        self.zeros: Dict[Tuple[str, Tuple[int, ...], int], Dict[str, Set[str]]] = collections.defaultdict(new_zeros)

    def count(self, recipe: Recipe, outcome: str):
        self.counts[recipe.op][outcome] += 1

    def add(self, other: "Result"):
        for op, counts in other.counts.items():
            self.counts[op].update(counts)
        self.failures += other.failures
        self.refusals.update(other.refusals)
        self.crashes += other.crashes
        for op, found in other.unproved.items():
            self.unproved[op].update(found)
        for key, found in other.zeros.items():
            for outcome, recipes in found.items():
                self.zeros[key][outcome] |= recipes


# --- Enumeration. ---


def kinds_of(what: table.Alternative, line: table.Line) -> List[str]:
    if what.shape is None:
        return ["given"]
    kinds = list(operands.KINDS) if line.checked else operands.OF_THAT_SIZE["B" in what.shape]
    return [kind for kind in kinds if not re.search(line.without, kind)]


def base_of(what: table.Alternative) -> str:
    return "given" if what.shape is None else "rows" if "B" in what.shape else "copy"


class Recipes:
    """The recipes of an op: one operand at a time of every kind, then any."""

    def __init__(self, op: str, seed: int, kinds=""):
        self.op = op
        self.kinds = kinds  # what a kind of an operand has to fit
        self.line = table.line_of(op)
        self.attributes = {name: [repr_of(v) for v in values] for name, values in table.attributes_of(op, self.line).items()}
        self.random = random.Random(f"{seed} {op}")
        self.rows = max([len(options) for options in self.line.operands] + [1])

    def _attributes(self, plain=False):
        return tuple(
            (name, values[0] if plain or (name in TYPES and self.random.random() < 0.6) else self.random.choice(values))
            for name, values in self.attributes.items()
        )

    def _row(self, row, mixed=False):
        return [
            self.random.randrange(len(options)) if mixed or len(options) not in (1, self.rows) else row % len(options)
            for options in self.line.operands
        ]

    def _recipe(self, row, kinds, plain=False, static=None):
        choices = tuple(zip(row, kinds))
        if static is None:
            static = self.random.random() < 0.15
        return Recipe(self.op, choices, self._attributes(plain), static)

    def singles(self) -> List[Recipe]:
        """Each operand of each kind, beside those that the op is made for; each value of an attribute."""
        result = []
        for number in range(self.rows):
            row = self._row(number)
            base = [base_of(options[i]) for i, options in zip(row, self.line.operands)]
            for static in (False, True):
                result.append(self._recipe(row, base, plain=True, static=static))
            for name, values in self.attributes.items():
                for value in values:
                    recipe = self._recipe(row, base, plain=True, static=False)
                    result.append(
                        dataclasses.replace(
                            recipe, attributes=tuple((n, value if n == name else v) for n, v in recipe.attributes)
                        )
                    )
            for slot, options in enumerate(self.line.operands):
                for kind in kinds_of(options[row[slot]], self.line):
                    kinds = [*base[:slot], kind, *base[slot + 1 :]]
                    result.append(self._recipe(row, kinds))
            result += self.numbered(row, base)
            result += self.crossed(number)
            # All operands of one kind, as elements of one tensor would be.
            for kind in kinds_of(table.Alternative(()), self.line) if self.line.checked else []:
                kinds = ["given" if b == "given" else kind for b in base]
                if kinds.count(kind) > 1:
                    result.append(self._recipe(row, kinds))
        return result

    def numbered(self, row, base) -> List[Recipe]:
        """Row numbers beside rows of another feed, of which there are more."""
        shapes = [None if options[i].part else options[i].shape for i, options in zip(row, self.line.operands)]
        result = []
        for of in (i for i, shape in enumerate(shapes) if shape in (("B",), ("B", 1))):
            for beside in (i for i, shape in enumerate(shapes) if i != of and shape and shape[0] == "B"):
                kinds = ["numbers" if i == of else "other2" if i == beside else kind for i, kind in enumerate(base)]
                allowed = [kinds_of(options[i], self.line) for i, options in zip(row, self.line.operands)]
                if all(kind in of_slot for kind, of_slot in zip(kinds, allowed)):
                    result.append(self._recipe(row, kinds, plain=True, static=False))
        return result

    def crossed(self, number: int) -> List[Recipe]:
        """Two operands of forms that the line does not put together, both with rows: TensorFlow says whether they go together."""
        if not self.line.checked:
            return []
        row, result = self._row(number), []
        for slot, options in enumerate(self.line.operands):
            for other in range(len(options) if len(options) == self.rows else 0):
                if options[other] == options[row[slot]] or not {"B"} & set(options[other].shape or ()):
                    continue
                mixed = [*row[:slot], other, *row[slot + 1 :]]
                whats = [options[i] for i, options in zip(mixed, self.line.operands)]
                if sum("B" in (what.shape or ()) for what in whats) > 1:
                    base = [base_of(what) for what in whats]
                    result += [self._recipe(mixed, base, plain=True, static=False), *self.numbered(mixed, base)]
        return result

    def any(self) -> Recipe:
        mixed = self.line.checked and self.random.random() < 0.2
        row = self._row(self.random.randrange(self.rows), mixed)
        kinds = []
        for i, options in zip(row, self.line.operands):
            usual = self.random.random() < 0.35
            kinds.append(base_of(options[i]) if usual else self.random.choice(kinds_of(options[i], self.line)))
        return self._recipe(row, kinds)

    def fits(self, recipe: Recipe) -> bool:
        return not self.kinds or any(re.search(self.kinds, kind) for _, kind in recipe.choices)

    def take(self, budget: Optional[int]) -> List[Recipe]:
        """All of one operand at a time and as many more, or `budget` of both."""
        singles = [recipe for recipe in dict.fromkeys(self.singles()) if self.fits(recipe)]
        more = len(singles) + 100
        if budget is not None:
            # First what the op is made for, in each of its forms, with any attributes; then rows of feeds of other sizes.
            plain = [r for r in singles if not r.static and all(kind in ("given", "rows", "copy") for _, kind in r.choices)]
            plain = list({r.choices: r for r in reversed(plain)}.values())[::-1]
            plain[1::2] = [dataclasses.replace(r, attributes=self._attributes()) for r in plain[1::2]]
            pairs = [r for r in singles if "other2" in {kind for _, kind in r.choices}]
            self.random.shuffle(pairs)
            pairs = sorted(pairs, key=lambda r: "numbers" not in {kind for _, kind in r.choices})[:3]
            others = [r for r in singles if r not in {*plain, *pairs}]
            self.random.shuffle(others)
            singles = [*plain, *pairs, *others]
            singles = singles[: max(budget * 2 // 3, 1)]
            more = budget - len(singles)
        if not self.line.operands or len(self.line.operands) == 1:
            more //= 4
        others = filter(self.fits, (self.any() for _ in range(more)))
        return list(dict.fromkeys([*singles, *others]))


def rounds(recipe: Recipe) -> bool:
    """Returns true if an operand may have a rounding error: a sum in another order, or a scaled value."""
    return any(re.search("sum|mean|[/*]b", kind) for _, kind in recipe.choices)


# Types that TensorFlow makes an op of, and does not load.
LIMITS = {"ScatterNd": (tf.bool,)}
TYPES = {"T", "TI", "Tindices", "Tidx", "Tshape", "Tperm", "Index"}


def repr_of(value) -> str:
    return value.name if isinstance(value, tf.DType) else repr(value)


def default_of(attribute):
    """The value of an attribute of which nothing is said."""
    value = attribute.default_value
    field = value.WhichOneof("value")
    if field == "list":
        kind = re.fullmatch(r"list\((\w+)\)", attribute.type)[1]
        return list(getattr(value.list, {"int": "i", "float": "f", "bool": "b", "string": "s"}.get(kind, kind)))
    return tf.as_dtype(value.type) if field == "type" else getattr(value, field)


def value_of(attribute, text: str):
    return tf.as_dtype(text) if attribute.type == "type" else eval(text)  # pylint: disable=eval-used


# --- Building. ---


class Rows:
    """`B` in a computed vector: so many times the rows that are there."""

    def __init__(self, times=1):
        self.times = times

    def __mul__(self, by):
        return Rows(self.times * by)

    __rmul__ = __mul__


def computed(world, text: str, dtype):
    value = eval(text, {"B": Rows()})  # pylint: disable=eval-used

    def element(x):
        if not isinstance(x, Rows):
            return tf.constant(x, dtype)
        rows = world.number_of_rows(dtype)
        return rows if x.times == 1 else rows * x.times

    if not isinstance(value, list):
        return element(value)
    return operands.raw.Pack(values=[element(x) for x in value], axis=0)


def build(world: operands.World, recipe: Recipe, name: str) -> Optional[Instance]:
    """Adds the op and its operands to the default graph. None where TensorFlow, or an operand, does not allow it."""
    definition = op_def_registry.get(recipe.op)
    line = table.line_of(recipe.op)
    attributes = {a.name: a for a in definition.attr}
    values = {n: value_of(attributes[n], text) for n, text in recipe.attributes}
    slots = iter(zip(recipe.choices, line.operands))
    bound = set()
    world.sparse = {}

    def one(dtype):
        (index, kind), options = next(slots)
        what = options[index % len(options)]
        if what.constant is not None:
            constant = eval(what.constant, {"B": BATCH})  # pylint: disable=eval-used
            return tf.constant(constant, dtype)
        if what.computed is not None:
            return computed(world, what.computed, dtype)
        if what.part is not None:
            return operands.part(world, kind, what.shape, dtype, what.part)
        return operands.operand(world, kind, what.shape, dtype, what.domain)

    arguments = {}
    try:
        for argument, count in itertools.zip_longest(definition.input_arg, line.lists):
            if argument.type_attr:
                dtype = values[argument.type_attr]
                bound.add(argument.type_attr)
            elif argument.type_list_attr:
                dtype = [tf.as_dtype(t) for t in values.get(argument.type_list_attr, [tf.float32] * count)]
                bound.add(argument.type_list_attr)
            else:
                dtype = tf.as_dtype(argument.type)
            if argument.number_attr:
                bound.add(argument.number_attr)
            if count:
                kinds = dtype if isinstance(dtype, list) else [dtype] * count
                arguments[argument.name] = [one(kind) for kind in kinds]
            else:
                arguments[argument.name] = one(dtype)
        defaults = {a.name: default_of(a) for a in definition.attr if a.HasField("default_value")}
        given = {n: v for n, v in {**defaults, **values}.items() if n not in bound}
        # By the names of the definition; tf.raw_ops has others.
        *_, op, _ = op_def_library._apply_op_helper(recipe.op, name=name, **arguments, **given)  # pylint: disable=protected-access
    except (operands.Impossible, ValueError, TypeError, tf.errors.OpError, NotImplementedError, AttributeError, KeyError):
        return None
    if any(t in LIMITS.get(recipe.op, ()) for t in values.values()):
        return None
    if not op.outputs:
        return None
    return Instance(recipe, op.name, [t.name for t in op.outputs[: line.results]])


# --- Running. ---


def session(graph, replicas=1):
    config = tf1.ConfigProto(device_count={"CPU": replicas}, inter_op_parallelism_threads=1, intra_op_parallelism_threads=1)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    # An op without a kernel shall not keep the others from running.
    config.graph_options.place_pruned_graph = True
    config.graph_options.optimizer_options.opt_level = tf1.OptimizerOptions.L0
    return tf1.Session(graph=graph, config=config)


def load(definition):
    """The graph as TensorFlow loads it, without the slow work of its Python on the device of each node."""
    whole = importer._ProcessNewOps  # pylint: disable=protected-access
    importer._ProcessNewOps = lambda graph: graph._add_new_tf_operations(compute_devices=False)  # pylint: disable=protected-access
    try:
        tf1.import_graph_def(definition, name="")
    finally:
        importer._ProcessNewOps = whole  # pylint: disable=protected-access


def run_each(run, groups: Dict[str, List], errors: Dict[str, str], owner: Dict[str, str]) -> Dict[str, List]:
    """The values of all groups of tensors that can be run; those that cannot are found by what is said, or by halves."""
    if not groups:
        return {}
    try:
        return run(groups)
    except tf.errors.OpError as error:
        if len(groups) == 1:
            errors[next(iter(groups))] = first_line(error.message)
            return {}
        named = culprit(error.message, owner)
        if named in groups:
            errors[named] = first_line(error.message)
            return run_each(run, {n: t for n, t in groups.items() if n != named}, errors, owner)
    names = list(groups)
    half = len(names) // 2
    first = run_each(run, {n: groups[n] for n in names[:half]}, errors, owner)
    return {**first, **run_each(run, {n: groups[n] for n in names[half:]}, errors, owner)}


def first_line(message: str) -> str:
    """That says what is wrong; not where."""
    where = re.compile(r"Graph execution error|root error|^Detected at node|^Node: |^\s*File |^\s*\[\[|^\s*$")
    return next((line.strip() for line in message.splitlines() if not where.search(line)), message)


def culprit(message: str, owner: Dict[str, str]) -> Optional[str]:
    """The instance of which a message names a node, or one that was made of it."""
    named = re.search(r"node '?(?:replica_\d+/)?([\w./-]+)", message)
    name = named[1] if named else ""
    while name and name not in owner:
        name = name.rpartition("/")[0]
    return owner.get(name)


class Graph:
    """A chunk of instances: built, run alone, rewritten and compared."""

    def __init__(self, recipes: Sequence[Recipe], static: bool, seed: int, result: Result, want_proofs, flags, only_batch, stage, quota):
        self.only_batch = only_batch
        self.stage = stage
        self.result = result
        self.flags = flags
        self.want_proofs = want_proofs
        self.folder = tempfile.mkdtemp(dir=harness.workdir())
        self.graph = tf.Graph()
        self.instances: Dict[str, Instance] = {}
        self.owner: Dict[str, str] = {}  # by node: the instance that it was made for
        self.zero: Dict[str, Tuple[int, ...]] = {}  # operands of it that are zeros
        with self.graph.as_default():
            self.world = operands.World(static, seed)
            built: Dict[str, int] = collections.Counter()
            made = []
            for i, recipe in enumerate(recipes):
                if quota is not None and built[recipe.op] == quota:
                    continue
                before = set(self.world.feeds)
                first = self.graph.version
                instance = build(self.world, recipe, f"q{i}")
                if instance is None:
                    self.result.count(recipe, "invalid")
                    continue
                built[recipe.op] += 1
                instance.feeds = frozenset(set(self.world.feeds) - before) | {"x", "w", "four"}
                self.instances[instance.name] = instance
                made.append((first, self.graph.version, instance.name))
            nodes = [op.name for op in self.graph.get_operations()]
            for first, last, name in made:
                self.owner.update(dict.fromkeys(nodes[first:last], name))
        self.definition = self.graph.as_graph_def(add_shapes=static)
        self.truth: Dict[int, Dict[str, List]] = {}  # by rows: the values of an instance

    def check(self):
        with session(self.graph) as s:
            alive = some = list(self.instances)
            for rows in [BATCH] if self.world.static or self.only_batch else [BATCH, *REPLICAS, 0]:
                feeds = self.feeds(rows)
                groups = {n: self.instances[n].outputs for n in some}
                self.truth[rows] = run_each(lambda g: s.run(g, feeds), groups, {}, self.owner)
                some = [n for n in some if n in self.truth[rows]]
                if rows == BATCH:
                    alive = some
        for name, instance in self.instances.items():
            if name not in self.truth[BATCH]:
                self.result.count(instance.recipe, "invalid")
        self.stage.write(b"output")
        self.stage.flush()
        # Forms that run with any number of rows, and forms that state BATCH rows.
        for names in (some, [n for n in alive if n not in set(some)]):
            outcomes: Dict[str, str] = {}
            for replicas in REPLICAS:
                every = [BATCH] if names is not some or self.world.static or self.only_batch else [BATCH, replicas, 0]
                self.rewrite([n for n in names if outcomes.get(n) != "refused"], replicas, every, outcomes)
            for name in names:
                self.result.count(self.instances[name].recipe, outcomes.get(name, "held"))

    def feeds(self, rows: int, graph=None):
        values = self.world.values(rows)
        graph = graph or self.graph
        names = {op.name for op in graph.get_operations() if op.type == "Placeholder"}
        return {f"{name}:0": value for name, value in values.items() if name in names}

    def rewrite(self, names: List[str], replicas: int, every: List[int], outcomes: Dict[str, str]):
        """The graph of some instances on replicas. If graft refuses it, the named instances are tried alone; else it is halved."""
        if not names:
            return
        part = tf1.graph_util.extract_sub_graph(self.definition, names)
        source, out = os.path.join(self.folder, "in.pb"), os.path.join(self.folder, f"out{replicas}.pb")
        with open(source, "wb") as file:
            file.write(part.SerializeToString())
        present = {node.name for node in part.node}
        arguments = [source, f"--replicas={replicas}", *self.flags, *self.world.flags(present)]
        done = harness.run_graft([*arguments, "-o", out], check=False, verify=False)
        imported, failure = None, done.stderr
        if done.returncode == 0:
            try:
                imported = tf.Graph()
                with imported.as_default():
                    load(harness.read_graph_def(out))
            except (ValueError, tf.errors.OpError) as error:
                imported, failure = None, str(error)
        if imported is None:
            named = culprit(failure[failure.find("error: ") :], self.owner)
            if len(names) > 1 and named in names:
                self.rewrite([named], replicas, every, outcomes)
                if outcomes.get(named) in ("refused", "known", "failed"):
                    rest = [name for name in names if name != named]
                    return self.rewrite(rest, replicas, every, outcomes)
            if len(names) > 1:
                half = len(names) // 2
                self.rewrite(names[:half], replicas, every, outcomes)
                self.rewrite(names[half:], replicas, every, outcomes)
            elif done.returncode not in (0, 1):
                self.fail(names[0], replicas, BATCH, f"graft-opt ended with status {done.returncode}: {failure[:500]}", outcomes)
            elif done.returncode == 0:
                self.fail(names[0], replicas, BATCH, f"TensorFlow does not load it: {failure[:500]}", outcomes)
            else:
                outcomes[names[0]] = "refused"
                self.result.refusals[str(self.instances[names[0]].recipe)] = failure.strip()[:300]
            return
        types = harness.run_graft([*arguments, "--emit=types"], verify=False).stdout
        self.compare(names, replicas, every, imported, claims.parse(types), outcomes)

    def fail(self, name, replicas, rows, what, outcomes):
        text = str(Failure(self.instances[name].recipe, replicas, rows, what))
        if any(re.search(pattern, text, re.S) for pattern in table.KNOWN):
            outcomes[name] = "known"
            return
        outcomes[name] = "failed"
        self.result.failures.append(Failure(self.instances[name].recipe, replicas, rows, what))

    def compare(self, names, replicas, every, imported, said: Dict[str, claims.Claim], outcomes):
        ops = {op.name for op in imported.get_operations()}
        groups = {}
        for name in names:
            local = []
            for tensor in self.instances[name].outputs:
                node, port = tensor.split(":")
                copies = [f"replica_{i}/{node}" if f"replica_{i}/{node}" in ops else node for i in range(replicas)]
                local.append([f"{copy}:{port}" for copy in copies])
            groups[name] = local
        with session(imported, replicas) as s:
            for rows in every:
                feeds = self.feeds(rows, imported)
                errors: Dict[str, str] = {}
                values = run_each(lambda g: s.run(g, feeds), groups, errors, self.owner)
                for name in names:
                    if outcomes.get(name) in ("failed", "known"):
                        continue
                    claimed = [said.get(tensor) for tensor in self.instances[name].outputs]
                    if rows == BATCH and name not in errors:
                        self.count_zeros(name, said, claimed, values[name])
                    if name in errors:
                        # An unproved op runs on every replica all the same, or graft refuses it.
                        self.fail(name, replicas, rows, f"{claimed[0]}: TensorFlow says {errors[name][:300]}", outcomes)
                        continue
                    self.compare_one(name, replicas, rows, claimed, values[name], outcomes)

    def compare_one(self, name, replicas, rows, claimed, values, outcomes):
        instance = self.instances[name]
        slack = table.line_of(instance.recipe.op).close
        for tensor, claim, local, true in zip(instance.outputs, claimed, values, self.truth[rows][name]):
            if claim is None:
                return self.fail(name, replicas, rows, f"nothing is claimed of {tensor}", outcomes)
            local = [np.asarray(value) for value in local]
            true = np.asarray(true)
            if table.line_of(instance.recipe.op).digits and rounds(instance.recipe):
                true = claims.alike(claim, true, local)
            said = claims.broken(claim, true, local, self.rows_of(rows, replicas), slack)
            if said:
                return self.fail(name, replicas, rows, f"{tensor.replace(instance.name, 'output')} is claimed {said}", outcomes)
            if self.loses_zeros(name, claim) and not any(map(np.any, (true, *local))):
                said = "is zero, as operands are, and not known to be"
                return self.fail(name, replicas, rows, f"{tensor.replace(instance.name, 'output')} {said}: {claim}", outcomes)
            if claim.layout == "Varying" and claim.numbers is None:
                outcomes[name] = "varying"
                if self.want_proofs and rows == BATCH and "indices" not in claim.words:
                    types = claims.proofs(np.asarray(true), local)
                    if types:
                        key = f"{instance.recipe} output {tensor.split(':')[1]}"
                        seen = self.result.unproved[instance.recipe.op].setdefault(key, " or ".join(types))
                        both = [t for t in seen.split(" or ") if t in types]
                        self.result.unproved[instance.recipe.op][key] = " or ".join(both)
        return None

    def count_zeros(self, name, said, claimed, values):
        """Returns true if graft knows that zeros give zeros."""
        instance = self.instances[name]
        zero = self.zero[name] = self.zeros_of(name, said)
        for port, (claim, local, true) in enumerate(zip(claimed, values, self.truth[BATCH][name])):
            if not zero or claim is None or claim.layout == "Varying":
                continue
            of = [np.asarray(value) for value in (true, *local)]
            if of[0].dtype.kind in "fciub" and of[0].size:
                known = bool(claim.words & {"zero", "nothing"})
                outcome = "kept" if known else "other" if any(map(np.any, of)) else "lost"
                self.result.zeros[instance.recipe.op, zero, port][outcome].add(str(instance.recipe))

    def zeros_of(self, name, said) -> Tuple[int, ...]:
        """The operands that are known to be zeros, by design."""
        inputs = [said.get(tensor.name) for tensor in self.graph.get_operation_by_name(name).inputs]
        return tuple(
            i
            for i, ((_, kind), claim) in enumerate(zip(self.instances[name].recipe.choices, inputs))
            if "zero" in kind and claim is not None and claim.words & {"zero", "nothing"}
        )

    def loses_zeros(self, name, claim: claims.Claim) -> bool:
        """Returns true if graft does not know that a linear op gives zeros for zeros. For gathered rows it does not."""
        linear = table.ZEROS.get(self.instances[name].recipe.op, ())
        zero = set(self.zero.get(name, ()))
        if claim.layout == "Replicated" and self.instances[name].recipe.op in table.whole():
            zero -= {i for i, (_, kind) in enumerate(self.instances[name].recipe.choices) if kind not in ("zero const", "zero sum")}
        if claim.layout == "Replicated":
            # Means of rows that a condition selects are made of all of them.
            zero -= {i for i, (_, kind) in enumerate(self.instances[name].recipe.choices) if kind == "zero found"}
        return claim.layout != "Varying" and not claim.words & {"zero", "nothing", "size"} and any(of <= zero for of in linear)

    def rows_of(self, rows: int, replicas: int):
        def of(replica, name):
            match = re.fullmatch(r"b\((.*?)(?:/split)?\)", name)
            if not match or match[1] not in self.world.feeds or match[1] in ("w", "four"):
                return None
            return self.world.values_rows(match[1], rows) / replicas

        return of


# --- All. ---

def chosen(ops: Sequence[str], budget: Optional[int], seed: int, kinds="") -> List[Recipe]:
    recipes = []
    for op in ops:
        if table.line_of(op):
            recipes += Recipes(op, seed, kinds).take(ALIKE if budget is None and table.model_of(op) != op else budget)
    return recipes


def wait(child: int, seconds: float) -> int:
    """The status of a process; one that takes too long is ended, if it does not end itself by its limit."""
    end = time.time() + seconds
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        if time.time() > end:
            os.kill(child, signal.SIGKILL)
            return os.waitpid(child, 0)[1]
        time.sleep(0.01)


def check_chunk(recipes: Sequence[Recipe], only_batch: bool, seed: int, want_proofs: bool, flags, quota=None) -> Result:
    """At most `quota` of each op. In a process of its own, since an op may end it. One that does is found by halves."""
    with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as stage:
        child = os.fork()
        if child == 0:
            # Kernels that do not return take time of a processor, and a machine that is shared takes other time.
            seconds = 30 + len(recipes) // 5
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
            status = 1
            try:
                result = Result()
                Graph(recipes, recipes[0].static, seed, result, want_proofs, flags, only_batch, stage, quota).check()
                pickle.dump(result, answer)
                answer.flush()
                status = 0
            except BaseException:  # pylint: disable=broad-except
                traceback.print_exc()
                sys.stderr.flush()
            finally:
                os._exit(status)
        status = wait(child, 600 + len(recipes))
        answer.seek(0)
        if status == 0:
            return pickle.load(answer)
        if not os.WIFSIGNALED(status):
            raise RuntimeError("a chunk failed, see above")
        result = Result()
        if len(recipes) == 1:
            result.crashes.append(f"{recipes[0]}: signal {os.WTERMSIG(status)}{'' if only_batch else ' without rows'}")
        if len(recipes) > 1:
            half = len(recipes) // 2
            for part in (recipes[:half], recipes[half:]):
                result.add(check_chunk(part, only_batch, seed, want_proofs, flags, quota))
            return result
        stage.seek(0)
        if stage.read() == b"output":
            result.count(recipes[0], "failed")
            result.failures.append(Failure(recipes[0], 0, BATCH, f"signal {os.WTERMSIG(status)} ends the process that runs the output"))
        elif not only_batch:
            result.add(check_chunk(recipes, True, seed, want_proofs, flags, quota))
        else:
            result.count(recipes[0], "invalid")
        return result


def run_recipes(recipes: Sequence[Recipe], seed: int) -> Result:
    """Checks just these."""
    result = Result()
    groups = collections.defaultdict(list)
    for recipe in recipes:
        groups[recipe.static, not table.line_of(recipe.op).empty].append(recipe)
    for (_, only_batch), of in groups.items():
        for part in chunks(of, None):
            result.add(check_chunk(part, only_batch, seed, False, FLAGS))
    return result


def run(ops: Sequence[str], budget: Optional[int], seed: int, want_proofs=False, flags=FLAGS, progress=None, kinds="") -> Result:
    """Checks `budget` instances of each op that TensorFlow takes, or all recipes; those with an operand of such a kind."""
    result = Result()
    # Most of what is drawn is nothing that TensorFlow takes.
    recipes = chosen(ops, None if budget is None else 4 * budget, seed, kinds)
    groups = collections.defaultdict(list)
    for recipe in recipes:
        groups[recipe.static, not table.line_of(recipe.op).empty].append(recipe)
    done = 0
    for (static, only_batch), of in groups.items():
        quota = None if budget is None else max(budget // 5, 1) if static else budget
        for part in chunks(of, quota):
            result.add(check_chunk(part, only_batch, seed + done, want_proofs, flags, quota))
            done += len(part)
            if progress:
                progress(f"{done} of {len(recipes)}, {len(result.failures)} failures")
    return result


def chunks(recipes: Sequence[Recipe], quota: Optional[int]):
    """Parts of about AT_ONCE instances; with a quota, each op is in one part."""
    if quota is None:
        yield from (recipes[i : i + AT_ONCE] for i in range(0, len(recipes), AT_ONCE))
        return
    by_op = [list(group) for _, group in itertools.groupby(recipes, lambda recipe: recipe.op)]
    step = max(AT_ONCE // quota, 1)
    for i in range(0, len(by_op), step):
        yield [recipe for group in by_op[i : i + step] for recipe in group]
