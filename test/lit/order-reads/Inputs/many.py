# SPDX-License-Identifier: Apache-2.0
"""many.py updates|variables|late COUNT: so many updates and readers of one reference, references that are clipped by a norm of all, or
updates of one reference one after the other, after each of which a use of what was read before."""

import sys

FLOAT = 'attr { key: "T" value { type: DT_FLOAT } }'
SCALAR = 'attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { } } }'


def node(name, op, inputs=(), attrs=FLOAT):
    print(f'node {{ name: "{name}" op: "{op}"', *(f'input: "{i}"' for i in inputs), attrs, "}")


what, count = sys.argv[1], int(sys.argv[2])
node("y", "Placeholder", attrs=SCALAR)
if what == "updates":
    node("v", "VariableV2", attrs=SCALAR)
    node("r", "Identity", ["v"])
    for i in range(count):
        node(f"m{i}", "Mul", ["r", "y"])
        node(f"u{i}", "AssignAdd", ["v", f"m{i}"])
elif what == "late":
    node("v", "VariableV2", attrs=SCALAR)
    node("r", "Identity", ["v"])
    for i in range(count):
        node(f"u{i}", "AssignAdd", ["v", "y"] + ([f"^m{i - 1}"] if i else []))
        node(f"m{i}", "Mul", ["r", "y", f"^u{i}"])
else:
    for i in range(count):
        node(f"v{i}", "VariableV2", attrs=SCALAR)
        node(f"r{i}", "Identity", [f"v{i}"])
        node(f"g{i}", "Mul", [f"r{i}", "y"])
        node(f"l{i}", "L2Loss", [f"g{i}"])
    node("n", "AddN", [f"l{i}" for i in range(count)], FLOAT + f' attr {{ key: "N" value {{ i: {count} }} }}')
    for i in range(count):
        node(f"s{i}", "Mul", [f"g{i}", "n"])
        node(f"u{i}", "ApplyGradientDescent", [f"v{i}", "y", f"s{i}"])
