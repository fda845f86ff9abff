# SPDX-License-Identifier: Apache-2.0
"""Graphs and options that nobody would write: time and memory follow their size.

Each shape is made at a size and at four times the size. What grows with the square takes sixteen times as long.
"""

import os

import harness
import pytest
from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import meta_graph_pb2

FLOAT, INT, BOOL = types_pb2.DT_FLOAT, types_pb2.DT_INT32, types_pb2.DT_BOOL
TYPES = {"T", "dtype", "SrcT", "DstT", "Index", "Tidx", "out_type"}


class Maker:
    """A step that trains w, [4, 4], on rows h = x w, and what a shape makes of them."""

    def __init__(self):
        self.meta = meta_graph_pb2.MetaGraphDef()
        self.nodes = self.meta.graph_def.node
        self.feed("x", -1, 4)
        self.op("w", "VarHandleOp", dtype=FLOAT, shared_name="w")
        for _ in range(2):
            self.nodes[-1].attr["shape"].shape.dim.add().size = 4
        self.constant("zeros", 0.0, 4, 4)
        self.op("init", "AssignVariableOp", "w", "zeros", dtype=FLOAT)
        self.op("read", "ReadVariableOp", "w", dtype=FLOAT)
        self.op("h", "MatMul", "x", "read", T=FLOAT)
        self.constant("rate", 0.1)

    def op(self, name, op, *inputs, **attrs):
        node = self.nodes.add(name=name, op=op)
        node.input.extend(inputs)
        for key, value in attrs.items():
            attr = node.attr[key]
            if isinstance(value, bool):
                attr.b = value
            elif key in TYPES:
                attr.type = value
            elif isinstance(value, int):
                attr.i = value
            else:
                attr.s = value.encode()
        return name

    def feed(self, name, *dims, of=FLOAT):
        self.op(name, "Placeholder", dtype=of)
        shape = self.nodes[-1].attr["shape"].shape
        shape.SetInParent()
        for dim in dims:
            shape.dim.add().size = dim
        return name

    def constant(self, name, value, *dims, of=FLOAT):
        self.op(name, "Const", dtype=of)
        tensor = self.nodes[-1].attr["value"].tensor
        tensor.dtype = of
        tensor.tensor_shape.SetInParent()
        for dim in dims:
            tensor.tensor_shape.dim.add().size = dim
        (tensor.float_val if of == FLOAT else tensor.int_val).append(value)
        return name

    def calls(self, name, function, count, inputs):
        self.op(name, "PartitionedCall", *inputs)
        attr = self.nodes[-1].attr
        attr["f"].func.name = function
        for key in ("Tin", "Tout"):
            attr[key].list.type.extend([FLOAT] * count)
        return name

    def ends(self, rows):
        self.op("grad", "MatMul", "x", rows, T=FLOAT, transpose_a=True)
        self.op("step", "ResourceApplyGradientDescent", "w", "rate", "grad", T=FLOAT)
        return self.meta


def conditionals_of_one_predicate(n):
    m, at = Maker(), "h"
    m.feed("p", of=BOOL)
    for i in range(n):
        m.op(f"p{i}", "Identity", "p", T=BOOL)
        m.op(f"s{i}", "Switch", at, f"p{i}", T=FLOAT)
        m.op(f"t{i}", "Tanh", f"s{i}:1", T=FLOAT)
        at = m.op(f"m{i}", "Merge", f"s{i}", f"t{i}", T=FLOAT, N=2)
    return m.ends(at)


def conditionals_inside_each_other(n):
    m, at = Maker(), "h"
    for i in range(n):
        m.feed(f"p{i}", of=BOOL)
        m.op(f"s{i}", "Switch", at, f"p{i}", T=FLOAT)
        at = f"s{i}:1"
    for i in reversed(range(n)):
        at = m.op(f"m{i}", "Merge", f"s{i}", at, T=FLOAT, N=2)
    return m.ends(at)


def merge_of_many(n):
    m = Maker()
    for i in range(n):
        m.feed(f"p{i}", of=BOOL)
        m.op(f"s{i}", "Switch", "h", f"p{i}", T=FLOAT)
    return m.ends(m.op("m", "Merge", *[f"s{i}:1" for i in range(n)], T=FLOAT, N=n))


def feeds_of_as_many_rows(n):
    m = Maker()
    feeds = [m.feed(f"f{i}", -1, 4) for i in range(n)]
    return m.ends(m.op("sum", "AddN", "h", *feeds, T=FLOAT, N=n + 1))


def results_of_a_call(n):
    m = Maker()
    function = m.meta.graph_def.library.function.add()
    function.signature.name = "f"
    for i in range(n):
        function.signature.input_arg.add(name=f"a{i}", type=FLOAT)
        function.signature.output_arg.add(name=f"o{i}", type=FLOAT)
        node = function.node_def.add(name=f"t{i}", op="Tanh", input=[f"a{i}"])
        node.attr["T"].type = FLOAT
        function.ret[f"o{i}"] = f"t{i}:y:0"
    m.calls("call", "f", n, ["h"] * n)
    return m.ends(m.op("sum", "AddN", "call", *[f"call:{i}" for i in range(1, n)], T=FLOAT, N=n))


def inputs_of_one_node(n):
    m = Maker()
    return m.ends(m.op("sum", "AddN", *["h"] * n, T=FLOAT, N=n))


# The sizes take some tenths of a second; the square of each took ten times as long, at least.
SHAPES = {
    conditionals_of_one_predicate: 10000,
    conditionals_inside_each_other: 5000,
    merge_of_many: 5000,
    feeds_of_as_many_rows: 8000,
    results_of_a_call: 10000,
    inputs_of_one_node: 100000,
}


def follows(size, arguments):
    """Runs graft with what `arguments` makes of a size and of four times the size."""
    seconds, memory = {}, {}
    for each in (size, 4 * size):
        given = arguments(each)
        costs = [harness.cost(given) for _ in range(3)]
        seconds[each], memory[each] = min(c[0] for c in costs), min(c[1] for c in costs)
    small, large = seconds.values()
    assert large <= 8 * small + 0.2, f"{seconds} s"
    small, large = memory.values()
    assert large <= 6 * small, f"{memory} KiB"


def write(path, message):
    with open(path, "wb") as file:
        file.write(message.SerializeToString())
    return str(path)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_follows_the_size(shape, tmp_path):
    def arguments(size):
        path = write(tmp_path / f"{size}.meta", shape(size))
        return [path, "-o", str(tmp_path / "out.meta"), "--replicas=2", "--device-type=CPU"]

    follows(SHAPES[shape], arguments)


# --- Options. ---

LINE = os.path.join(harness.ROOT, "docs", "examples", "line.pbtxt")


def test_replicas(tmp_path):
    """Copies are compared with each other, and the certificate reads all of them."""
    follows(16384, lambda size: [LINE, "-o", str(tmp_path / "out.pb"), f"--replicas={size}", "--device-type=CPU", "--verify-output"])


def test_machines(tmp_path):
    """The same for a resource file."""

    def arguments(size):
        path = tmp_path / f"{size}.yml"
        machine = "  - address: h{}\n    cpus: [0]\n    network_bandwidth: 1\n"
        path.write_text("nodes:\n" + machine.format(0) + "    chief: true\n" + "".join(map(machine.format, range(1, size))))
        return [LINE, "-o", str(tmp_path / "out.pb"), f"--resources={path}"]

    follows(15000, arguments)


def test_explanations_of_all_nodes(tmp_path):
    """The same for a chain, each node of which follows from all before it."""

    def arguments(size):
        m, at = Maker(), "h"
        for i in range(size):
            at = m.op(f"t{i}", "Tanh", at, T=FLOAT)
        path = write(tmp_path / f"{size}.meta", m.ends(at))
        return [path, "--emit=none", "--replicas=2", "--device-type=CPU", "--explain=*"]

    follows(5000, arguments)
