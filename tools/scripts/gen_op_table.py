#!/usr/bin/env python3
"""Writes lib/ops/OpTable.inc and lib/ops/Ops.h from the op registry of the installed TensorFlow.

    python tools/scripts/gen_op_table.py [FOLDER]

FOLDER defaults to lib/ops of this checkout. Needs a TensorFlow wheel (tensorflow-cpu will do) and nothing else.
The table holds every op that a bare `import tensorflow` registers, sorted by the bytes of its name; the same wheel gives
the same bytes. The version used is in the header of the file.

Everything comes from the registered OpDefs: no op is classified by its name. How variables are recognised:

- A *variable argument* is a Ref-typed or DT_RESOURCE input called `var`, `ref`, `resource` or `resources`; VariableShape
  calls it `input`. Handles of queues, tables, stacks, readers, iterators, ... have other names.
- An *update* has a variable argument first; the variables (its slots too) are the leading run of Ref or resource inputs.
  What follows tells the kind:

      Apply               `grad` or `delta`, and the first argument is `var` (RngSkip has a `delta` too, on a `resource`)
      Scatter             exactly `indices`, `updates`
      StridedSliceAssign  exactly `begin`, `end`, `strides`, `value`
      Assign, AssignAdd   exactly `value`. Only an op that replaces the whole value can change the shape, so only Assign
                          and AssignVariableOp have the attr `validate_shape`. AssignAdd stands for subtraction as well.
      Count               nothing, and the attr `limit`

- A *read* is no update, has a variable argument first, then at most `indices`, and only outputs called like values.
- NOT_TABLED lists the ops with a variable argument that are neither. It is the only list made by hand, and it is checked:
  an op of a newer TensorFlow that none of the rules knows stops the script instead of being left out silently.

A few ops name their variables otherwise (NegTrain `w_in`, SdcaShrinkL1 `weights`, TPUReshardVariables `vars`) and are in
no list. So a Ref or resource input of an op that is neither an update nor a read is a use of unknown effect.
"""

import os
import pathlib
import re
import sys

# TensorFlow reads these when it is imported.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import tensorflow as tf
from google.protobuf import text_format
from tensorflow.core.framework import op_def_pb2, types_pb2
from tensorflow.python.client import pywrap_tf_session

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "lib" / "ops"

VARIABLE_NAMES = {"var", "ref", "resource", "resources"}
GRADIENT_NAMES = ("grad", "delta", "updates", "value")
VALUE_NAMES = {"value", "values", "output", "outputs", "is_initialized"}

NOT_TABLED = {
    # Updates that are not of the form "variables, then one value":
    "AssignVariableXlaConcatND": "writes the concatenation of a list of tensors",
    "RngReadAndSkip": "random state",
    "RngSkip": "random state",
    "StatefulRandomBinomial": "random state",
    "StatefulStandardNormal": "random state",
    "StatefulStandardNormalV2": "random state",
    "StatefulTruncatedNormal": "random state",
    "StatefulUniform": "random state",
    "StatefulUniformFullInt": "random state",
    "StatefulUniformInt": "random state",
    # The life of a resource, not its value:
    "DestroyResourceOp": "deletes",
    "DestroyTemporaryVariable": "reads and deletes",
    "DisableCopyOnRead": "changes how the value is held",
    # A `resource` that is no variable:
    "ExperimentalIteratorGetDevice": "iterator",
    "FakeQueue": "queue",
    "IteratorGetDevice": "iterator",
    # Ops of TensorFlow's own unit tests, registered in the wheel:
    "ResourceCreateOp": "test",
    "ResourceInitializedOp": "test",
    "ResourceUsingOp": "test",
}

STATEFUL, COMMUTATIVE, AGGREGATE, UNINITIALIZED_INPUT, DEPRECATED = 1, 2, 4, 8, 16

SECTIONS = {
    "GRAPH_VERSION": ("Consumer", "The version of graphs that this TensorFlow reads."),
    "TYPE": ("Number, Name", "All DataTypes but those of references."),
    "ARG": ("Name, Type, TypeAttr, NumberAttr, TypeListAttr, IsRef", """\
Arguments of all ops, op by op, inputs before outputs. Type is a DataType number, 0 when attributes decide it;
the attribute names are "" when absent."""),
    "LIMIT": ("HasMinimum, Minimum, Types, Strings", """\
What attributes may be, each row once; row 0 is anything. Minimum is of an int, or of the length of a list. Types has bit T
where DataType T is allowed. Strings are separated by |, "" stands for any."""),
    "ATTR": ("Name, Type, HasDefault, Limit, Default", """\
Attributes of all ops, op by op. Type as in OpDef; Limit counts the rows above; Default is an AttrValue in text format on
one line, or ""."""),
    "OP": ("Name, FirstArg, NumInputs, NumOutputs, FirstAttr, NumAttrs, Flags, RemovedIn", """\
RemovedIn is the version of graphs from which on the op is refused, 0: none. FirstArg and FirstAttr count the rows of the sections above from 0. Flags: 1 stateful, 2 commutative, 4 aggregate,
8 allows uninitialized input, 16 deprecated."""),
    "UPDATE": ("OpName, NumVars, Grad, Indices, Kind", """\
Ops that change variables in place. Inputs 0 to NumVars-1 are the variable and its slots, Grad is the input with the
gradient or value, Indices the one with row numbers; -1 when there is none.
Kind: Apply, Assign, AssignAdd, Scatter, StridedSliceAssign, Count."""),
    "READ": ("OpName, Handle", """\
Ops that look at a variable through its handle or reference and leave it alone. Handle counts arguments: all inputs of
the argument are handles where it has a NumberAttr."""),
    "SHARED_NAME": ("OpName", "Ops with an attribute shared_name."),
}


def registered_ops():
    """All OpDefs of the process, sorted by the bytes of their names."""
    ops = op_def_pb2.OpList()
    ops.ParseFromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    return sorted(ops.op, key=lambda op: op.name.encode())


def is_handle(arg):
    return arg.is_ref or arg.type == types_pb2.DT_RESOURCE


def is_variable(arg):
    if arg.name == "input":
        return arg.type == types_pb2.DT_RESOURCE
    return is_handle(arg) and arg.name in VARIABLE_NAMES


def on_variable(op):
    return bool(op.input_arg) and is_variable(op.input_arg[0])


def find_update(op):
    """(number of variables, gradient input, indices input, kind) if `op` is an update, else None."""
    if not on_variable(op):
        return None
    names = [arg.name for arg in op.input_arg]
    attrs = {attr.name for attr in op.attr}
    handles = [is_handle(arg) for arg in op.input_arg]
    num_vars = (handles + [False]).index(False)
    rest = names[num_vars:]

    if names[0] == "var" and {"grad", "delta"} & set(rest):
        kind = "Apply"
    elif rest == ["indices", "updates"]:
        kind = "Scatter"
    elif rest == ["begin", "end", "strides", "value"]:
        kind = "StridedSliceAssign"
    elif rest == ["value"]:
        kind = "Assign" if "validate_shape" in attrs else "AssignAdd"
    elif not rest and "limit" in attrs:
        kind = "Count"
    else:
        return None

    assert not any(handles[num_vars:]), f"{op.name}: a variable after other inputs"
    assert not any(arg.number_attr or arg.type_list_attr for arg in op.input_arg), f"{op.name}: a list input"
    grads = [names.index(name) for name in GRADIENT_NAMES if name in names]
    assert len(grads) == (kind != "Count"), f"{op.name}: {len(grads)} gradient inputs"
    assert (kind == "AssignAdd") == op.name.startswith(("AssignAdd", "AssignSub")), f"{op.name}: {kind}?"
    return num_vars, grads[0] if grads else -1, names.index("indices") if "indices" in names else -1, kind


def is_read(op):
    return (
        on_variable(op)
        and op.name not in NOT_TABLED
        and {arg.name for arg in op.input_arg[1:]} <= {"indices"}
        and bool(op.output_arg)
        and all(arg.name in VALUE_NAMES and not is_handle(arg) for arg in op.output_arg)
    )


def flags(op):
    return (
        STATEFUL * op.is_stateful
        + COMMUTATIVE * op.is_commutative
        + AGGREGATE * op.is_aggregate
        + UNINITIALIZED_INPUT * op.allows_uninitialized_input
        + DEPRECATED * op.HasField("deprecation")
    )


def c_string(text):
    assert text.isascii() and text.isprintable(), repr(text)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def default_text(attr):
    if not attr.HasField("default_value"):
        return ""
    return text_format.MessageToString(attr.default_value, as_one_line=True)


def type_name(value):
    """As TensorFlow's messages and docs have it: `float`, not the `float32` of Python."""
    return value.name.removeprefix("DT_").lower()


# In the order of their numbers; a reference has that of its type and 100 more.
TYPES = sorted((value.number, type_name(value)) for value in types_pb2.DataType.DESCRIPTOR.values if 0 < value.number < 64)
ALL_TYPES = sum(1 << number for number, _ in TYPES)


def limit(attr):
    """The row of section LIMIT that `attr` has."""
    allowed = attr.allowed_values.list
    types = sum(1 << kind for kind in set(allowed.type)) or ALL_TYPES
    strings = [value.decode("ascii") for value in allowed.s]
    assert types < 1 << 64 and not any("|" in value for value in strings), attr.name
    # The text of no string at all is that of one that is empty.
    assert strings != [""] and len(strings) == len(set(strings)), attr.name
    return int(attr.has_minimum), attr.minimum, f"{types:#x}", "|".join(strings)


def table(ops):
    """The rows of each section: lists of tuples, strings not yet quoted."""
    rows = {section: [] for section in SECTIONS}
    limits = {(0, 0, f"{ALL_TYPES:#x}", ""): 0}
    for op in ops:
        rows["OP"].append((op.name, len(rows["ARG"]), len(op.input_arg), len(op.output_arg),
                           len(rows["ATTR"]), len(op.attr), flags(op), op.deprecation.version))
        for arg in [*op.input_arg, *op.output_arg]:
            rows["ARG"].append((arg.name, arg.type, arg.type_attr, arg.number_attr, arg.type_list_attr, int(arg.is_ref)))
        for attr in op.attr:
            row = limits.setdefault(limit(attr), len(limits))
            rows["ATTR"].append((attr.name, attr.type, int(attr.HasField("default_value")), row, default_text(attr)))

        update = find_update(op)
        read = not update and is_read(op)
        if on_variable(op) and bool(update or read) == (op.name in NOT_TABLED):
            sys.exit(f"{op.name} takes a variable; it must be either an update or a read, or in NOT_TABLED")
        if update:
            rows["UPDATE"].append((op.name, *update))
        if read:
            rows["READ"].append((op.name, 0))
        if any(attr.name == "shared_name" for attr in op.attr):
            rows["SHARED_NAME"].append((op.name,))
    rows["LIMIT"] = list(limits)
    rows["TYPE"] = TYPES
    rows["GRAPH_VERSION"] = [(tf.version.GRAPH_DEF_VERSION,)]
    return rows


def render_row(section, row):
    cells = [c_string(cell) if isinstance(cell, str) else str(cell) for cell in row]
    if section == "UPDATE":
        cells[-1] = row[-1]  # the kind is an enumerator, not a string
    if section == "LIMIT":
        cells[2] = row[2]  # a number
    return f"GRAFT_{section}({', '.join(cells)})"


def render(rows):
    lines = [
        f"// Generated by tools/scripts/gen_op_table.py from the op registry of TensorFlow {tf.__version__}. Do not edit.",
        "// Regenerate, in a Python that has TensorFlow: python tools/scripts/gen_op_table.py",
        "//",
        "// Define the macros of the sections that you want, then include this file. It undefines them at the end; the",
        "// sections whose macro is not defined give nothing. Names and defaults are string literals.",
    ]
    for section, (signature, comment) in SECTIONS.items():
        lines += ["", f"// GRAFT_{section}({signature}): {len(rows[section])} rows"]
        lines += [f"// {line}" for line in comment.splitlines()]
        lines += [f"#ifdef GRAFT_{section}"]
        lines += [render_row(section, row) for row in rows[section]]
        lines += [f"#undef GRAFT_{section}", "#endif"]
    return "\n".join(lines) + "\n"


def constants(ops):
    """Ops.h: a constant for each op, so that the name of one that does not exist does not compile."""
    lines = [
        "//===- lib/ops/Ops.h - the names of ops -------------------------*- C++ -*-===//",
        "//",
        "// SPDX-License-Identifier: Apache-2.0",
        "//",
        "// Generated by tools/scripts/gen_op_table.py from the op registry of",
        f"// TensorFlow {tf.__version__}. Do not edit.",
        "//",
        "//===----------------------------------------------------------------------===//",
        "",
        "#ifndef GRAFT_LIB_OPS_OPS_H",
        "#define GRAFT_LIB_OPS_OPS_H",
        "",
        '#include "llvm/ADT/StringRef.h"',
        "",
        "/// A constant for each op of TensorFlow: the name of one that does not exist",
        "/// does not compile. Ops whose names are no identifiers of C++ (`_Arg`) have",
        "/// none.",
        "namespace graft::op {",
        "",
        "// clang-format off",
    ]
    for name in ops:
        if re.fullmatch(r"[A-Z][A-Za-z0-9_]*", name):
            lines.append(f'inline constexpr llvm::StringLiteral {name} = "{name}";')
    lines += ["// clang-format on", "", "} // namespace graft::op", "", "#endif // GRAFT_LIB_OPS_OPS_H", ""]
    return "\n".join(lines)


def main():
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else OUTPUT
    ops = registered_ops()
    (out / "OpTable.inc").write_text(render(table(ops)), encoding="ascii", newline="\n")
    (out / "Ops.h").write_text(constants(sorted(op.name for op in ops)), encoding="ascii", newline="\n")


if __name__ == "__main__":
    main()
