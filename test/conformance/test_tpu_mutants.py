# SPDX-License-Identifier: Apache-2.0
"""Would the comparison of tpu_compare.py notice? Each single fault in a graph of TensorFlow's must be told.

All mutants of all cases take minutes; a default run takes one of each kind in each place that is alike, `--full` all.
"""

import copy

import pytest
import tpu_cases  # noqa: F401  registers its cases
import tpu_cases_host  # noqa: F401
from mutations import Mutation, edit_of, survivors
from tensorflow.core.protobuf.meta_graph_pb2 import MetaGraphDef
from tensorflow.python.framework import op_def_registry
from tpu_build import CASES, CLUSTER, HOST
from tpu_compare import difference

IGNORED = "_has_manual_control_dependencies"
MARKS = (CLUSTER, HOST, "_tpu_input_identity", "_tpu_output_identity", "_pivot_for_cluster", "_tpu_compilation_status")


def altered(attr):
    """Another value of the same kind, or None."""
    kind = attr.WhichOneof("value")
    if kind == "s":
        attr.s += b"1"
    elif kind == "i":
        attr.i += 1
    elif kind == "b":
        attr.b = not attr.b
    elif kind == "type":
        attr.type = 2 if attr.type != 2 else 1
    elif kind == "list" and attr.list.s:
        attr.list.s[0] += b"1"
    elif kind == "list" and attr.list.i:
        attr.list.i[0] += 1
    elif kind == "list" and attr.list.type:
        attr.list.type[0] = 2 if attr.list.type[0] != 2 else 1
    elif kind == "tensor" and attr.tensor.int_val:
        attr.tensor.int_val[0] += 1
    else:
        return None
    return attr


def is_default(node, key):
    definition = op_def_registry.get(node.op)
    of_op = [a for a in definition.attr if a.name == key and a.HasField("default_value")] if definition else []
    return any(a.default_value == node.attr[key] for a in of_op)


def inputs(node):
    data = [i for i, name in enumerate(node.input) if not name.startswith("^")]
    return data, [i for i, name in enumerate(node.input) if name.startswith("^")]


def operand(name, graph):
    """An operand, so that two constants of one value are the same."""
    node = graph.get(name)
    return (node.attr["value"].SerializeToString(), sorted(node.input)) if node and node.op == "Const" else name


def node_mutants(node, graph):
    """(kind, place, edit of that node): `place` is the same for mutants that test the same thing."""
    marks = tuple(key for key in MARKS if key in node.attr)
    place = (node.op, marks)
    for key in sorted(node.attr):
        if key != IGNORED and not is_default(node, key):  # an attribute that is not there has its default
            yield f"drop {key}", place, lambda n, key=key: n.attr.pop(key)
        if key != IGNORED and altered(copy.deepcopy(node.attr[key])) is not None:
            yield f"alter {key}", place, lambda n, key=key: altered(n.attr[key])
    if HOST in node.attr:
        other = b"0" if node.attr[HOST].s != b"0" else b"1"
        yield "another host id", place, lambda n: setattr(n.attr[HOST], "s", other)
    elif CLUSTER in node.attr:
        yield "a host id", place, lambda n: n.attr[HOST].CopyFrom(type(n.attr[CLUSTER])(s=b"0"))
    data, control = inputs(node)
    for a, b in zip(data, data[1:]):
        if operand(node.input[a], graph) != operand(node.input[b], graph):
            yield "swap operands", (*place, a), lambda n, a=a, b=b: swap(n, a, b)
    for i in control:
        yield "drop control edge", (*place, graph[node.input[i][1:]].op), lambda n, i=i: n.input.pop(i)
    for name in ("TPUReplicateMetadata", "x"):
        if name in graph and "^" + name not in node.input and name != node.name:
            yield "add control edge", (*place, name), lambda n, name=name: n.input.append("^" + name)
    yield "change device", place, lambda n: setattr(n, "device", "/device:CPU:7")
    if node.device:
        yield "drop device", place, lambda n: setattr(n, "device", "")


def swap(node, a, b):
    node.input[a], node.input[b] = node.input[b], node.input[a]


def without(program, name):
    """Removes a node. Its readers read its first input, or nothing."""
    data, _ = inputs(program.nodes[name])
    if data:
        program.redirect(name, program.nodes[name].input[data[0]])
    program.delete(name)


def edit_of_function(number, index, change):
    return lambda p: change(p.meta.graph_def.library.function[number].node_def[index])


def faults(graph_def, full, seen):
    """Yields the mutations of a graph; unless `full`, one of each kind and place in `seen`, which all graphs share."""
    graph = {node.name: node for node in graph_def.node}

    def fresh(kind, place):
        new = full or (kind, place) not in seen
        seen.add((kind, place))
        return new

    for node in graph_def.node:
        for kind, place, edit in node_mutants(node, graph):
            if fresh(kind, place):
                yield Mutation(kind, node.name, edit_of(node.name, edit))
        if fresh("drop node", (node.op, tuple(key for key in MARKS if key in node.attr))):
            yield Mutation("drop node", node.name, lambda p, name=node.name: without(p, name))
    for number, function in enumerate(graph_def.library.function):
        for index, node in enumerate(function.node_def):
            for kind, edit in (("drop", lambda n: n.attr.pop(HOST)), ("alter", lambda n: altered(n.attr[HOST]))):
                if HOST in node.attr and fresh(f"{kind} host id in a function", node.op):
                    what = f"{function.signature.name}: {node.name}"
                    yield Mutation(f"{kind} host id", what, edit_of_function(number, index, edit))


def test_graph_is_equal_to_itself():
    """Built twice, and with its nodes in another order and under other names."""
    for name in ("add", "training_step", "host_ops_in_a_branch_and_outside_it", "loop_of_version_1"):
        first, second = CASES[name].graph(tpu=True), CASES[name].graph(tpu=True)
        assert difference(first, second) is None
        for node in second.node:
            if node.op in ("Mul", "AddV2", "TPUReplicatedInput"):
                rename(second, node.name, "other/" + node.name)
        nodes = list(second.node)[::-1]
        del second.node[:]
        second.node.extend(nodes)
        assert difference(first, second) is None


def rename(graph_def, old, new):
    for node in graph_def.node:
        node.name = new if node.name == old else node.name
        for i, read in enumerate(node.input):
            head = "^" if read.startswith("^") else ""
            base, colon, slot = read.lstrip("^").partition(":")
            node.input[i] = head + (new if base == old else base) + colon + slot
        for i, target in enumerate(node.attr["_class"].list.s if "_class" in node.attr else ()):
            if target == f"loc:@{old}".encode():
                node.attr["_class"].list.s[i] = f"loc:@{new}".encode()


def test_every_single_fault_is_told(request):
    full = request.config.getoption("--full")
    seen, missed, made = set(), [], 0
    for name, case in CASES.items():
        meta = MetaGraphDef(graph_def=case.graph(tpu=True))
        differs = lambda mutant, good=meta: difference(good.graph_def, mutant.graph_def) is not None  # noqa: E731
        found, count = survivors(meta, faults(meta.graph_def, full, seen), differs)
        missed += [f"{name}: {what}" for what in found]
        made += count
    print(f"{made - len(missed)} of {made} single faults are told")
    assert not missed, "\n".join([f"{len(missed)} of {made} mutants are equal:", *missed[:30]])
    assert made > 900


@pytest.mark.parametrize("text", ["operands", "control inputs", "attribute _xla_outside_compilation", "device"])
def test_message_names_what_differs(text):
    graph = CASES["host_op"].graph(tpu=True)
    mutant = copy.deepcopy(graph)
    node = next(node for node in mutant.node if node.name == "host/e")
    edits = {
        "operands": lambda: node.input.__setitem__(0, "replicated_input_0"),
        "control inputs": lambda: node.input.append("^replicated_input_0"),
        "attribute _xla_outside_compilation": lambda: setattr(node.attr[HOST], "s", b"1"),
        "device": lambda: setattr(node, "device", "/device:CPU:0"),
    }
    edits[text]()
    found = difference(graph, mutant)
    assert text in found and "host/e" in found, found
