# SPDX-License-Identifier: Apache-2.0
"""Ways to break a replicated program, or a graph that was made of one, a little.

A mutation is a name and a function that changes a MetaGraphDef in place. `program_mutations` and `lowered_mutations`
list all of them for one graph, by category, in the order of its nodes. The tests of partitions, TPU graphs and files of
workers list faults of their own; `mutant_of` and `survivors` serve all.
"""

import collections
import copy
import re
from typing import Callable, Dict, Iterable, List, NamedTuple, Tuple

import numpy as np
import tensorflow as tf

UPDATES = {  # op: the input that holds the gradient or the new value
    "ApplyAdagrad": 3,
    "ApplyAdam": 9,
    "ApplyGradientDescent": 2,
    "ApplyMomentum": 3,
    "Assign": 1,
    "AssignAdd": 1,
    "AssignSub": 1,
    "AssignAddVariableOp": 1,
    "AssignSubVariableOp": 1,
    "AssignVariableOp": 1,
    "ResourceApplyAdagrad": 3,
    "ResourceApplyAdam": 9,
    "ResourceApplyGradientDescent": 2,
    "ResourceApplyMomentum": 3,
    "ResourceSparseApplyAdagrad": 3,
    "SparseApplyAdagrad": 3,
}
VARIABLES = ("VarHandleOp", "VariableV2")
DECLARED = ("loss", "train_op", "init")  # other names may be missing, so to delete their merged values is no mistake


class Mutation(NamedTuple):
    category: str
    what: str
    apply: Callable[["Program"], None]


def source(text: str) -> str:
    """The node of an input."""
    return text.lstrip("^").split(":")[0]


def is_control(text: str) -> bool:
    return text.startswith("^")


class Program:
    """The graph of a MetaGraphDef, by name."""

    def __init__(self, meta):
        self.meta = meta
        self.nodes = {node.name: node for node in meta.graph_def.node}

    def kind(self, node) -> str:
        return node.attr["_graft_inserted"].s.decode() if "_graft_inserted" in node.attr else ""

    def flag(self, node, key) -> bool:
        return key in node.attr and node.attr[key].b

    def per_replica(self, node) -> bool:
        return "_graft_copies" in node.attr

    def data(self, node) -> List[str]:
        return [i for i in node.input if not is_control(i)]

    def users(self) -> Dict[str, List[Tuple[str, int]]]:
        result = collections.defaultdict(list)
        for node in self.meta.graph_def.node:
            for i, text in enumerate(node.input):
                result[source(text)].append((node.name, i))
        return result

    def redirect(self, name: str, to: str):
        """Every user of output 0 of `name` reads `to`; control edges from it end."""
        for node in self.meta.graph_def.node:
            inputs = []
            for text in node.input:
                if text == name or text == name + ":0":
                    inputs.append(to)
                elif text != "^" + name:
                    inputs.append(text)
            del node.input[:]
            node.input.extend(inputs)

    def delete(self, *names: str):
        kept = [node for node in self.meta.graph_def.node if node.name not in names]
        for node in kept:
            inputs = [i for i in node.input if source(i) not in names]
            if len(inputs) != len(node.input):
                del node.input[:]
                node.input.extend(inputs)
        kept = [copy.deepcopy(node) for node in kept]
        del self.meta.graph_def.node[:]
        self.meta.graph_def.node.extend(kept)
        self.nodes = {node.name: node for node in self.meta.graph_def.node}

    def drop_control(self, name: str, control: str):
        inputs = [i for i in self.nodes[name].input if i != control]
        del self.nodes[name].input[:]
        self.nodes[name].input.extend(inputs)

    def swap(self, a: str, i: int, b: str, j: int):
        one, two = self.nodes[a].input[i], self.nodes[b].input[j]
        self.nodes[a].input[i], self.nodes[b].input[j] = two, one


def mutant_of(meta, mutation: Mutation):
    """Returns a changed copy of `meta`, or None if the mutation changes nothing."""
    changed = type(meta)()
    changed.CopyFrom(meta)
    mutation.apply(Program(changed))
    return None if changed == meta else changed


def survivors(meta, every: Iterable[Mutation], refuses: Callable) -> Tuple[List[str], int]:
    """Returns the mutations whose mutants `refuses` accepts, and the number of all mutants."""
    found, count = [], 0
    for mutation in every:
        mutant = mutant_of(meta, mutation)
        if mutant is None:
            continue
        count += 1
        if not refuses(mutant):
            found.append(f"{mutation.category}: {mutation.what}")
    return found, count


def edit_of(name: str, change: Callable[[object], object]) -> Callable[[Program], None]:
    """Returns the mutation that changes one node."""
    return lambda p: change(p.nodes[name])


def spread(items: List, most: int) -> List:
    """At most `most` of the items, evenly spaced, first and last included."""
    if len(items) <= most:
        return list(items)
    if most == 1:
        return items[:1]
    return [items[round(i * (len(items) - 1) / (most - 1))] for i in range(most)]


def set_scalar(node, value: float):
    """Gives a float or double scalar constant another value."""
    array = tf.make_ndarray(node.attr["value"].tensor)
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, dtype=array.dtype, shape=array.shape))


def scalar(node):
    return tf.make_ndarray(node.attr["value"].tensor)


def wrong_op(dtype: int) -> str:
    """An op of one argument that gives another value for every argument."""
    return "Exp" if tf.as_dtype(dtype).is_floating else "Invert"


# --- On the replicated program. ---


def erased_source(p: Program, name: str) -> str:
    """The tensor that a reduction, a gather, a scale or a merge stands for."""
    text = p.nodes[name].input[0]
    while p.kind(p.nodes[source(text)]) in ("reduce", "gather") and source(text).startswith(name + "/"):
        text = p.nodes[source(text)].input[0]
    return text


def shape_of(p: Program, update) -> Tuple:
    variable = p.nodes.get(source(update.input[0]))
    while variable is not None and variable.op not in VARIABLES and variable.input:
        variable = p.nodes.get(source(variable.input[0]))
    if variable is None or "shape" not in variable.attr:
        return ()
    return tuple(d.size for d in variable.attr["shape"].shape.dim)


def program_mutations(meta) -> List[Mutation]:
    p = Program(meta)
    nodes = list(meta.graph_def.node)
    users = p.users()
    result: List[Mutation] = []

    def add(category, what, apply):
        result.append(Mutation(category, what, apply))

    def set_attr(category, name, key, how, **value):
        def apply(q):
            node = q.nodes[name]
            node.attr[key].Clear()
            for field, v in value.items():
                setattr(node.attr[key], field, v)

        add(category, f"{name}: {key} {how}", apply)

    def drop_attr(category, name, key):
        add(category, f"{name}: no {key}", lambda q: q.nodes[name].attr.pop(key))

    def drop_inserted(category, name):
        def apply(q):
            q.redirect(name, erased_source(q, name))
            parts = [n for n in q.nodes if n.startswith(name + "/") and q.kind(q.nodes[n]) in ("reduce", "gather", "gate")]
            q.delete(name, *parts)

        add(category, name, apply)

    for node in nodes:
        name, kind = node.name, p.kind(node)
        data = p.data(node)
        # Parts of a reduction go with it.
        is_part = any(source(i).rsplit("/", 1)[0] == name for i in data)
        if kind in ("reduce", "gather") and is_part:
            drop_inserted(f"drop {kind}", name)
        elif kind in ("scale", "merge", "split") and (users[name] or name in DECLARED):
            drop_inserted(f"drop {kind}", name)

        if "power" in node.attr:
            power = node.attr["power"].i
            set_attr("power", name, "power", f"{power} to {power + 1}", i=power + 1)
            set_attr("power", name, "power", f"{power} to {power - 1}", i=power - 1)
        if node.op == "CollectiveReduce":
            other = b"Id" if node.attr["final_op"].s == b"Div" else b"Div"
            set_attr("power", name, "final_op", f"to {other.decode()}", s=other)
            set_attr("combine", name, "merge_op", "to Max", s=b"Max")
            set_attr("group", name, "group_size", "to 3", i=3)
        if "combine" in node.attr and kind:
            now = node.attr["combine"].s.decode()
            other = "max" if now == "sum" else "sum" if now == "pick" else "pick"
            if node.attr["T"].type != tf.resource.as_datatype_enum and not p.flag(node, "_graft_elide_primary"):
                set_attr("combine", name, "combine", f"{now} to {other}", s=other.encode())
        if "axis" in node.attr and kind in ("split", "merge", "gather"):
            set_attr("axis", name, "axis", "to 1", i=node.attr["axis"].i + 1)

        if kind in ("scale", "merge", "reduce", "gather", "split") and not p.flag(node, "_graft_elide_primary"):
            if kind != "split" and users[name] and not (kind == "reduce" and node.op == "Identity"):
                set_attr("elide", name, "_graft_elide_primary", "set", b=True)
        if not kind and p.per_replica(node) and data and users[name] and node.op not in ("Identity",) + VARIABLES:
            set_attr("elide a user's op", name, "_graft_elide_primary", "set", b=True)
        if kind and node.op == "Identity" and data:
            wrong = wrong_op(node.attr["T"].type)
            add("forge", f"{name}: Identity to {wrong}", lambda q, n=name, op=wrong: setattr(q.nodes[n], "op", op))

        if not kind:
            if users[name] and not data:
                pass
            elif data and node.op not in UPDATES:
                add("drop op", name, lambda q, n=name, to=data[0]: (q.redirect(n, to), q.delete(n)))
                for user, i in users[name][:1]:
                    if node.op != "Identity" and not p.nodes[user].input[i].startswith("^"):
                        add("bypass", f"{name} for {user}", lambda q, u=user, i=i, to=data[0]: setitem(q, u, i, to))
            else:
                add("drop op", name, lambda q, n=name: q.delete(n))
            change = {"Relu": "Elu", "AddV2": "Sub", "Mul": "Add", "Sum": "Max", "Mean": "Sum", "Square": "Neg"}
            if node.op in change:
                add("change op", f"{name}: {node.op}", lambda q, n=name, op=change[node.op]: setattr(q.nodes[n], "op", op))
        for text in node.input:
            if is_control(text):
                what = f"drop control edge of {kind or 'user'}"
                add(what, f"{text} of {name}", lambda q, n=name, t=text: q.drop_control(n, t))

        if "_graft_original" in node.attr:
            def restore(q, n=name, forget=True):
                node = q.nodes[n]
                node.attr["value"].CopyFrom(node.attr["_graft_original"])
                if forget:
                    del node.attr["_graft_original"]

            add("unpatch", name, restore)
            add("unpatch", f"{name}, original kept", lambda q, f=restore: f(q, forget=False))

        if not kind and not p.per_replica(node) and (node.op in UPDATES or node.op in VARIABLES + ("SaveV2",)):
            set_attr("once to per-replica", name, "_graft_copies", "set", s=b"per-replica")
        # Not of a plain constant, which every replica may as well read in one place, nor of a NoOp, which orders more.
        if not kind and p.per_replica(node) and (data or "_graft_original" in node.attr or node.op in VARIABLES):
            drop_attr("per-replica to once", name, "_graft_copies")
        if p.flag(node, "_graft_led"):
            drop_attr("led", name, "_graft_led")

    collectives = [n.name for n in nodes if n.op.startswith("Collective")]
    for a, b in zip(collectives, collectives[1:]):
        key = p.nodes[b].attr["instance_key"].i
        set_attr("group", a, "instance_key", f"as {b}", i=key)

    # Gradients: of updates, by the shape of the variable, and of reductions.
    updates = [n for n in nodes if n.op in UPDATES and not n.name.startswith("save/") and not p.kind(n)]
    for same_shape in (True, False):
        pairs = []
        for i, a in enumerate(updates):
            for b in updates[i + 1 :]:
                ia, ib = UPDATES[a.op], UPDATES[b.op]
                if a.op == b.op and a.input[ia] != b.input[ib] and (shape_of(p, a) == shape_of(p, b)) == same_shape:
                    pairs.append((a.name, ia, b.name, ib))
        category = "swap gradients of one shape" if same_shape else "swap gradients"
        for a, ia, b, ib in pairs:
            add(category, f"{a} and {b}", lambda q, s=(a, ia, b, ib): q.swap(*s))
    leaves = [n for n in nodes if p.kind(n) == "reduce" and n.input and not p.kind(p.nodes[source(n.input[0])])]
    for a, b in zip(leaves, leaves[1:]):
        add("swap reduced", f"{a.name} and {b.name}", lambda q, s=(a.name, 0, b.name, 0): q.swap(*s))

    # An op that nobody asked for, under a name that says it does nothing.
    for node in updates:
        def forge(q, n=node.name, i=UPDATES[node.op]):
            update = q.nodes[n]
            of = update.attr["T"] if "T" in update.attr else update.attr["dtype"]
            wrong = q.meta.graph_def.node.add(name=n + "/forged", op=wrong_op(of.type), input=[update.input[i]])
            wrong.attr["T"].CopyFrom(of)
            wrong.attr["_graft_inserted"].s = b"identity"
            if "_graft_copies" in update.attr:
                wrong.attr["_graft_copies"].s = b"per-replica"
            update.input[i] = wrong.name

        add("forge", f"{node.name}: an op before it", forge)
    return result


def setitem(q: Program, name: str, index: int, text: str):
    q.nodes[name].input[index] = text


# --- On the lowered graph. ---


def copy_of(name: str):
    """(name of copy 0, replica) of `replica_1/a` and `a/replica_1`, or None."""
    match = re.fullmatch(r"replica_(\d+)/(.*)", name)
    if match:
        return match[2], int(match[1])
    match = re.fullmatch(r"(.*?)/replica_(\d+)(/.*)?", name)
    return (match[1] + (match[3] or ""), int(match[2])) if match else None


def lowered_mutations(meta) -> List[Mutation]:
    p = Program(meta)
    nodes = list(meta.graph_def.node)
    users = p.users()
    result: List[Mutation] = []

    def add(category, what, apply):
        result.append(Mutation(category, what, apply))

    for node in nodes:
        name, data = node.name, p.data(node)
        if node.op.startswith("Collective"):
            add("drop member", name, lambda q, n=name, to=data[0]: (q.redirect(n, to), q.delete(n)))
            if node.op == "CollectiveReduce":
                other = b"Id" if node.attr["final_op"].s == b"Div" else b"Div"
                key = node.attr["instance_key"].i
                members = [m.name for m in nodes if m.op == node.op and m.attr["instance_key"].i == key]
                add("scale of one member", f"{name}: final_op", lambda q, n=name, o=other: set_final_op(q, [n], o))
                if name == members[0]:
                    add("scale of all members", f"{name}: final_op", lambda q, n=members, o=other: set_final_op(q, n, o))
        if name.endswith("/gate"):
            for text in node.input:
                add("gate", f"{text} of {name}", lambda q, n=name, t=text: q.drop_control(n, t))
        for text in node.input:
            if not is_control(text):
                continue
            if text.endswith("/gate"):
                add("gate", f"{text} of {name}", lambda q, n=name, t=text: q.drop_control(n, t))
            twin = copy_of(source(text))
            if twin and twin[0] == name:
                category = "led edge"
                if name.startswith("save/"):
                    category = "restore edge"
                elif name.endswith("/Assign"):
                    category = "initializer edge"
                add(category, f"{text} of {name}", lambda q, n=name, t=text: q.drop_control(n, t))
        if node.op == "Const" and name.endswith("/factor"):
            value = scalar(node)
            if np.issubdtype(value.dtype, np.floating):
                add("scale", f"{name}: {value} to {2 * value}", lambda q, n=name, v=2 * value: set_scalar(q.nodes[n], v))
        if node.op in ("AddN", "ConcatV2") and "_graft_replicas" in node.attr and len(data) >= 2:
            add("shard twice", name, lambda q, n=name, to=data[0]: setitem(q, n, 1, to))
            if node.op == "ConcatV2":
                add("swap shards", name, lambda q, n=name: q.swap(n, 0, n, 1))
        if node.op == "ConcatV2" and "_graft_blocks" in node.attr:
            add("swap blocks", name, lambda q, n=name: q.swap(n, 0, n, 1))
        if node.op == "Split" and "_graft_replicas" in node.attr:
            port_users = [(u, i) for u, i in users[name] if p.nodes[u].input[i] == name + ":1"]
            for user, i in port_users[:2]:
                add("shard twice", f"{user} reads {name}:0", lambda q, u=user, i=i, n=name: setitem(q, u, i, n))
        if name.startswith("save/") and node.op in ("Assign", "AssignVariableOp"):
            for user, _ in users[name]:
                if user == "save/restore_all":
                    add("restore edge", f"^{name} of {user}", lambda q, u=user, t="^" + name: q.drop_control(u, t))

    # Updates of the copies of one variable, and of two variables of one shape in one replica.
    updates = [n for n in nodes if n.op in UPDATES and not n.name.startswith("save/") and not n.name.endswith("/Assign")]
    by_name = {n.name: n for n in updates}
    for node in updates:
        index = UPDATES[node.op]
        twin = by_name.get(f"replica_1/{node.name}")
        if twin is not None and node.input[index] != twin.input[index]:
            add("swap replicas", f"{node.name}", lambda q, s=(node.name, index, twin.name, index): q.swap(*s))
    for i, a in enumerate(updates):
        for b in updates[i + 1 :]:
            ia, ib = UPDATES[a.op], UPDATES[b.op]
            replica = [(copy_of(n.name) or (n.name, 0))[1] for n in (a, b)]
            if a.op == b.op and replica[0] == replica[1] and a.input[ia] != b.input[ib] and shape_of(p, a) == shape_of(p, b):
                add("swap gradients", f"{a.name} and {b.name}", lambda q, s=(a.name, ia, b.name, ib): q.swap(*s))
    return result


def set_final_op(q: Program, names: List[str], op: bytes):
    for name in names:
        q.nodes[name].attr["final_op"].s = op


def choose(mutations: List[Mutation], most: int) -> List[Mutation]:
    """At most `most` mutations of each category, evenly spaced."""
    by_category = collections.OrderedDict()
    for m in mutations:
        by_category.setdefault(m.category, []).append(m)
    return [m for group in by_category.values() for m in spread(group, most)]
