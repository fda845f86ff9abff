# SPDX-License-Identifier: Apache-2.0
"""A training graph as a list of choices.

    draw(family, seed)  the choices: a head (batch, types, kinds of variables) and genes
    build(plan)         the graph, as a MetaGraphDef, with what a run of it needs

A gene is (number, kind, seed). It takes its operands out of the pool of what earlier genes made, by ranks that depend on
nothing but the gene's seed and the operands' own numbers: a gene that is left out changes no choice of those that do not
use it. So a plan that fails is made smaller by leaving out genes.
"""

import dataclasses
import hashlib
import importlib
import json
import random
from typing import Callable, Dict, List, Optional, Tuple

import numpy as np
import tensorflow.compat.v2 as tf

tf1 = tf.compat.v1
tf1.disable_control_flow_v2()

STEPS = 2


class Illegal(Exception):
    """The gene has no operand here, or it would not make a graph that runs."""


def mix(*parts) -> float:
    """A number in [0, 1) that depends on nothing but the parts."""
    digest = hashlib.blake2b("/".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2.0**64


@dataclasses.dataclass(frozen=True)
class Item:
    """A tensor of the pool: `shape` has the batch as a number, also where the graph does not; `batch` is the axis of rows."""

    tensor: tf.Tensor
    number: str
    shape: Tuple[int, ...]
    batch: Optional[int]
    kind: str = "float"  # float, int, bool
    classes: int = 0  # integers are below this

    @property
    def rank(self):
        return len(self.shape)

    @property
    def size(self):
        return int(np.prod(self.shape))


# The files with genes. Those that come later change no graph of a seed but by being drawn.
FILES = ("families", "training", "images", "recurrent", "lookups", "precision", "habits", "idioms", "sizes")
KINDS: Dict[str, Callable] = {}  # name: function(context, gene)
WEIGHTS: Dict[str, Dict[str, float]] = {"feed": {}, "op": {}, "loss": {}, "train": {}}


def gene(stage: str, weight: float = 1.0):
    def register(function):
        KINDS[function.__name__] = function
        WEIGHTS.setdefault(stage, {})[function.__name__] = weight
        return function

    return register


def register_all():
    for name in FILES:
        importlib.import_module(name)


def draw(family: str, seed: int) -> "Plan":
    """The plan of a seed: of all genes, or of the file of a family."""
    return Plan.draw(seed) if family == "all" else importlib.import_module(family).draw(seed)


@dataclasses.dataclass
class Gene:
    number: int
    kind: str
    seed: int

    def __post_init__(self):
        self.rng = random.Random(f"{self.kind}/{self.seed}")

    def below(self, n: int) -> int:
        return self.rng.randrange(n)

    def choice(self, values):
        return values[self.rng.randrange(len(values))]

    def chance(self, p: float) -> bool:
        return self.rng.random() < p


@dataclasses.dataclass
class Plan:
    """Everything of a graph; equal plans make equal graphs."""

    seed: int
    head: dict
    genes: List[Tuple[int, str, int]]

    @staticmethod
    def draw(seed: int) -> "Plan":
        rng = random.Random(f"plan/{seed}")
        replicas = rng.choice([2, 2, 3, 4])
        rows = rng.choice([1, 1, 2, 2, 3, 4])
        head = {
            "replicas": replicas,
            "rows": rows,
            "static": rng.random() < 0.4,
            "dtype": "float32" if rng.random() < 0.3 else "float64",
            "variables": rng.choice(["resource", "resource", "ref", "ref", "mixed"]),
            "sizes": rng.choice(["any", "any", "batch", "rows", "replicas"]),
            "source": rng.choice(["feed"] * 8 + ["iterator", "queue"]),
            "shuffle": rng.random() < 0.1,
            "scope": rng.choice([""] * 9 + ["model"]),
            "wild": rng.random() < 0.35,  # genes that relate rows with other rows
            "half": "",  # the type of numbers with half of the bits, if there are any
        }
        if rng.random() < 0.06:
            head["half"] = rng.choice(["float16", "bfloat16"])
        # Rows that the replicas do not divide. A draw of its own leaves the other draws of a seed as they were.
        odd = random.Random(f"odd/{seed}")
        head["odd"] = odd.randrange(-rows * replicas + 1, replicas) if odd.random() < 0.5 and not head["static"] else 0
        genes, number = [], 0

        def add(stage, count):
            nonlocal number
            kinds = [k for k in WEIGHTS[stage] if head["half"] or not k.startswith("half")]
            weights = [WEIGHTS[stage][k] for k in kinds]
            for kind in rng.choices(kinds, weights, k=count):
                genes.append((number, kind, rng.randrange(1 << 30)))
                number += 1

        genes.append((number, "rows_feed", rng.randrange(1 << 30)))
        number += 1
        for kind, likely in (("label_feed", 0.5), ("image_feed", 0.25), ("series_feed", 0.3), ("mask_feed", 0.2),
                             ("long_label_feed", 0.12)):  # fmt: skip
            if rng.random() < likely:
                genes.append((number, kind, rng.randrange(1 << 30)))
                number += 1
        add("feed", rng.choice([0, 1, 1, 2, 3]))
        add("op", rng.choice([1, 2, 3, 4, 5, 6, 8, 10]))
        if head["half"]:
            genes.append((number, "half_layer", rng.randrange(1 << 30)))
            number += 1
        add("loss", rng.choice([1, 1, 1, 2, 3]))
        add("train", rng.choice([1, 1, 2, 2, 3]))
        if not any(kind.startswith("optimize") for _, kind, _ in genes):
            genes.append((number, "optimize", rng.randrange(1 << 30)))
        return Plan(seed, head, genes)

    def text(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @staticmethod
    def parse(text: str) -> "Plan":
        data = json.loads(text)
        return Plan(data["seed"], data["head"], [tuple(g) for g in data["genes"]])


class Context:
    """A graph that is being built."""

    def __init__(self, plan: Plan, times: int = 1):
        self.plan = plan
        self.times = times  # how many batches an iterator or a queue gives at once
        self.head = plan.head
        self.replicas = plan.head["replicas"]
        self.per_replica = plan.head["rows"]
        self.batch = max(1, self.replicas * self.per_replica + plan.head.get("odd", 0))
        self.static = plan.head["static"]
        self.dtype = tf.as_dtype(plan.head["dtype"])
        self.wild = plan.head["wild"]
        self.pool: List[Item] = []
        self.feeds: Dict[str, Callable] = {}  # tensor name: function(rng) -> value
        self.split: List[str] = []  # feeds with rows
        self.components: List[Tuple[str, Callable]] = []  # of an iterator or a queue
        self.sources: List[tf.Tensor] = []
        self.losses: List[tf.Tensor] = []
        self.trains: List[tf.Operation] = []
        self.variables = 0
        self.fused = False
        self.random = False
        self.v1_flow = False
        self.skipped: List[str] = []
        self.gene: Optional[Gene] = None
        self.serial = 0
        self.step = 0  # whose feeds are made

    # --- Sizes. ---

    def width(self, g: Gene, low: int = 1) -> int:
        """A number of features; it may be one of the sizes of the batch."""
        special = {"batch": self.batch, "rows": self.per_replica, "replicas": self.replicas}.get(self.head["sizes"])
        if special and special >= low and g.chance(0.5):
            return special
        return max(low, g.choice([1, 2, 3, 4, 5]))

    def rows(self, g: Gene):
        """The number of rows: a constant of a static graph, or read from a shape."""
        if self.static and g.chance(0.7):
            return self.batch
        return tf.shape(self.anchor)[0]

    @property
    def anchor(self) -> tf.Tensor:
        """A tensor with the rows of the batch."""
        for item in self.pool:
            if item.batch == 0:
                return item.tensor
        raise Illegal("no rows")

    def dynamic(self, g: Gene, item: Item) -> List:
        """The shape as numbers, and sizes of the batch as tensors where it is not known."""
        shape = item.tensor.shape.as_list()
        return [tf.shape(item.tensor)[i] if s is None else s for i, s in enumerate(shape)]

    # --- The pool. ---

    def pick(self, g: Gene, key, *tests) -> Item:
        """An item for which all tests hold; later ones are more likely."""
        best, score = None, -1.0
        for item in self.pool:
            if all(test(item) for test in tests):
                weight = 1.0 + 2.0 * int(item.number.split(".")[0])
                rank = mix(g.seed, key, item.number) ** (1.0 / weight)
                if rank > score:
                    best, score = item, rank
        if best is None:
            raise Illegal(f"{g.kind}: nothing to take")
        return best

    def add(self, tensor, batch=None, shape=None, kind="float", classes=0, multiple=1) -> Item:
        if shape is None:
            dims = tensor.shape.as_list()
            shape = tuple(self.batch * multiple if s is None else s for s in dims)
        if np.prod(shape) > 5000:
            raise Illegal("too large")
        item = Item(tensor, f"{self.gene.number}.{self.serial}", tuple(shape), batch, kind, classes)
        self.serial += 1
        self.pool.append(item)
        return item

    # --- Variables. ---

    def value(self, g: Gene, shape, scale=0.6):
        rng = np.random.RandomState(g.below(1 << 30))
        return (rng.uniform(-1.0, 1.0, shape) * scale).astype(self.dtype.as_numpy_dtype)

    def variable(self, g: Gene, shape, scale=0.6, value=None, trainable=True, dtype=None, collections=None):
        """A variable with a fixed initial value, of either kind."""
        if value is None:
            value = self.value(g, shape, scale)
        kind = self.head["variables"]
        resource = g.chance(0.5) if kind == "mixed" else kind == "resource"
        name = f"v{g.number}_{self.variables}"
        self.variables += 1
        # (An initial value that waits for the step would race with it.)
        with tf.control_dependencies(None):
            return tf1.get_variable(
                name,
                initializer=tf.constant(value, dtype or self.dtype),
                trainable=trainable,
                use_resource=resource,
                collections=collections,
            )


@dataclasses.dataclass
class Saved:
    """The names of a saver."""

    file: str
    save: str
    restore: str
    variables: List[str]


@dataclasses.dataclass
class Built:
    """A graph that was built, and what a run of it needs. Names are those of the MetaGraphDef."""

    meta: tf1.MetaGraphDef
    feeds: List[Dict[str, np.ndarray]]  # one for each step
    split: List[str]
    variables: Dict[str, str]  # name: the tensor that reads it
    trains: List[str]
    probes: List[str]  # tensors that can be fetched and depend on nothing that a step changes
    fused: bool
    source: str
    saver: Optional[Saved]
    skipped: List[str]
    replicas: int
    dtype: str
    randomness: bool
    axes: Dict[str, Optional[int]]  # of probes that could be fed: the axis of the rows, if it has one
    sources: int  # iterators and queues
    static: bool = False
    wild: bool = False
    plan: Optional[Plan] = None
    beside: Optional[List[List[str]]] = None  # what the run of each step fetches, if it does not run the train ops alone

    def again(self, times: int) -> "Built":
        """The same graph, whose iterators and queues give so many batches at once."""
        if self.plan is None:
            raise Illegal("not a graph of genes any more")
        return build(self.plan, times)


# Ops with a state that only read it.
READS = {"VarHandleOp", "VariableV2", "Variable", "ReadVariableOp", "ResourceGather", "ResourceGatherNd"}


def disturbing(op) -> bool:
    """Does the op change a state, or depend on how often it runs?"""
    if op.type in READS or op.type in ("Placeholder", "PlaceholderWithDefault"):
        return False
    definition = op.op_def
    if definition.is_stateful:
        return True
    return any(a.is_ref for a in definition.output_arg) and op.type not in ("RefIdentity", "Identity")


def probes(graph) -> List[str]:
    """Tensors that can be fetched with feeds alone, in the order of the graph."""
    clean, pure, found = {}, {}, []
    for op in graph.get_operations():
        operands = [t.op for t in op.inputs] + list(op.control_inputs)
        flow = op._get_control_flow_context() is not None or op.type in ("Switch", "RefSwitch", "Enter", "Exit")
        pure[op.name] = not disturbing(op) and all(pure.get(o.name, True) for o in operands)
        good = pure[op.name] and not flow
        # A conditional as a whole has values, if it writes nothing; a branch of it has not.
        if good and op.type == "Merge":
            pass
        elif good:
            good = all(clean.get(o.name, False) for o in operands)
        clean[op.name] = good
        if good and op.type not in ("Placeholder", "NoOp", "Const", "VarHandleOp", "VariableV2"):
            for t in op.outputs:
                if t.dtype.is_floating or t.dtype.is_integer or t.dtype.is_bool:
                    if not t.dtype._is_ref_dtype:
                        found.append(t.name)
    return found


def build(plan: Plan, times: int = 1) -> Built:
    graph = tf.Graph()
    tf1.disable_control_flow_v2()
    with graph.as_default(), tf1.variable_scope(plan.head["scope"]):
        context = Context(plan, times)
        for number, kind, seed in plan.genes:
            g = Gene(number, kind, seed)
            context.gene, context.serial = g, 0
            try:
                KINDS[kind](context, g)
            except (Illegal, ValueError, TypeError, LookupError) as error:
                context.skipped.append(f"{kind}: {type(error).__name__}: {error}"[:200])
            finally:
                tf1.disable_control_flow_v2()
        if not context.trains:
            raise Illegal("no train op")
    with graph.as_default():
        names = []
        for i, train in enumerate(context.trains):
            names.append(tf.group(train, name=f"train_{i}").name)
            tf1.add_to_collection(tf1.GraphKeys.TRAIN_OP, train)
        with tf.control_dependencies(None):
            every = tf1.global_variables() + tf1.local_variables()
            starts = [tf1.variables_initializer(every, name="start_variables"), *context_starts(context)]
            tf.group(*starts, name="init")
        saver = None
        if mix(plan.seed, "saver") < 0.15 and "family" not in plan.head:
            saver = tf1.train.Saver()
        meta = tf1.train.export_meta_graph(
            graph=graph, saver_def=saver.saver_def if saver else None, clear_devices=False
        )
        variables = {v.op.name: v.to_proto().snapshot_name for v in every}
        # A family of its own says itself what its steps fetch.
        beside = context.sizes.fetched() if "family" in plan.head else None
        usable = probes(graph) if beside is None else sorted(set().union(*beside))
        kept = [v.op.name for v in tf1.global_variables()]
    if plan.head["shuffle"]:
        nodes = list(meta.graph_def.node)
        random.Random(plan.seed).shuffle(nodes)
        del meta.graph_def.node[:]
        meta.graph_def.node.extend(nodes)
    # A value that goes through float32, or half, has that precision.
    nodes = [*meta.graph_def.node, *(n for f in meta.graph_def.library.function for n in f.node_def)]
    casts = {(n.attr["SrcT"].type, n.attr["DstT"].type) for n in nodes if n.op == "Cast"}
    halved = any(kind in (14, 19) for _, kind in casts)
    exact = "half" if halved else "float32" if (2, 1) in casts else plan.head["dtype"]
    feeds = []
    for step in range(plan.head.get("steps", STEPS)):
        context.step = step
        feeds.append(
            {name: make(np.random.RandomState((plan.seed * 7919 + step * 104729 + int(mix(name) * 1e6)) % (1 << 31)))
             for name, make in context.feeds.items()}
        )
    saved = None
    if saver is not None:
        names_of = saver.saver_def
        saved = Saved(names_of.filename_tensor_name, names_of.save_tensor_name.split(":")[0], names_of.restore_op_name, kept)
    clean = set(usable) - set(context.feeds)
    axes = {t.tensor.name: t.batch for t in context.pool if t.kind == "float" and t.tensor.name in clean}
    return Built(
        meta, feeds, context.split, variables, names, usable, context.fused, plan.head["source"], saved,
        context.skipped, context.replicas, exact, context.random, axes,
        len(getattr(context, "starts", [])), context.static, context.wild, plan,
        beside,
    )


def context_starts(context: Context):
    return [tf1.get_default_graph().get_operation_by_name(name) for name in getattr(context, "starts", [])]
