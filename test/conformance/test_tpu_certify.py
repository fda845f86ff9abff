# SPDX-License-Identifier: Apache-2.0
"""graft certifies what --strategy=tpu writes, and nothing that was broken by hand.

Every model of test_tpu_strategy.py, and files of a few with one fault each: an input of another replica, a sum that
is missing or of other replicas, another factor, a copy of a variable that is set otherwise, an op that is in the
computation no more, and so on. What is certified computes the step: test_tpu_strategy.py runs these files.
"""

import copy
import os

import compare
import harness
import models
import pytest
import tensorflow as tf
from models import BATCH, Spec
from models_batches import SOURCES
from models_bn import EXACT, FUSED
from models_functions import BRANCHES, FUNCTIONS
from models_habits import HABITS, NOT_FOR_TPU
from models_loops import LOOPS

tf1 = tf.compat.v1

MORE = {**HABITS, **LOOPS, **BRANCHES, **FUNCTIONS, **EXACT, **FUSED}
# The samples of a TPU are not known; with one replica, graft does not check the divisors of a fed number.
DRAWS = ("dropout",)
OF_NONE = ("fed_rows",)


def form(path, replicas, *flags, check=True):
    """The TPU form of `path`, which graft has looked at itself, and what it said."""
    out = path.replace(".meta", f"-tpu-{replicas}.meta")
    done = harness.run_graft(
        [path, "-o", out, f"--replicas={replicas}", "--strategy=tpu", "--verify-output", *flags], check=check
    )
    return out, done


def certify(out, path):
    return harness.run_graft(["--certify", out, f"--against={path}"], check=False)


def check(path, replicas, *flags):
    out, _ = form(path, replicas, *flags)
    done = certify(out, path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("batch", [None, BATCH], ids=["unknown", "static"])
@pytest.mark.parametrize("replicas", [1, 2, 4])
@pytest.mark.parametrize("model", [name for name in models.MATRIX])
def test_models(model, replicas, batch):
    check(harness.export(Spec(model, "resource", batch, "mean")), replicas)


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("model", [m for m in MORE if m not in (*DRAWS, *NOT_FOR_TPU, "gan")])
def test_more_models(model, replicas):
    if replicas == 1 and model in OF_NONE:
        pytest.skip("not certified")
    check(compare.export(Spec(model, "resource"), MORE[model].build), replicas, *MORE[model].flags)


@pytest.mark.parametrize("batch", [None, BATCH], ids=["unknown", "static"])
@pytest.mark.parametrize("model", ["sparse_feed", "sparse_machine", "sparse_fields"])
def test_sparse_feeds(model, batch):
    check(compare.export(Spec(model, "resource", batch), SOURCES[model].build), 2)


def test_draws_are_refused():
    path = compare.export(Spec("dropout", "resource"), HABITS["dropout"].build)
    _, done = form(path, 2, *HABITS["dropout"].flags, check=False)
    assert done.returncode == 1 and "the replicas of a TPU may draw the same numbers" in done.stderr, done.stderr


# --- Faults. ---

CLUSTER, HOST = "_tpu_replicate", "_xla_outside_compilation"
# The step stays the same if a TPU leaves a node out, runs it elsewhere, or in another order.
NO_VALUES = {
    "TPUReplicateMetadata": {
        "allow_soft_placement", "num_cores_per_replica", "step_marker_location", "topology", "use_tpu",
        "use_spmd_for_xla_partitioning",
    },
    "TPUReplicatedInput": {"index"},
    "TPUCompilationResult": {"_tpu_compilation_status"},
}  # fmt: skip
HINTS = {
    "_class", "_output_shapes", "_has_manual_control_dependencies", "_tpu_input_identity", "_tpu_output_identity",
    "_graft_origin", "debug_name", "parallel_iterations", HOST,
}  # fmt: skip


def altered(attr):
    """Returns true if another value of the same kind was set."""
    kind = attr.WhichOneof("value")
    if kind == "s":
        attr.s += b"1"
    elif kind == "i":
        attr.i += 1
    elif kind == "b":
        attr.b = not attr.b
    elif kind == "f":
        attr.f += 1
    elif kind == "type":
        attr.type = 2 if attr.type != 2 else 1
    elif kind == "tensor" and attr.tensor.int_val:
        attr.tensor.int_val[0] += 1
    elif kind == "tensor" and attr.tensor.float_val:
        attr.tensor.float_val[0] *= 2
    elif kind == "tensor" and len(attr.tensor.tensor_content) >= 4:
        attr.tensor.tensor_content = bytes([attr.tensor.tensor_content[0] ^ 1]) + attr.tensor.tensor_content[1:]
    else:
        return False
    return True


def split_inputs(node):
    data = [i for i, name in enumerate(node.input) if not name.startswith("^")]
    return data, [i for i, name in enumerate(node.input) if name.startswith("^")]


def source(text):
    return text.lstrip("^").partition(":")[0]


def swap(node, a, b):
    node.input[a], node.input[b] = node.input[b], node.input[a]


def read_port(node, i, port):
    node.input[i] = f"{source(node.input[i])}:{port}"


def faults(graph):
    """(what, edit of the graph)"""
    nodes = {node.name: node for node in graph.node}
    users = {}
    read_names = {source(text) for node in graph.node for text in node.input if not text.startswith("^")}
    for node in graph.node:
        for text in node.input:
            users.setdefault(source(text), []).append(node.name)

    def of(name, edit):
        return lambda mutant: edit(next(node for node in mutant.node if node.name == name))

    def without(name):
        """Its users read its first input."""

        def edit(mutant):
            gone = next(node for node in mutant.node if node.name == name)
            for node in mutant.node:
                for i, text in enumerate(node.input):
                    if text == name:
                        node.input[i] = gone.input[0]

        return edit

    def same_value(a, b):
        a, b = (nodes[source(text)] for text in (a, b))
        return a.op == b.op == "Const" and a.attr["value"] == b.attr["value"]

    def stays(node):
        """It passes on a tensor of the computation, and each of these waits for the computation."""
        return node.op == "Identity" and any(nodes[source(i)].op == "TPUReplicatedOutput" for i in node.input)

    variables = [node.name for node in graph.node if node.op == "TPUReplicatedInput" and node.attr["T"].type == 20]
    for node in graph.node:
        name, op = node.name, node.op
        data, control = split_inputs(node)
        member = CLUSTER in node.attr
        for key in sorted(node.attr):
            if key in HINTS or key in NO_VALUES.get(op, ()) or not altered(copy.deepcopy(node.attr[key])):
                continue
            # A variable may have any name that no other has.
            if (op, key) == ("VarHandleOp", "shared_name") and "/replica_1" in name:
                continue
            # The numbers of the replicas are looked at as such, whoever wrote them.
            if (name, key) == ("graft/replica_index", "_graft_replicas"):
                continue
            yield f"alter {key} of {name} ({op})", of(name, lambda n, key=key: altered(n.attr[key]))
        commutes = op in ("Mul", "AddV2", "Add", "AddN", "Equal", "Maximum", "Minimum", "BroadcastGradientArgs")
        for a, b in zip(data, data[1:]):
            if node.input[a] != node.input[b] and not same_value(node.input[a], node.input[b]):
                if not (commutes and not member):
                    yield f"swap inputs {a} of {name} ({op})", of(name, lambda n, a=a, b=b: swap(n, a, b))
        if op == "TPUReplicatedInput":
            yield f"one input twice in {name}", of(name, lambda n: n.input.__setitem__(1, n.input[0]))
            yield f"an input less in {name}", of(name, lambda n: n.input.pop(0))
            yield f"packed {name}", of(name, lambda n: setattr(n.attr["is_packed"], "b", True))
            if name in variables and len(variables) > 1:
                other = nodes[next(v for v in variables if v != name)].input[1]
                yield f"a copy of another variable in {name}", of(name, lambda n, o=other: n.input.__setitem__(1, o))
        if op == "CrossReplicaSum":
            yield f"no {name}", without(name)
        if op in ("Mul", "FloorDiv") and "_graft_replicas" in node.attr:
            yield f"no {name}", without(name)
        if op == "TPUReplicatedOutput":
            others = [n.name for n in graph.node if n.op == "Identity" and "_tpu_output_identity" in n.attr]
            other = next((o for o in others if o != node.input[0]), None)
            if other:
                yield f"another tensor in {name}", of(name, lambda n, o=other: n.input.__setitem__(0, o))
        if member and op != "TPUReplicateMetadata":
            yield f"{name} is outside ({op})", of(name, lambda n: n.attr.pop(CLUSTER))
            yield f"{name} is in another one ({op})", of(name, lambda n: setattr(n.attr[CLUSTER], "s", b"other"))
        # A function of constants that only the computation reads may as well be inside.
        alone = all(CLUSTER in nodes[user].attr for user in users.get(name, ())) and op in ("Reshape", "Fill", "Cast")
        border = op in ("TPUReplicatedInput", "TPUReplicatedOutput")
        if not member and not border and data and name in users and not alone:
            yield f"{name} is inside ({op})", of(name, lambda n: setattr(n.attr[CLUSTER], "s", b"cluster"))
        for i in data:
            read = nodes[source(node.input[i])]
            # A tensor of a replica that nothing takes may be any.
            takes = op in ("Identity", "TPUReplicatedInput") and name in read_names
            if read.op in ("Split", "TPUReplicatedOutput") and takes:
                port = (int(node.input[i].partition(":")[2] or 0) + 1) % 2
                yield f"port {port} in {name} ({op})", of(name, lambda n, i=i, port=port: read_port(n, i, port))
        assigns = op.startswith(("AssignVariable", "ResourceApply"))
        for i in control:
            read = nodes[source(node.input[i])]
            if (op == "NoOp" or assigns) and read.op != "TPUReplicateMetadata" and not stays(read):
                yield f"{name} does not wait for {read.name}", of(name, lambda n, i=i: n.input.pop(i))
        if op == "VarHandleOp" and f"{name}/handle" in nodes:
            yield f"device of {name}", of(name, lambda n: setattr(n, "device", "/device:TPU:7"))
    yield "padding", of("TPUReplicateMetadata", lambda n: n.attr["padding_map"].list.s.append(b"1"))
    yield "train_op does not wait", of("train_op", lambda n: n.ClearField("input"))

    def only_value(mutant):
        for node in mutant.node:
            if stays(node):
                del node.input[1:]

    yield "train_op waits for one tensor of each replica", only_value
    yield "init runs the step", of("init", lambda n: n.input.append("^output_0_shard_0"))


@pytest.mark.parametrize("model", ["linear", "embedding", "mlp_clip"])
def test_no_fault_is_certified(model, request):
    path = harness.export(Spec(model, "resource", None, "mean"))
    out, _ = form(path, 2)
    meta = harness.read_meta(out)
    total, missed = 0, []
    step = 1 if request.config.getoption("--full") or model == "linear" else 6
    for what, edit in list(faults(meta.graph_def))[::step]:
        mutant = copy.deepcopy(meta)
        edit(mutant.graph_def)
        if mutant == meta:
            continue
        broken = out.replace(".meta", "-broken.meta")
        with open(broken, "wb") as file:
            file.write(mutant.SerializeToString(deterministic=True))
        total += 1
        done = certify(broken, path)
        assert done.returncode in (0, 1), f"{what}: {done.stderr}"
        if done.returncode == 0:
            missed.append(what)
        else:
            assert "error: " in done.stderr, f"{what}: {done.stderr}"
        os.remove(broken)
    print(f"{model}: {total - len(missed)} of {total} faults are refused")
    assert not missed, "\n".join(missed)
    assert total > 100
