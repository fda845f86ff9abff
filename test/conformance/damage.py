# SPDX-License-Identifier: Apache-2.0
"""Damages real graphs, and asks TensorFlow and graft what they say.

    build/venv/bin/python test/conformance/damage.py --runs=1000 --seed=0 FILE...

A damage is a kind and what random numbers of a seed make of it: an input dropped, an attribute of a wrong kind, a
function that is not there, an integer at the end of its range, ... Options are drawn as well, such as nobody would give.
Two things must hold of each damage:

- What TensorFlow refuses to import graft refuses as well: exit 1, and a message. What only a shape function refuses is
  left out (REASONS): graft has none.
- What graft writes TensorFlow imports: an exit status of 0 says so of the identity and of a rewrite for two replicas.

Any other exit status (2 is one of drawn options only), a crash or a message that names no cause, is a failure. TensorFlow
itself may crash on a graph, so it judges in a process of its own.
"""

import argparse
import collections
import os
import random
import re
import signal
import subprocess
import sys
import tempfile

import harness
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.framework import attr_value_pb2, graph_pb2, types_pb2
from tensorflow.core.protobuf import control_flow_pb2, meta_graph_pb2

tf1 = tf.compat.v1

SECONDS = 30

# Errors of TensorFlow on a graph that graft need not refuse, and the reasons.
REASONS = {
    r"with input shapes|Subshape must have": "a shape function: graft has none",
    r"for '\{\{node|for \w+ \(op: ": "a shape function: graft has none",
    r"_output_shapes attribute": "a shape function: graft has none",
    r"Unable to evaluate a constant|Cannot parse tensor|must be a vector|shape_as_tensor|in tensor used for shape|of int32 range": "constants "
    r"that a shape function reads",
    r"already exists.*op with the same name": "an op that only this binary has",
    r"Op type not registered": "an op of the user's, which graft lets through",
    r"Invalid type index|Name 'while|context": "contexts",
}

# --- Damages. Each takes the random numbers, the graph and a node of it, and returns whether it did anything. ---

KINDS = {}


def kind(function):
    KINDS[function.__name__] = function
    return function


def pick(rng, items):
    items = list(items)
    return rng.choice(items) if items else None


def attr_of(rng, node, hidden=False):
    return pick(rng, sorted(key for key in node.attr if hidden or not key.startswith("_")))


VALUES = [
    lambda v: v.__setattr__("i", 3),
    lambda v: v.__setattr__("i", -7),
    lambda v: v.__setattr__("i", 1 << 40),
    lambda v: v.__setattr__("f", 1.5),
    lambda v: v.__setattr__("b", True),
    lambda v: v.__setattr__("s", b"word"),
    lambda v: v.__setattr__("s", b"\xff\xfe"),
    lambda v: v.__setattr__("type", types_pb2.DT_FLOAT),
    lambda v: v.__setattr__("type", types_pb2.DT_STRING),
    lambda v: v.__setattr__("type", types_pb2.DT_FLOAT_REF),
    lambda v: v.__setattr__("type", 0),
    lambda v: v.__setattr__("type", 77),
    lambda v: v.shape.dim.add().__setattr__("size", 3),
    lambda v: v.shape.dim.add().__setattr__("size", -2),
    lambda v: v.shape.__setattr__("unknown_rank", True),
    lambda v: v.tensor.__setattr__("dtype", types_pb2.DT_FLOAT),
    lambda v: v.list.SetInParent(),
    lambda v: v.list.i.extend([1, 2]),
    lambda v: v.list.s.extend([b"a"]),
    lambda v: v.list.type.extend([types_pb2.DT_FLOAT]),
    lambda v: v.list.type.extend([types_pb2.DT_FLOAT, 0]),
    lambda v: v.list.shape.add(),
    lambda v: (v.list.i.append(1), v.list.s.append(b"a")),
    lambda v: v.func.__setattr__("name", "nothing"),
    lambda v: v.__setattr__("placeholder", "T"),
    lambda v: None,
]


@kind
def input_dropped(rng, graph, node):
    if not node.input:
        return False
    del node.input[rng.randrange(len(node.input))]


@kind
def input_doubled(rng, graph, node):
    if not node.input:
        return False
    at = rng.randrange(len(node.input))
    node.input.insert(at, node.input[at])


@kind
def input_of_another(rng, graph, node):
    if not node.input:
        return False
    node.input[rng.randrange(len(node.input))] = pick(rng, graph.node).name


@kind
def input_of_nobody(rng, graph, node):
    if not node.input:
        return False
    node.input[rng.randrange(len(node.input))] = rng.choice(["nobody", "", "^", ":0", "a:b", "^nobody", "x y", "é"])


@kind
def input_port(rng, graph, node):
    at = pick(rng, [i for i, text in enumerate(node.input) if not text.startswith("^")])
    if at is None:
        return False
    node.input[at] = node.input[at].split(":")[0] + rng.choice([":1", ":7", ":-1", ":00", ":99999999999999999999", ":", ":x"])


@kind
def input_control(rng, graph, node):
    if not node.input:
        return False
    at = rng.randrange(len(node.input))
    node.input[at] = "^" + node.input[at].split(":")[0].lstrip("^")


@kind
def control_as_data(rng, graph, node):
    at = pick(rng, [i for i, text in enumerate(node.input) if text.startswith("^")])
    if at is None:
        return False
    node.input[at] = node.input[at][1:]


@kind
def control_first(rng, graph, node):
    if not node.input:
        return False
    node.input.insert(0, "^" + pick(rng, graph.node).name)


@kind
def control_twice(rng, graph, node):
    other = pick(rng, graph.node).name
    node.input.extend(["^" + other] * rng.randrange(1, 4))


@kind
def inputs_shuffled(rng, graph, node):
    if len(node.input) < 2:
        return False
    order = list(node.input)
    rng.shuffle(order)
    node.input[:] = order


@kind
def cycle(rng, graph, node):
    if not node.input:
        return False
    source = node.input[0].split(":")[0].lstrip("^")
    for other in graph.node:
        if other.name == source:
            other.input.append("^" + node.name)


@kind
def itself(rng, graph, node):
    node.input.append("^" + node.name)


@kind
def attr_dropped(rng, graph, node):
    key = attr_of(rng, node)
    if key is None:
        return False
    del node.attr[key]


@kind
def attr_kind(rng, graph, node):
    key = attr_of(rng, node, hidden=rng.random() < 0.3)
    if key is None:
        return False
    node.attr[key].Clear()
    rng.choice(VALUES)(node.attr[key])


@kind
def attr_of_the_same_kind(rng, graph, node):
    key = attr_of(rng, node)
    if key is None:
        return False
    value = node.attr[key]
    what = value.WhichOneof("value")
    if what == "type":
        value.type = rng.randrange(-1, 40)
    elif what == "i":
        value.i = rng.choice([-1 << 63, -2, -1, 0, 1, 2, 5, 1 << 31, 1 << 33, (1 << 63) - 1])
    elif what == "s":
        value.s = rng.choice([b"", b"SAME", b"valid", b"NHWC", b"\xff", b"x" * 300])
    elif what == "list" and value.list.type:
        rng.choice([lambda: value.list.type.append(1), lambda: value.list.type.pop(), lambda: value.list.type.append(0)])()
    elif what == "list" and value.list.i:
        rng.choice([lambda: value.list.i.append(-5), lambda: value.list.i.pop()])()
    elif what == "shape":
        value.shape.dim.add().size = rng.choice([-1, -2, 0, 3, 1 << 40, (1 << 63) - 1])
    else:
        return False


@kind
def attr_of_another_op(rng, graph, node):
    other = pick(rng, graph.node)
    for key in sorted(other.attr):
        if key != "_output_shapes":  # TensorFlow believes what a shape function did not say: see REASONS
            node.attr[key].CopyFrom(other.attr[key])


@kind
def attr_nobody_knows(rng, graph, node):
    key = rng.choice(["bogus", "_bogus", "", "a b", "é", "_class", "_output_shapes", "_XlaCompile"])
    node.attr[key].Clear()
    rng.choice(VALUES)(node.attr[key])


@kind
def huge_shape(rng, graph, node):
    key = pick(rng, sorted(key for key in node.attr if node.attr[key].HasField("shape")))
    if key is None:
        return False
    shape = node.attr[key].shape
    for _ in range(rng.choice([2, 254, 255, 300])):
        shape.dim.add().size = rng.choice([1, 1 << 32])


@kind
def constant(rng, graph, node):
    node = pick(rng, [n for n in graph.node if n.op == "Const"])
    if node is None:
        return False
    tensor = node.attr["value"].tensor
    rng.choice(
        [
            lambda: tensor.__setattr__("tensor_content", tensor.tensor_content + b"xy"),
            lambda: tensor.__setattr__("tensor_content", b"abc"),
            lambda: tensor.tensor_shape.dim.add().__setattr__("size", -1),
            lambda: tensor.tensor_shape.dim.add().__setattr__("size", 1 << 50),
            lambda: tensor.tensor_shape.__setattr__("unknown_rank", True),
            lambda: tensor.__setattr__("dtype", rng.randrange(0, 25)),
            lambda: tensor.ClearField("tensor_content"),
            lambda: tensor.int_val.extend([1] * 5),
            lambda: tensor.Clear(),
        ]
    )()


def end_of_a_range(rng, bits=64):
    """An integer that nobody means: at the end of a type, of the axes of some rank, or of what a narrower type holds."""
    most, rank = (1 << (bits - 1)) - 1, rng.randrange(6)
    ends = [-most - 1, most, -most, most - 1, -rank - 1, rank, -1, 0, 253, 254, 255, 256, -255, -256, 1 << 15, 1 << 16, 1 << 30]
    return rng.choice(ends + [1 << 31, 1 << 32, (1 << 32) + 1, 1 << 40, -(1 << 32)] * (bits == 64))


def integers_of(node):
    """The lists of integers in the attributes of a node, other than those of a constant."""
    for key in sorted(node.attr):
        value = node.attr[key]
        if value.WhichOneof("value") == "list" and value.list.i:
            yield value.list.i


@kind
def end_of_an_operand(rng, graph, node):
    """An axis, a permutation, a shape, a place, a count: all are integers in constants."""
    node = pick(rng, [n for n in graph.node if n.op == "Const" and n.attr["dtype"].type in (types_pb2.DT_INT32, types_pb2.DT_INT64)])
    if node is None:
        return False
    tensor = node.attr["value"].tensor
    try:
        values = tf.make_ndarray(tensor).copy()
    except (TypeError, ValueError):
        return False
    if not 0 < values.size <= 64:
        return False
    bits = 8 * values.itemsize
    for _ in range(rng.choice([1, 1, 1, 2, values.size])):
        values.flat[rng.randrange(values.size)] = end_of_a_range(rng, bits)
    tensor.CopyFrom(tf.make_tensor_proto(values))


@kind
def end_of_an_attribute(rng, graph, node):
    """The same of attributes: axis, N, num, batch_dims, masks, squeeze_dims, strides, ..."""
    holders = [n for n in graph.node if any(True for _ in integers_of(n)) or any(v.WhichOneof("value") == "i" for v in n.attr.values())]
    node = pick(rng, holders)
    if node is None:
        return False
    lists = list(integers_of(node))
    if lists and rng.random() < 0.7:
        values = rng.choice(lists)
        values[rng.randrange(len(values))] = end_of_a_range(rng)
    else:
        key = pick(rng, sorted(key for key in node.attr if node.attr[key].WhichOneof("value") == "i"))
        if key is None:
            return False
        node.attr[key].i = end_of_a_range(rng)


@kind
def end_of_a_shape(rng, graph, node):
    """The same of shapes: of feeds, variables and hints."""
    node = pick(rng, [n for n in graph.node if any(v.HasField("shape") and v.shape.dim for v in n.attr.values())])
    if node is None:
        return False
    key = pick(rng, sorted(key for key in node.attr if node.attr[key].HasField("shape") and node.attr[key].shape.dim))
    dims = node.attr[key].shape.dim
    dims[rng.randrange(len(dims))].size = end_of_a_range(rng)


@kind
def name_of_another(rng, graph, node):
    node.name = pick(rng, graph.node).name


@kind
def name_illegal(rng, graph, node):
    node.name = rng.choice(["", " ", "a b", "_a", "-a", "/a", "a:0", "^a", "a>", "é", "a\0b", "a" * 5000])


@kind
def op_unknown(rng, graph, node):
    node.op = rng.choice(["NoSuchOp", "", " ", "é", "_Arg", "_Retval", "neg"])


@kind
def op_of_another(rng, graph, node):
    node.op = pick(rng, graph.node).op


@kind
def device(rng, graph, node):
    node.device = rng.choice(
        ["nowhere", "/job:", "/job:a/task:x", "/device:GPU", "/gpu:99", "/job:a/job:b", "/device:CPU:-1", "//", "é", "/cpu:0"]
    )


@kind
def node_dropped(rng, graph, node):
    graph.node.remove(node)


@kind
def node_twice(rng, graph, node):
    graph.node.add().CopyFrom(node)


@kind
def colocated(rng, graph, node):
    node.attr["_class"].Clear()
    entries = node.attr["_class"].list.s
    entries.append(rng.choice([b"loc:@nobody", b"loc:@", b"loc:", b"", b"\xff", b"loc:@" + pick(rng, graph.node).name.encode()]))


@kind
def versions(rng, graph, node):
    rng.choice(
        [
            lambda: graph.versions.__setattr__("producer", -1),
            lambda: graph.versions.__setattr__("producer", 0),
            lambda: graph.versions.__setattr__("producer", 1 << 30),
            lambda: graph.versions.__setattr__("min_consumer", 1 << 30),
            lambda: graph.versions.__setattr__("min_consumer", -4),
            lambda: graph.versions.bad_consumers.append(tf.version.GRAPH_DEF_VERSION),
            lambda: graph.versions.bad_consumers.append(3),
        ]
    )()


@kind
def type_of_many(rng, graph, node):
    """All of the op have another type."""
    for other in graph.node:
        if other.op == node.op and "T" in other.attr:
            other.attr["T"].type = types_pb2.DT_DOUBLE


# --- of functions ---


def function_of(rng, graph):
    return pick(rng, graph.library.function)


@kind
def function_dropped(rng, graph, node):
    function = function_of(rng, graph)
    if function is None:
        return False
    graph.library.function.remove(function)


@kind
def function_twice(rng, graph, node):
    function = function_of(rng, graph)
    if function is None:
        return False
    again = graph.library.function.add()
    again.CopyFrom(function)
    if rng.random() < 0.5:
        again.signature.description = "another"
        again.node_def.add(name="more", op="NoOp")


@kind
def function_named(rng, graph, node):
    function = function_of(rng, graph)
    if function is None:
        return False
    function.signature.name = rng.choice(["", "Relu", "a b", "other", function.signature.name + "_"])


@kind
def function_recursive(rng, graph, node):
    function = function_of(rng, graph)
    if function is None:
        return False
    call = function.node_def.add(name="again", op=function.signature.name)
    call.input.extend(arg.name for arg in function.signature.input_arg)


@kind
def function_body(rng, graph, node):
    function = pick(rng, [f for f in graph.library.function if f.node_def])
    if function is None:
        return False
    body = pick(rng, function.node_def)
    damage = rng.choice(
        [input_dropped, input_of_nobody, input_doubled, attr_dropped, attr_kind, op_unknown, name_illegal, attr_of_the_same_kind, itself]
    )
    shadow = graph_pb2.GraphDef()
    shadow.node.extend(function.node_def)
    return damage(rng, shadow, body)


@kind
def function_returns(rng, graph, node):
    function = pick(rng, [f for f in graph.library.function if f.ret])
    if function is None:
        return False
    key = pick(rng, sorted(function.ret))
    if rng.random() < 0.5:
        del function.ret[key]
    else:
        function.ret[key] = rng.choice(["nobody:y:0", "", "x", ":0", function.ret[key] + "9"])


@kind
def function_arguments(rng, graph, node):
    function = function_of(rng, graph)
    if function is None:
        return False
    args = rng.choice([function.signature.input_arg, function.signature.output_arg])
    arg = pick(rng, args)
    rng.choice(
        [
            lambda: args.add(name="more", type=types_pb2.DT_FLOAT),
            lambda: arg is not None and args.remove(arg),
            lambda: arg is not None and arg.__setattr__("type", types_pb2.DT_STRING),
            lambda: arg is not None and arg.__setattr__("type", 0),
            lambda: arg is not None and arg.__setattr__("name", "a b"),
        ]
    )()


@kind
def function_gradient(rng, graph, node):
    function = function_of(rng, graph)
    name = function.signature.name if function is not None else "nobody"
    for _ in range(rng.randrange(1, 3)):
        graph.library.gradient.add(function_name=rng.choice([name, "nobody"]), gradient_func=rng.choice([name, "nobody"]))


# --- around the graph: of a MetaGraphDef ---

META_KINDS = {}


def meta_kind(function):
    META_KINDS[function.__name__] = function
    return function


@meta_kind
def collection_garbage(rng, meta):
    key = rng.choice(sorted(meta.collection_def) + ["new", "variables", "while_context", "cond_context"])
    value = meta.collection_def[key]
    value.Clear()
    rng.choice(
        [
            lambda: value.bytes_list.value.append(rng.randbytes(20)),
            lambda: value.node_list.value.append("nobody:0"),
            lambda: value.node_list.value.append("a b"),
            lambda: value.int64_list.value.append(5),
            lambda: value.any_list.value.add(type_url="nothing"),
            lambda: None,
        ]
    )()


@meta_kind
def collection_dropped(rng, meta):
    key = pick(rng, sorted(meta.collection_def))
    if key is None:
        return False
    del meta.collection_def[key]


@meta_kind
def collection_entry(rng, meta):
    key = pick(rng, sorted(k for k in meta.collection_def if meta.collection_def[k].bytes_list.value))
    if key is None:
        return False
    values = meta.collection_def[key].bytes_list.value
    at = rng.randrange(len(values))
    entry = bytearray(values[at])
    rng.choice(
        [
            lambda: values.append(values[at]),
            lambda: values.__setitem__(at, bytes(entry[: len(entry) // 2])),
            lambda: values.__setitem__(at, values[at].replace(b"w", b"q")),
            lambda: values.__setitem__(at, b""),
        ]
    )()


@meta_kind
def saver(rng, meta):
    field = rng.choice(["filename_tensor_name", "save_tensor_name", "restore_op_name"])
    setattr(meta.saver_def, field, rng.choice(["nobody", "", "a b:0"]))


@meta_kind
def signature(rng, meta):
    meta.signature_def["s"].inputs["x"].name = rng.choice(["nobody:0", "", "a b"])


@meta_kind
def stripped_ops(rng, meta):
    ops = meta.meta_info_def.stripped_op_list.op
    rng.choice([lambda: meta.meta_info_def.ClearField("stripped_op_list"), lambda: ops and ops[0].__setattr__("name", "Nobody")])()


# --- of bytes ---


def damage_bytes(rng, data):
    data = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(data))
        how = rng.randrange(4)
        if how == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif how == 1:
            del data[at : at + rng.randrange(1, 5)]
        elif how == 2:
            data[at:at] = rng.randbytes(rng.randrange(1, 5))
        else:
            data[at] = rng.choice([0, 0x7F, 0x80, 0xFF])
    return bytes(data)


# --- Graphs that are the same in every process. ---

CONTEXTS = {"while_context": control_flow_pb2.WhileContextDef, "cond_context": control_flow_pb2.CondContextDef}


def funcs_of(nodes):
    """The functions that attributes of `nodes` name, in an order that does not depend on names."""
    for node in nodes:
        for _, value in sorted(node.attr.items()):
            for func in [value.func] * value.HasField("func") + list(value.list.func):
                yield func


def by_place(graph):
    """The functions of a graph by name, in the order in which nodes come to them."""
    library = {function.signature.name: function for function in graph.library.function}
    gradients = {entry.function_name: entry.gradient_func for entry in graph.library.gradient}
    found, bodies = {}, [graph.node]
    for nodes in bodies:
        names = [node.op for node in nodes] + [func.name for func in funcs_of(nodes)]
        names += [gradients[name] for name in names if name in gradients]
        for name in names:
            if name in library and name not in found:
                found[name] = library[name]
                bodies.append(library[name].node_def)
        # Functions without a call come last.
        if nodes is bodies[-1]:
            rest = [name for name in library if name not in found]
            if rest:
                name = min(rest, key=lambda name: (re.sub(r"\d+", "", name), library[name].ByteSize()))
                found[name] = library[name]
                bodies.append(library[name].node_def)
    return found


def sort_values(context):
    """The values of a context are a set, and those of the contexts inside."""
    context.values_def.values.sort()
    for inner in context.nested_contexts:
        sort_values(getattr(inner, inner.WhichOneof("ctxt")))


def canonical(message):
    """The same graph, without the numbers of functions and the orders of sets, which another process has otherwise."""
    graph = message.graph_def if isinstance(message, meta_graph_pb2.MetaGraphDef) else message
    functions = by_place(graph)
    names = {name: re.sub(r"\d+", "", name) + f"_{i}" for i, name in enumerate(functions)}
    tags = {}
    for nodes in [graph.node] + [function.node_def for function in functions.values()]:
        for func in funcs_of(nodes):
            func.name = names.get(func.name, func.name)
        for node in nodes:
            node.op = names.get(node.op, node.op)
            for key in sorted(node.attr):
                # Names of gradients that only this process knows.
                value = node.attr[key]
                if found := re.fullmatch(rb"(\w*[A-Za-z]-)\d+", value.s):
                    value.s = found[1] + b"%d" % tags.setdefault(value.s, len(tags))
    for entry in graph.library.gradient:
        entry.function_name = names.get(entry.function_name, entry.function_name)
        entry.gradient_func = names.get(entry.gradient_func, entry.gradient_func)
    library = [functions[name] for name in names]
    for name, function in functions.items():
        function.signature.name = names[name]
        for arg in function.signature.input_arg:  # some are called after the function
            arg.name = re.sub(r"\d+(___redundant_placeholder)", r"\1", arg.name)
        for key in ("forward_function_name", "backward_function_name"):
            if key in function.attr:
                function.attr[key].s = names.get(function.attr[key].s.decode(), key).encode()
    copies = [type(function).FromString(function.SerializeToString()) for function in library]
    del graph.library.function[:]
    graph.library.function.extend(copies)
    if message is not graph:
        for key, kind in CONTEXTS.items():
            values = message.collection_def[key].bytes_list.value if key in message.collection_def else []
            for i, value in enumerate(values):
                context = kind.FromString(value)
                sort_values(context)
                values[i] = context.SerializeToString(deterministic=True)
    return message


def damage(seed, path):
    """The kind of damage and the bytes of the graph in `path` with it."""
    rng = random.Random(f"{seed}-{os.path.basename(path)}")
    with open(path, "rb") as file:
        data = file.read()
    is_meta = path.endswith(".meta")
    message = canonical((meta_graph_pb2.MetaGraphDef if is_meta else graph_pb2.GraphDef).FromString(data))
    data = message.SerializeToString(deterministic=True)
    graph = message.graph_def if is_meta else message
    names = sorted(KINDS) + sorted(META_KINDS if is_meta else []) + ["bytes"] * 3
    done = []
    while not done or rng.random() < 0.1:
        name = rng.choice(names)
        if name == "bytes":
            return "bytes", damage_bytes(rng, data)
        try:
            if name in META_KINDS:
                result = META_KINDS[name](rng, message)
            else:
                result = KINDS[name](rng, graph, rng.choice(graph.node)) if graph.node else False
        except ValueError:  # what protobuf's own setters refuse
            continue
        if result is not False:
            done.append(name)
    return "+".join(done), message.SerializeToString(deterministic=True)


# --- Judges. ---


def imports(data, is_meta):
    """The error of TensorFlow on a graph: "" for none, "crash" for nothing any more."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        said = b""
        try:
            signal.setitimer(signal.ITIMER_PROF, SECONDS)  # of the processor: a machine may be busy
            message = (meta_graph_pb2.MetaGraphDef if is_meta else graph_pb2.GraphDef).FromString(data)
            with tf.Graph().as_default():
                if is_meta:
                    tf1.train.import_meta_graph(message)
                else:
                    tf1.import_graph_def(message, name="")
        except BaseException as e:  # whatever it is, it says no
            said = f"{type(e).__name__}: {e}".encode(errors="replace")[:4000]
        os.write(write, said)
        os._exit(0)
    os.close(write)
    said = b""
    while chunk := os.read(read, 4096):
        said += chunk
    os.close(read)
    status = os.waitpid(child, 0)[1]
    return "crash" if status != 0 else said.decode(errors="replace")


def reason(said):
    """Why graft need not refuse what TensorFlow refuses so."""
    if said == "crash":
        return "TensorFlow crashes"
    return next((why for pattern, why in REASONS.items() if re.search(pattern, said)), None)


def graft(path, out, *arguments):
    return subprocess.run(
        [harness.graft_opt(), path, "-o", out, *arguments], capture_output=True, text=True, errors="replace", timeout=20 * SECONDS
    )


REWRITE = ("--replicas=2", "--device-type=CPU")


def options(seed):
    """Options that nobody would give: numbers at the ends of their ranges, patterns that match all nodes."""
    rng = random.Random(f"options-{seed}")
    number = lambda: end_of_a_range(rng)  # noqa: E731
    drawn = [
        lambda: "--feed=*=sparse",
        lambda: "--feed=*=copy",
        lambda: f"--feed=*=split({number()})",
        lambda: "--feed=*",
        lambda: "--fetch=*",
        lambda: "--explain=*",
        lambda: "--variable=*=" + rng.choice(["sync-on-read,mean", "sync-on-read,sum", "sync-on-read,none", "mirrored", "shared"]),
        lambda: f"--grad=*={rng.choice(['sum', 'mean', number()])}",
        lambda: f"--min-spread={number()}",
        lambda: f"--bucket-bytes={number()}",
        lambda: f"--shard-size={number()}",
        lambda: f"--threads={number()}",
        lambda: f"--max-shards={number()}",
        lambda: f"--min-shard-bytes={number()}",
        lambda: "--strategy=" + rng.choice(["ps", "parallax", "partitioned-ps", "auto", "all-reduce"]),
        lambda: "--fallback=" + rng.choice(["once", "mean", "refuse"]),
        lambda: "--batch=per-replica",
        lambda: "--check-copies",
        # (Thousands of replicas are right, and take their time.)
        lambda: f"--replicas={rng.choice([0, 1, 3, 255, 256, 257, -1, 65537, (1 << 31) - 1, 1 << 31, 1 << 63, -(1 << 63)])}",
    ]
    chosen = [each() for each in rng.sample(drawn, rng.choice([1, 1, 2, 3]))]
    replicas = [] if any(option.startswith("--replicas=") for option in chosen) else ["--replicas=2"]
    return (*replicas, "--device-type=CPU", *chosen)


def judge(seed, path, folder):
    """(kind, outcome, what is wrong or "") of one damage."""
    what, data = damage(seed, path)
    suffix = os.path.splitext(path)[1]
    broken, out = os.path.join(folder, "broken" + suffix), os.path.join(folder, "out" + suffix)
    is_meta = suffix == ".meta"
    with open(broken, "wb") as file:
        file.write(data)
    said = imports(data, is_meta)
    kind = "--input-kind=" + ("metagraph" if is_meta else "graph")
    for arguments in ((), REWRITE):
        done = graft(broken, out, *arguments, kind)
        if done.returncode == 1:
            if not done.stderr.strip():
                return what, "silent", "exit 1 without a message"
            if not arguments:
                return what, "refused" if said else "refused by graft only", ""
            continue
        if done.returncode != 0:
            return what, "fault", f"exit {done.returncode}: {done.stderr[-300:]}"
        if said and reason(said) is None:
            return what, "accepted", f"graft takes what TensorFlow refuses: {said[:300]}"
        if arguments and not said:
            with open(out, "rb") as file:
                written = imports(file.read(), is_meta)
            if written:
                return what, "written", f"TensorFlow refuses what graft wrote: {written[:300]}"
    strange = options(seed)
    done = graft(broken, out, *strange, kind)
    if done.returncode not in (0, 1, 2) or (done.returncode != 0 and not done.stderr.strip()):
        return what, "fault", f"{' '.join(strange)}: exit {done.returncode}: {done.stderr[-300:]}"
    return what, "taken" if not said else "left out: " + reason(said), ""


def run(paths, seeds, show=print):
    """Judges damages; returns how many of each outcome there were, and what is wrong."""
    outcomes, wrong = collections.Counter(), []
    with tempfile.TemporaryDirectory(prefix="graft-damage-") as folder:
        for seed in seeds:
            path = paths[seed % len(paths)]
            what, outcome, fault = judge(seed, path, folder)
            outcomes[outcome] += 1
            if outcome == "refused by graft only":
                ONLY[what] += 1
            if fault:
                wrong.append(f"seed {seed}, {os.path.basename(path)}, {what}: {fault}")
                show(wrong[-1])
    return outcomes, wrong


ONLY = collections.Counter()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, help="write the damaged graph of this seed to a file and stop")
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    if options.show is not None:
        path = options.files[options.show % len(options.files)]
        what, data = damage(options.show, path)
        name = f"damaged-{options.show}{os.path.splitext(path)[1]}"
        with open(name, "wb") as file:
            file.write(data)
        print(f"{name}: {os.path.basename(path)}, {what}; TensorFlow: {imports(data, path.endswith('.meta')) or 'imports'}")
        return
    outcomes, wrong = run(options.files, range(options.seed, options.seed + options.runs), lambda text: print(text, flush=True))
    for outcome, count in sorted(outcomes.items()):
        print(f"{count:6} {outcome}")
    print("refused by graft only:", dict(ONLY.most_common()))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
