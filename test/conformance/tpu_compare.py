# SPDX-License-Identifier: Apache-2.0
"""Are two GraphDefs the same up to the names of their nodes?

    difference(want, got)       None, or a text that says where they differ first

Compared are ops, devices, all attributes (a default counts as written, a tensor as its value, a function as its body),
data operands in order, control inputs as a set, and what `_class` refers to. Ignored is `_has_manual_control_dependencies`,
which is bookkeeping of TensorFlow's Python. Names count where somebody relies on them: feeds, variables, clusters (in
attributes), pivots, and the shards of an output.

Nodes are coloured by what they are, then again and again by the colours around them, fan-in and fan-out, as long as that
tells more of them apart. What is still alike is tried out, one pair at a time. The mapping that remains is checked edge
for edge, so the answer does not rest on the colouring.
"""

import collections
import re

import tensorflow as tf
from tensorflow.python.framework import op_def_registry

IGNORED = {"_has_manual_control_dependencies"}
KEPT_NAME = re.compile(r"(.*/)?(output_\d+_)?shard_\d+(_\d+)?")


class _Interner:
    """Numbers for values; the same in both graphs."""

    def __init__(self):
        self.ids = {}

    def __call__(self, value):
        return self.ids.setdefault(value, len(self.ids))


class Node:
    """A node by indices: `data` is [(source, slot)] in order, `control` and `colocated` are sets of sources."""

    def __init__(self, index, name, op, device, attrs):
        self.index, self.name, self.op, self.device, self.attrs = index, name, op, device, attrs
        self.data, self.control, self.colocated = [], set(), set()
        self.users = []  # (kind, position, slot, user)

    def kept_name(self):
        shard = self.op in ("Identity", "NoOp") and KEPT_NAME.fullmatch(self.name)
        if shard or "_pivot_for_cluster" in self.attrs or self.op in ("Placeholder", "VarHandleOp"):
            return self.name
        return ""

    def own(self):
        return (self.op, self.device, self.kept_name(), tuple(sorted(self.attrs.items())))

    def sources(self):
        return [("data", p, s, n) for p, (n, s) in enumerate(self.data)] + [
            (kind, 0, "", n) for kind, found in (("control", self.control), ("class", self.colocated)) for n in found
        ]


class Graph:
    def __init__(self, nodes, functions, interner):
        """`nodes` are NodeDefs, `functions` the library by name."""
        self.functions, self.interner, self.nodes, self.by_name = functions, interner, [], {}
        self.bodies = {}  # an attribute that is a function: its body
        for node in nodes:
            attrs = {key: self._attr(value) for key, value in _without_defaults(node) if key != "_class"}
            self.by_name[node.name] = len(self.nodes)
            self.nodes.append(Node(len(self.nodes), node.name, node.op, node.device, attrs))
        for node, found in zip(nodes, self.nodes):
            for name in node.input:
                source, slot = _split_input(name)
                if source not in self.by_name:
                    raise AssertionError(f"node '{node.name}' reads '{name}', which does not exist")
                if slot is None:
                    found.control.add(self.by_name[source])
                else:
                    found.data.append((self.by_name[source], slot))
            literal = []
            for name in node.attr["_class"].list.s if "_class" in node.attr else ():
                target = name.decode().removeprefix("loc:@")
                if target in self.by_name and name.startswith(b"loc:@"):
                    found.colocated.add(self.by_name[target])
                else:
                    literal.append(name)
            if literal:
                found.attrs["_class"] = repr(sorted(literal))
        for node in self.nodes:
            for kind, position, slot, source in node.sources():
                self.nodes[source].users.append((kind, position, slot, node.index))

    def _attr(self, value):
        kind = value.WhichOneof("value")
        if kind == "func":
            return self._function(value.func)
        if kind == "list" and value.list.func:
            return repr([self._function(func) for func in value.list.func])
        if kind == "tensor":
            content = tf.make_ndarray(value.tensor)
            elements = content.tolist() if content.dtype == object else content.tobytes()
            return f"tensor {content.dtype} {content.shape} {elements}"
        return f"{kind} {value.SerializeToString(deterministic=True)}"

    def _function(self, func):
        """A function as its body: a number that is the same for bodies that are alike."""
        attrs = sorted((key, self._attr(value)) for key, value in func.attr.items())
        if func.name not in self.functions:
            return f"function '{func.name}' {attrs}"
        if not isinstance(self.functions[func.name], Graph):
            self.functions[func.name] = function_graph(self.functions[func.name], self.functions, self.interner)
        body = self.functions[func.name]
        text = f"function body {self.interner(tuple(sorted(refine(body)[-1])))} {attrs}"
        self.bodies[text] = body
        return text


def _without_defaults(node):
    definition = op_def_registry.get(node.op)
    defaults = {a.name: a.default_value for a in definition.attr if a.HasField("default_value")} if definition else {}
    for key in sorted(set(node.attr) - IGNORED):
        value = node.attr[key]
        if not (key in defaults and defaults[key] == value) and value.WhichOneof("value"):
            yield key, value


def _split_input(name):
    if name.startswith("^"):
        return name[1:], None
    source, _, slot = name.partition(":")
    return source, slot if slot != "0" else ""


def function_graph(function, functions, interner):
    """A function's body as a graph: arguments and results are nodes that have a number."""
    nodes = []

    def add(name, op, inputs=(), **attrs):
        node = tf.compat.v1.NodeDef(name=name, op=op, input=inputs)
        for key, value in attrs.items():
            node.attr[key].CopyFrom(value)
        nodes.append(node)

    value = tf.compat.v1.AttrValue
    for i, arg in enumerate(function.signature.input_arg):
        attrs = dict(function.arg_attr[i].attr) if i in function.arg_attr else {}
        attrs.pop("_user_specified_name", None)
        add(arg.name, "_Arg", index=value(i=i), T=value(type=arg.type), **attrs)
    nodes.extend(function.node_def)
    for i, arg in enumerate(function.signature.output_arg):
        add(f"{i} result", "_Retval", [function.ret[arg.name]], index=value(i=i), T=value(type=arg.type))
    for i, name in enumerate(function.signature.control_output):
        add(f"{i} control result", "_Retval", ["^" + function.control_ret[name]])
    add("attributes", "_Attributes", **dict(function.attr))
    return Graph(nodes, functions, interner)


def graph_of(graph_def, interner):
    functions = {f.signature.name: f for f in graph_def.library.function}
    return Graph(list(graph_def.node), functions, interner)


def refine(graph, colours=None):
    """The colours of the nodes, round by round, until a round tells no more of them apart."""
    colour = graph.interner
    rounds = [colours or [colour(node.own()) for node in graph.nodes]]
    while True:
        last = rounds[-1]
        rounds.append([colour((last[n.index], _around(n.sources(), last), _around(n.users, last))) for n in graph.nodes])
        if len(set(rounds[-1])) == len(set(last)):
            return rounds


def _around(edges, colours):
    return tuple(sorted((kind, position, slot, colours[n]) for kind, position, slot, n in edges))


def difference(want, got, want_name="TensorFlow", got_name="graft"):
    """None if the GraphDefs are equal up to names; else the first difference, in words."""
    interner = _Interner()
    try:
        a, b = graph_of(want, interner), graph_of(got, interner)
    except AssertionError as error:
        return str(error)
    return _difference(a, b, (want_name, got_name))


def _difference(a, b, names):
    rounds_a, rounds_b = refine(a), refine(b)
    for i, (x, y) in enumerate(zip(rounds_a, rounds_b)):
        if collections.Counter(x) != collections.Counter(y):
            return _explain(a, b, x, y, names, "itself" if i == 0 else f"within {i} edges")
    if len(rounds_a) != len(rounds_b):
        return f"one graph has more structure than the other ({len(rounds_a)} and {len(rounds_b)} rounds)"
    if _match(a, b, rounds_a[-1], rounds_b[-1]) is None:
        return "all nodes have counterparts by what is around them, but no mapping keeps all edges"
    return None


def _match(a, b, x, y):
    """A mapping of the nodes of `a` to those of `b` that keeps everything, or None."""
    classes = collections.defaultdict(list)
    for index, colour in enumerate(x):
        classes[colour].append(index)
    tied = [found for found in classes.values() if len(found) > 1]
    if not tied:
        of = {colour: index for index, colour in enumerate(y)}
        mapping = [of.get(colour) for colour in x]
        return mapping if None not in mapping and _is_mapping(a, b, mapping) else None
    first = min(tied, key=len)[0]
    mark = a.interner(("tried", x[first]))
    for candidate in [index for index, colour in enumerate(y) if colour == x[first]]:
        p = refine(a, [mark if i == first else c for i, c in enumerate(x)])[-1]
        q = refine(b, [mark if i == candidate else c for i, c in enumerate(y)])[-1]
        if collections.Counter(p) == collections.Counter(q):
            found = _match(a, b, p, q)
            if found is not None:
                return found
    return None


def _is_mapping(a, b, mapping):
    if len(set(mapping)) != len(b.nodes):
        return False
    for node in a.nodes:
        other = b.nodes[mapping[node.index]]
        same = (
            node.own() == other.own()
            and [(mapping[n], s) for n, s in node.data] == other.data
            and {mapping[n] for n in node.control} == other.control
            and {mapping[n] for n in node.colocated} == other.colocated
        )
        if not same:
            return False
    return True


# --- Saying what differs. ---


def line(graph, node):
    """A node in one line."""
    inputs = [graph.nodes[n].name + (":" + s if s else "") for n, s in node.data]
    inputs += sorted("^" + graph.nodes[n].name for n in node.control)
    extra = [f"{k}={v[:80]}" for k, v in sorted(node.attrs.items())]
    extra += [f"_class={graph.nodes[n].name}" for n in sorted(node.colocated)]
    return f"{node.name} = {node.op}({', '.join(inputs)}) @{node.device} {' '.join(extra)}"


def _explain(a, b, x, y, names, where):
    too_many = collections.Counter(x) - collections.Counter(y)
    too_few = collections.Counter(y) - collections.Counter(x)
    left = [node for node in a.nodes if x[node.index] in too_many]
    right = [node for node in b.nodes if y[node.index] in too_few]
    out = [f"{len(left)} nodes of {names[0]} and {len(right)} of {names[1]} have no counterpart ({where})"]
    if not left or not right:
        graph, nodes = (a, left) if left else (b, right)
        return "\n".join(out + ["  " + line(graph, node) for node in nodes[:8]])
    node, other = min(((n, m) for n in left[:40] for m in right[:40]), key=lambda pair: _distance(a, b, *pair))
    out += [f"  {names[0]}: {line(a, node)}", f"  {names[1]}: {line(b, other)}"]
    out += ["  " + text for text in _fields(a, b, node, other)]
    for key, value in sorted(node.attrs.items()):
        body, other_body = a.bodies.get(value), b.bodies.get(other.attrs.get(key))
        text = _difference(body, other_body, names) if body and other_body else None
        if text:
            out.append(f"  in the body '{key}': {text}")
            break
    out += [f"  also {names[0]}: {line(a, n)}" for n in left[:12] if n is not node]
    out += [f"  also {names[1]}: {line(b, n)}" for n in right[:12] if n is not other]
    return "\n".join(out)


def _fields(a, b, node, other):
    """In which fields two nodes differ, by the names of their neighbours."""

    def edges(graph, of):
        return [f"{graph.nodes[n].name}:{s}" for n, s in of.data]

    def names_of(graph, found):
        return sorted(graph.nodes[n].name for n in found)

    pairs = {
        "op": (node.op, other.op),
        "device": (node.device, other.device),
        "kept name": (node.kept_name(), other.kept_name()),
        "operands": (edges(a, node), edges(b, other)),
        "control inputs": (names_of(a, node.control), names_of(b, other.control)),
        "_class": (names_of(a, node.colocated), names_of(b, other.colocated)),
    }
    for key in sorted(set(node.attrs) | set(other.attrs)):
        pairs["attribute " + key] = (node.attrs.get(key), other.attrs.get(key))
    users = [sorted(f"{g.nodes[u[3]].name} ({u[0]} {u[1]})" for u in n.users) for g, n in ((a, node), (b, other))]
    pairs["users"] = tuple(users)
    return [f"{key}: {p} / {q}" for key, (p, q) in pairs.items() if p != q]


def _distance(a, b, node, other):
    fields = [text.split(":")[0] for text in _fields(a, b, node, other)]
    same = not set(fields) - {"users"}  # then the difference is at a neighbour, which says more
    far = 10 * (node.op != other.op) + 2 * (node.name != other.name) + 5 * same
    return (far + len(fields), node.index, other.index)

