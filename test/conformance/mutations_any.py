# SPDX-License-Identifier: Apache-2.0
"""Mutations that make sense on any graph: each node's op, attributes, edges, device and name, one at a time.

`mutations.py` has the mutations that know what a replicated program is. These know nothing, so they also break what
nobody thought of. In a lowered graph a change is made to one copy, and to all copies of a node alike.
"""

import collections
import functools
import random
import re
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

import numpy as np
import tensorflow as tf
from mutations import DECLARED, Mutation, Program, is_control, setitem, source
from tensorflow.python.framework import op_def_registry

REROUTES = 2  # other tensors that are tried for one input


class Tensor(NamedTuple):
    dtype: int
    shape: Optional[Tuple]  # None: unknown


# --- What is known about the tensors of a graph. ---


def tensors_of(graph: tf.Graph) -> Dict[str, Tensor]:
    """Every output of a graph that TensorFlow could load, by name ('a', 'a:1')."""
    result = {}
    for op in graph.get_operations():
        for i, tensor in enumerate(op.outputs):
            shape = None if tensor.shape.rank is None else tuple(d if d is not None else -1 for d in tensor.shape.as_list())
            result[op.name if i == 0 else f"{op.name}:{i}"] = Tensor(tensor.dtype.as_datatype_enum, shape)
    return result


def tensors_of_program(p: Program, known: Dict[str, Tensor]) -> Dict[str, Tensor]:
    """The same for a program: a node has the tensors of its origin, an inserted one those of its input."""
    result = {}
    for node in p.meta.graph_def.node:
        origin = node.attr["_graft_origin"].s.decode() if "_graft_origin" in node.attr else node.name
        if p.kind(node):
            tensor = result.get(p.data(node)[0]) if p.data(node) else None
            if tensor is not None:
                result[node.name] = tensor
            continue
        for port in range(16):
            suffix = f":{port}" if port else ""
            if origin + suffix not in known:
                break
            result[node.name + suffix] = known[origin + suffix]
    return result


def order_of(p: Program) -> Dict[str, int]:
    """A topological order: an edge from an earlier to a later node makes no cycle. Back edges of loops are left out."""
    waits, users = {}, collections.defaultdict(list)
    for node in p.meta.graph_def.node:
        inputs = {source(i) for i in node.input}
        if node.op == "Merge":
            inputs = {i for i in inputs if p.nodes[i].op != "NextIteration"}
        waits[node.name] = len(inputs)
        for i in inputs:
            users[i].append(node.name)
    ready = collections.deque(name for name, count in waits.items() if count == 0)
    order = {}
    while ready:
        name = ready.popleft()
        order[name] = len(order)
        for user in users[name]:
            waits[user] -= 1
            if waits[user] == 0:
                ready.append(user)
    return order


# --- Ops and attributes. ---


@functools.lru_cache(maxsize=None)
def signature(op: str):
    """The properties that two ops must share so that one can replace the other."""
    definition = op_def_registry.get(op)
    if definition is None:
        return None
    arg = lambda a: (a.type, a.type_attr, a.number_attr, a.type_list_attr, a.is_ref)  # noqa: E731
    return (
        tuple(map(arg, definition.input_arg)),
        tuple(map(arg, definition.output_arg)),
        tuple(sorted((a.name, a.type) for a in definition.attr)),
    )


ALIKE = [  # ops that a mistake puts in each other's place
    "Abs Acos Ceil Cos Elu Erf Exp Floor Identity Inv Log Log1p Neg Reciprocal Relu Relu6 Rint Round Rsqrt Selu Sigmoid Sign Sin "
    "Softplus Softsign Sqrt Square StopGradient Tan Tanh ZerosLike OnesLike Softmax LogSoftmax L2Loss",
    "Add AddV2 Div DivNoNan Maximum Minimum Mod Mul MulNoNan Pow RealDiv SquaredDifference Sub FloorDiv FloorMod TruncateDiv",
    "Equal NotEqual",
    "Greater GreaterEqual Less LessEqual",
    "LogicalAnd LogicalOr",
    "Max Mean Min Prod Sum",
    "All Any",
    "ReluGrad SigmoidGrad TanhGrad SoftplusGrad SqrtGrad RsqrtGrad Relu6Grad EluGrad",
    "AssignAdd AssignSub Assign",
    "AssignAddVariableOp AssignSubVariableOp AssignVariableOp",
    "ScatterAdd ScatterSub ScatterUpdate",
    "ResourceScatterAdd ResourceScatterSub ResourceScatterUpdate",
    "SegmentSum UnsortedSegmentSum UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd",
    "RandomUniform RandomStandardNormal TruncatedNormal",
    "ArgMax ArgMin",
]


@functools.lru_cache(maxsize=None)
def others(op: str) -> List[str]:
    """Ops with the signature of `op`."""
    mine = signature(op)
    groups = [g.split() for g in ALIKE if op in g.split()]
    return [o for g in groups for o in g if o != op and mine is not None and signature(o) == mine]


IGNORED = {"_output_shapes", "_class"}  # mutated by kinds of their own


def other_values(key: str, value, rng: random.Random) -> List[Tuple[str, Callable]]:
    """(what, change in place) of an AttrValue."""
    which = value.WhichOneof("value")
    result = []
    if which == "b":
        result.append((f"{not value.b}", lambda v: setattr(v, "b", not v.b)))
    elif which == "i":
        result.append((f"{value.i} to {value.i + 1}", lambda v: setattr(v, "i", v.i + 1)))
        result.append((f"{value.i} to {value.i - 1}", lambda v: setattr(v, "i", v.i - 1)))
    elif which == "f":
        new = value.f * 2 if value.f else 0.5
        result.append((f"{value.f:g} to {new:g}", lambda v: setattr(v, "f", new)))
    elif which == "type":
        wrong = tf.float64 if value.type == tf.float32.as_datatype_enum else tf.float32
        if value.type in (tf.int32.as_datatype_enum, tf.int64.as_datatype_enum):
            wrong = tf.int64 if value.type == tf.int32.as_datatype_enum else tf.int32
        result.append((f"to {wrong.name}", lambda v: setattr(v, "type", wrong.as_datatype_enum)))
    elif which == "s":
        known = {b"SAME": b"VALID", b"VALID": b"SAME", b"NHWC": b"NCHW", b"Add": b"Max", b"Id": b"Div", b"Div": b"Id"}
        new = known.get(value.s, value.s + b"_other")
        result.append((f"to {new.decode(errors='replace')}", lambda v: setattr(v, "s", new)))
    elif which == "shape" and value.shape.dim:
        result.append(("a larger dimension", lambda v: setattr(v.shape.dim[0], "size", max(v.shape.dim[0].size, 0) + 1)))
    elif which == "list":
        for field in ("i", "f", "b", "s", "type"):
            items = getattr(value.list, field)
            if not items:
                continue
            at = rng.randrange(len(items))

            def change(v, field=field, at=at):
                old = getattr(v.list, field)[at]
                new = {"i": lambda: old + 1, "f": lambda: old * 2 + 1, "b": lambda: not old, "s": lambda: old + b"_other"}
                getattr(v.list, field)[at] = new[field]() if field in new else tf.float64.as_datatype_enum

            result.append((f"element {at}", change))
            result.append(("one element less", lambda v, field=field: getattr(v.list, field).pop()))
    elif which == "tensor":
        array = tf.make_ndarray(value.tensor)
        if array.size:
            at = rng.randrange(array.size)

            def change_tensor(v, at=at):
                array = tf.make_ndarray(v.tensor).copy()
                flat = array.reshape(-1)
                if array.dtype == object:
                    flat[at] = flat[at] + b"_other"
                elif array.dtype == bool:
                    flat[at] = not flat[at]
                else:
                    flat[at] = flat[at] + 1
                v.tensor.CopyFrom(tf.make_tensor_proto(flat.reshape(array.shape), dtype=tf.as_dtype(v.tensor.dtype), shape=array.shape))

            result.append((f"element {at}", change_tensor))
    return result


# --- Copies of a lowered graph. ---


def copy_name(name: str) -> Tuple[str, Optional[int]]:
    """(name of all copies, replica) of `replica_1/a` and `a/replica_1`; the replica is None for other names."""
    match = re.fullmatch(r"replica_(\d+)/(.*)", name)
    if match:
        return match[2], int(match[1])
    match = re.fullmatch(r"(.*?)/replica_(\d+)(/.*)?", name)
    return (match[1] + (match[3] or ""), int(match[2])) if match else (name, None)


def copies_of(p: Program) -> Dict[str, Dict[int, str]]:
    """The copies of each node that has some, by the name they share and by replica."""
    groups = collections.defaultdict(dict)
    for name in p.nodes:
        base, replica = copy_name(name)
        if replica is not None:
            groups[base][replica] = name
    for base, group in groups.items():
        if 0 not in group and base in p.nodes:
            group[0] = base
    return groups


# --- The mutations. ---


def any_mutations(meta, tensors: Dict[str, Tensor], lowered: bool, seed: int = 1) -> List[Mutation]:
    p, rng = Program(meta), random.Random(seed)
    order, users = order_of(p), p.users()
    by_type = collections.defaultdict(list)
    for name, tensor in tensors.items():
        by_type[tensor].append(name)
        by_type[tensor.dtype].append(name)
    groups = copies_of(p) if lowered else {}
    group_of = {name: (base, replica) for base, group in groups.items() for replica, name in group.items()}
    result: List[Mutation] = []

    def add(category, what, apply):
        result.append(Mutation(category, what, apply))

    def each(category, name, what, change):
        """On one node and, of a lowered graph, on all copies of it."""
        add(category, f"{name}: {what}", lambda q: change(q.nodes[name]))
        base, replica = group_of.get(name, ("", None))
        if replica == 0 and len(groups[base]) > 1:
            names = list(groups[base].values())
            add(f"{category}, all copies", f"{name}: {what}", lambda q: [change(q.nodes[n]) for n in names])

    for node in meta.graph_def.node:
        name, data = node.name, p.data(node)
        whose = "inserted" if p.kind(node) or "_graft_replicas" in node.attr else "user's"

        # Ops and attributes.
        alike = others(node.op)
        for op in rng.sample(alike, min(2, len(alike))):
            each(f"op of {whose} node", name, f"{node.op} to {op}", lambda n, op=op: setattr(n, "op", op))
        for key in sorted(node.attr):
            if key in IGNORED or key in ("_graft_inserted", "_graft_origin", "_graft_name_split"):
                if key == "_graft_name_split":
                    each(f"no attribute {key}", name, f"({node.op}) no {key}", lambda n, k=key: n.attr.pop(k))
                continue
            category = f"attribute {key}" if key.startswith("_graft") else f"attribute of {whose} node"
            for what, change in other_values(key, node.attr[key], rng):
                each(category, name, f"({node.op}) {key} {what}", lambda n, k=key, c=change: c(n.attr[k]))
            each(f"no {category}", name, f"({node.op}) no {key}", lambda n, k=key: n.attr.pop(k))
        if "_class" in node.attr:
            each("no _class", name, "no _class", lambda n: n.attr.pop("_class"))
            far = [n.name for n in meta.graph_def.node if n.device != node.device]
            if far and lowered:
                to = rng.choice(far)
                add("_class", f"{name}: as {to}", lambda q, n=name, t=to: set_class(q.nodes[n], t))

        # Edges.
        for i, text in enumerate(data):
            of = tensors.get(text[:-2] if text.endswith(":0") else text)
            if of is None or name not in order:
                continue
            for close, kind in ((of, "of one shape"), (of.dtype, "of another shape")):
                fit = [t for t in by_type[close] if t != text and order.get(source(t), len(order)) < order[name]]
                if kind == "of another shape":
                    fit = [t for t in fit if tensors[t] != of]
                for to in rng.sample(fit, min(REROUTES if close is of else 1, len(fit))):
                    add(f"reroute {kind}", f"input {i} of {name} to {to}", lambda q, n=name, i=i, t=to: setitem(q, n, i, t))
            base, replica = group_of.get(source(text), ("", None))
            if replica is not None:
                for other, to in groups[base].items():
                    port = text[len(source(text)):]
                    if other != replica:
                        what = f"input {i} of {name} to {to}{port}"
                        add("copy of another replica", what, lambda q, n=name, i=i, t=to + port: setitem(q, n, i, t))
        for i in range(len(data)):
            for j in range(i + 1, len(data)):
                a, b = tensors.get(data[i]), tensors.get(data[j])
                if data[i] != data[j] and a and b and a.dtype == b.dtype:
                    add("swap operands", f"{i} and {j} of {name}", lambda q, n=name, i=i, j=j: q.swap(n, i, n, j))
        if "N" in node.attr and len(data) >= 2 and node.attr["N"].i >= 2:
            add("drop operand", f"0 of {name}", lambda q, n=name: drop_operand(q.nodes[n]))
            add("duplicate operand", f"0 of {name}", lambda q, n=name: duplicate_operand(q.nodes[n]))
            add("operand twice", f"0 of {name}", lambda q, n=name, t=data[0]: setitem(q, n, 1, t))
        for text in node.input:
            if is_control(text):
                add(f"drop control edge of {whose} node", f"{text} of {name}", lambda q, n=name, t=text: q.drop_control(n, t))
        waits = {source(i) for i in node.input}
        early = [n for n in order if order[n] < order.get(name, 0) and n not in waits]
        effects = [n for n in early if p.nodes[n].op.startswith(("Assign", "Apply", "ResourceApply", "ResourceScatter", "Scatter"))]
        for pool in (early, effects):
            if pool:
                to = rng.choice(pool)
                kind = "an effect" if pool is effects else "another node"
                what = f"^{to} of {name}"
                add(f"{whose} node waits for {kind}", what, lambda q, n=name, t=to: q.nodes[n].input.append("^" + t))

        # The node itself.
        if data and users[name]:
            add("bypass node", name, lambda q, n=name, t=data[0]: (q.redirect(n, t), q.delete(n)))
        elif name in DECLARED or users[name]:
            add("delete node", name, lambda q, n=name: q.delete(n))
        if lowered:
            base, replica = group_of.get(name, ("", None))
            devices = sorted({n.device for n in meta.graph_def.node if n.device} - {node.device})
            if devices:
                kind = "device of a copy" if replica is not None else "device of a node that exists once"
                to = rng.choice(devices)
                add(kind, f"{name}: {to}", lambda q, n=name, d=to: setattr(q.nodes[n], "device", d))
            if replica == 0 and base and len(groups[base]) > 1:
                a, b = groups[base][0], groups[base][1]
                if p.nodes[a].device != p.nodes[b].device:
                    add("swap devices of copies", base, lambda q, a=a, b=b: swap_devices(q, a, b))
                add("swap names of copies", base, lambda q, a=a, b=b: swap_names(q, a, b))
        # A fetch gives a shard: the local value takes the name of the merged one.
        local = f"replica_0/{name}" if lowered else ""
        if local in p.nodes and name in p.nodes:
            add("swap names of local and merged", name, lambda q, a=name, b=local: swap_names(q, a, b))
        if not lowered and p.kind(node) == "merge" and data:
            add("swap names of local and merged", name, lambda q, a=name, b=source(data[0]): swap_names(q, a, b))
    return result


def set_class(node, name: str):
    node.attr["_class"].list.s[0] = b"loc:@" + name.encode()


def drop_operand(node):
    node.attr["N"].i -= 1
    del node.input[0]


def duplicate_operand(node):
    node.attr["N"].i += 1
    inputs = list(node.input)
    del node.input[:]
    node.input.extend([inputs[0], *inputs])


def swap_devices(q: Program, a: str, b: str):
    q.nodes[a].device, q.nodes[b].device = q.nodes[b].device, q.nodes[a].device


def swap_names(q: Program, a: str, b: str):
    """Two nodes change names, their users stay with the nodes."""
    names = {a: b, b: a}
    for node in q.meta.graph_def.node:
        node.name = names.get(node.name, node.name)
        for i, text in enumerate(node.input):
            to = names.get(source(text))
            if to is not None:
                port = text.split(":")[1] if ":" in text else ""
                node.input[i] = ("^" if is_control(text) else "") + to + (":" + port if port else "")
