# SPDX-License-Identifier: Apache-2.0
"""Writes small graph files byte by byte, without TensorFlow.

    wire.py KIND > FILE
"""

import sys


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, value):
    """A bytes field, or a varint field when the value is a number."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def attr(key, value):
    return field(5, field(1, key) + field(2, value))


def node(name, op, *inputs, rest=b""):
    body = field(1, name) + field(2, op)
    return field(1, body + b"".join(field(3, i) for i in inputs) + rest)


dtype = attr("dtype", field(6, 1))
value = attr("value", field(8, field(1, 1) + field(2, b"") + field(5, 0)))
graph = (
    node("x", "Placeholder", rest=dtype)
    + node("y", "Identity", "x", rest=attr("T", field(6, 1)))
    + field(4, field(1, 1087))
)
# Field 77 does not exist in NodeDef, AttrValue or GraphDef.
unknown = (
    node("x", "Placeholder", rest=dtype + field(77, "in a node"))
    + field(77, "in the graph")
    + node("y", "NoSuchOp", "x", rest=attr("k", field(77, "in an attr")))
    + field(4, field(1, 1087))
)
meta_info = field(1, "v1") + field(4, "train")
# A MetaInfoDef without a list of ops and without versions: as a NodeDef it has
# a name and a device, and protobuf sees nothing wrong.
meta = field(1, meta_info) + field(2, graph)
collection = field(4, field(1, "train_op") + field(2, field(1, field(1, "y"))))
saved = field(1, 1) + field(2, meta) + field(2, meta)

files = {
    "graph": graph,
    "unknown": unknown,
    "meta": meta,
    "meta-after": field(2, graph) + collection,
    "meta-two-graphs": field(2, graph) + field(2, graph),
    "meta-no-graph": field(1, meta_info) + collection,
    "saved": saved,
    "truncated": graph[:-10],
    "cut-node": field(1, field(1, "x") + field(2, "NoOp") + b"\x1a\x05ab"),
    "node-without-op": node("a", "NoOp") + field(1, field(1, "x")),
    "versions-only": field(4, field(1, 1087)),
    # A name of a dimension that is no UTF-8, and one that is.
    "not-utf8": graph + node("z", "NoOp", rest=attr("shape", field(7, field(2, field(1, 3) + field(2, b"\xff"))))),
    "utf8": graph + node("z", "NoOp", rest=attr("shape", field(7, field(2, field(1, 3) + field(2, "\u00e9"))))),
    "not-a-graph": field(1, "hello \x01 world") + field(9, 3),
}

if sys.argv[1] == "many":
    rest = attr("value", field(2, bytes(100)))
    for i in range(500_000):
        sys.stdout.buffer.write(node(f"n{i}", "NoSuchOp", rest=rest))
elif sys.argv[1] == "big":
    rest = attr("value", field(2, bytes(1 << 20)))
    for i in range(300):
        sys.stdout.buffer.write(node(f"n{i}", "NoSuchOp", rest=rest))
else:
    sys.stdout.buffer.write(files[sys.argv[1]])
