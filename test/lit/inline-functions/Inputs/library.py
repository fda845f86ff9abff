# SPDX-License-Identifier: Apache-2.0
"""Writes graphs as text whose functions call each other in hostile ways.

    library.py KIND COUNT > FILE
"""

import sys

FLOAT = 'attr { key: "T" value { type: DT_FLOAT } }'
FLOATS = "value { list { type: DT_FLOAT } } }"
TRUE = (
    'attr { key: "dtype" value { type: DT_BOOL } } '
    'attr { key: "value" value { tensor { dtype: DT_BOOL tensor_shape { } bool_val: true } } }'
)


def node(name, op, inputs, attrs=FLOAT):
    listed = " ".join(f'input: "{i}"' for i in inputs)
    return f'name: "{name}" op: "{op}" {listed} {attrs}'


def call(name, function, argument):
    of = f'attr {{ key: "f" value {{ func {{ name: "{function}" }} }} }}'
    return node(
        name, "PartitionedCall", [argument], f'attr {{ key: "Tin" {FLOATS} attr {{ key: "Tout" {FLOATS} {of}'
    )


def function(name, nodes, result, returns="DT_FLOAT"):
    body = "".join(f"  node_def {{ {n} }}\n" for n in nodes)
    arguments = f'input_arg {{ name: "a" type: DT_FLOAT }} output_arg {{ name: "o" type: {returns} }}'
    return (
        f'function {{ signature {{ name: "{name}" {arguments} }}\n{body}'
        f'  ret {{ key: "o" value: "{result}" }} }}\n'
    )


def identity(name, source="a"):
    return node(name, "Identity", [source])


def main(kind, count):
    nodes = [node("x", "Placeholder", [], 'attr { key: "dtype" value { type: DT_FLOAT } }')]
    functions = []
    last = function(f"f{count}", [identity("i")], "i:output:0")
    if kind == "twice":  # each calls the next one twice
        for i in range(count):
            body = [call("c", f"f{i + 1}", "a"), call("d", f"f{i + 1}", "c:output:0")]
            functions.append(function(f"f{i}", body, "d:output:0"))
        functions.append(last)
    elif kind == "deep":  # each calls the next one
        for i in range(count):
            functions.append(function(f"f{i}", [call("c", f"f{i + 1}", "a")], "c:output:0"))
        functions.append(last)
    elif kind == "circle":  # the last one calls the first
        for i in range(count):
            functions.append(function(f"f{i}", [call("c", f"f{(i + 1) % count}", "a")], "c:output:0"))
    elif kind == "same":  # nodes of one name
        functions.append(function("f0", [identity("i")] * count, "i:output:0"))
    elif kind == "loop":  # what the body returns is itself
        functions.append(function("cond", [node("t", "Const", [], TRUE)], "t:output:0", "DT_BOOL"))
        functions.append(function("body", [identity("p", "q:output:0"), identity("q", "p:output:0")], "p:output:0"))
    elif kind == "branches":
        functions += [function(f"b{i}", [identity("i")], "i:output:0") for i in range(count)]
    if kind == "loop":
        functional = "".join(f'attr {{ key: "{f}" value {{ func {{ name: "{f}" }} }} }} ' for f in ("cond", "body"))
        nodes.append(node("y", "While", ["x"], f'attr {{ key: "T" {FLOATS} {functional}'))
    elif kind == "branches":
        nodes.append(node("n", "Placeholder", [], 'attr { key: "dtype" value { type: DT_INT32 } }'))
        branches = " ".join(f'func {{ name: "b{i}" }}' for i in range(count))
        types = f'attr {{ key: "Tin" {FLOATS} attr {{ key: "Tout" {FLOATS}'
        nodes.append(
            node("y", "Case", ["n", "x"], f'{types} attr {{ key: "branches" value {{ list {{ {branches} }} }} }}')
        )
    else:
        nodes.append(call("y", "f0", "x"))
    nodes.append(identity("z", "y"))
    for n in nodes:
        print("node {", n, "}")
    print("library {\n", "".join(functions), "}\nversions { producer: 1087 }")


main(sys.argv[1], int(sys.argv[2]))
