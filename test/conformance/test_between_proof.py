# SPDX-License-Identifier: Apache-2.0
"""The files of all workers, together, are the step of the input; broken ones are refused.

Mutants are made of every node of every file that workers share or wait by. One that is refused must be so in a line that
names the node and the file, or the worker.
"""

import collections
import json
import os
import random
import re
import subprocess
import tempfile

import compare
import harness
import models_habits
import pytest
from models import Spec
from strategies import SMALL, STRATEGIES
from tensorflow.core.protobuf import meta_graph_pb2

STATEFUL = ("FIFOQueueV2", "QueueEnqueueV2", "QueueDequeueV2", "MutableHashTableV2", "VarHandleOp", "VariableV2", "AssignVariableOp")
UPDATES = ("ResourceApply", "ResourceScatter", "ResourceSparseApply", "Apply", "AssignAdd", "AssignSub")


def written(path, jobs, strategy, *extra):
    """The files of all workers."""
    folder = tempfile.mkdtemp(dir=harness.workdir())
    cluster = os.path.join(folder, "cluster.json")
    with open(cluster, "w") as f:
        json.dump({"cluster": jobs}, f)
    out = os.path.join(folder, "worker-%d.meta")
    flags = ["--mode=between-graph", f"--cluster={cluster}", f"--strategy={strategy}", "--device-type=CPU", *SMALL, *extra]
    harness.run_graft([path, "-o", out, *flags])
    return [out.replace("%d", str(i)) for i in range(len(jobs["worker"]))]


def rewrite(path, workers, servers, strategy, *extra):
    jobs = {"worker": [f"a:{i + 1}" for i in range(workers)]}
    if servers:
        jobs["ps"] = [f"b:{i + 1}" for i in range(servers)]
    return written(path, jobs, strategy, *extra)


def certify(files, path):
    return subprocess.run([harness.graft_opt(), "--certify", *files, f"--against={path}"], capture_output=True, text=True)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("workers,servers,local", [(2, 1, 1), (3, 2, 1), (2, 0, 2), (3, 1, 2)])
def test_accepted(strategy, workers, servers, local):
    """The written files are accepted, in any order."""
    for model in ("mlp_adam", "mlp_clip", "embedding", "cnn_nobn", "adamw_assign"):
        for kind in ("resource", "ref"):
            path = harness.export(Spec(model, kind))
            files = rewrite(path, workers, servers, strategy, f"--replicas={local}")
            for order in (files, files[::-1]):
                ran = certify(order, path)
                assert (ran.returncode, ran.stderr) == (0, ""), (model, kind)


@pytest.mark.parametrize("kind", ["resource", "ref"])
@pytest.mark.parametrize("strategy", ["ps", "auto", "parallax"])
def test_proxies(strategy, kind):
    """A proxy is a resource that each replica has, of a variable that may be a reference."""
    path = harness.export(Spec("embedding", kind))
    files = rewrite(path, 2, 1, strategy, "--replicas=2", "--local-replication")
    assert (certify(files, path).returncode, certify(files, path).stderr) == (0, "")


def mutants(node):
    """The edits that make a copy of a node wrong, by a word."""
    scope = node.name.split("/")[0]

    def name(n):
        n.attr["shared_name"].s = b"" if n.op != "VariableV2" else b"other"

    def task(n):
        n.device = re.sub("task:[0-9]+", "task:7", n.device)

    def key(n):
        n.input[1] = f"{scope}/zero"

    def fewer(n):
        n.attr["N"].i -= 1
        del n.input[n.attr["N"].i]

    def stamp(n):
        del n.attr["_graft_part"]

    def count(n):
        tensor = n.attr["value"].tensor
        tensor.tensor_content = bytes([tensor.tensor_content[0] ^ 1]) + tensor.tensor_content[1:]

    def wait(n):
        del n.input[-1]

    if node.op in ("FIFOQueueV2", "MutableHashTableV2", "VarHandleOp"):
        yield "shared_name made private", name
    if node.op == "VariableV2":
        yield "private name shared", name
    if node.op in STATEFUL and "task:" in node.device:
        yield "device of another task", task
    if node.op == "QueueEnqueueV2" and node.input[1] != f"{scope}/zero":
        yield "key of a message", key
    if node.op == "AddN" and node.attr["N"].i > 1:
        yield "one addend less", fewer
    if "_graft_part" in node.attr and node.attr["_graft_part"].s in (b"number", b"put", b"get", b"name", b"step"):
        yield "stamp", stamp
    if node.op == "Const" and scope == "between" and len(node.attr["value"].tensor.tensor_content) in (4, 8):
        yield "constant of the exchange", count
    # A step that does not wait for the check of rows is the same step.
    if node.input and node.input[-1].startswith("^") and "_rows/" not in node.input[-1] and (
        node.name.endswith("all_given") or node.op in UPDATES or (scope == "between" and node.op != "NoOp")
    ):
        yield "token or wait missing", wait


@pytest.mark.parametrize("strategy,workers", [("ps", 2), ("all-reduce", 2), ("partitioned-ps", 3), ("parallax", 3)])
def test_mutants(strategy, workers, request):
    path = harness.export(Spec("embedding" if strategy == "parallax" else "mlp_adam", "resource"))
    files = rewrite(path, workers, 1, strategy)
    read = []
    for file in files:
        with open(file, "rb") as f:
            read.append(meta_graph_pb2.MetaGraphDef.FromString(f.read()))
    cases = [(i, k, word, edit) for i, m in enumerate(read) for k, n in enumerate(m.graph_def.node) for word, edit in mutants(n)]
    if not request.config.getoption("--full"):
        cases = random.Random(7).sample(cases, 300)
    mutant, wrong, seen = files[0] + ".mutant", [], collections.Counter()
    for i, k, word, edit in cases:
        broken = meta_graph_pb2.MetaGraphDef()
        broken.CopyFrom(read[i])
        edit(broken.graph_def.node[k])
        with open(mutant, "wb") as f:
            f.write(broken.SerializeToString(deterministic=True))
        ran = certify([*files[:i], mutant, *files[i + 1 :]], path)
        line = next((each for each in ran.stderr.splitlines() if "error:" in each), "")
        seen[word] += 1
        if ran.returncode != 1 or not ("node '" in line or "worker" in line or "files" in line):
            wrong.append((i, broken.graph_def.node[k].name, word, ran.returncode, line))
    assert not wrong, wrong
    assert len(seen) >= 6, seen


def test_what_is_kept_on_a_server(tmp_path):
    """The function that asks the chief is in the library as it must be, what is kept about runs is on no other worker, and a
    run of the chief says that there was one."""
    path = harness.export(Spec("mlp_adam", "resource"))
    files = rewrite(path, 2, 1, "ps")
    nodes = {n.name: n for n in harness.read_meta(files[1]).graph_def.node}
    run, work = set(), ["train_op", "loss"]
    while work:
        name = work.pop().lstrip("^").split(":")[0]
        if name not in run:
            run.add(name)
            work += nodes[name].input
    assert not [n for n in run if nodes[n].device.startswith("/job:worker/task:0")], "a task more in a run"

    def refused(edit, which=(1,)):
        broken = list(files)
        for i in which:
            meta = harness.read_meta(files[i])
            edit(meta.graph_def)
            broken[i] = str(tmp_path / f"broken-{i}.meta")
            with open(broken[i], "wb") as f:
                f.write(meta.SerializeToString())
        ran = certify(broken, path)
        return ran.returncode == 1 and ("between" in ran.stderr or "train_op" in ran.stderr)

    def table(graph):
        graph.library.function[0].node_def[0].attr["shared_name"].s = b"between/runs"

    def op(graph):
        graph.library.function[0].node_def[-1].op = "LookupTableRemoveV2"

    def gone(graph):
        del graph.library.function[:]

    def other(graph):
        next(n for n in graph.node if n.op == "RemoteCall").attr["f"].func.name = "another"

    def unasked(graph):
        for n in graph.node:
            if n.name.endswith("/check") and n.op == "Assert" and n.input[-1].endswith("/either"):
                del n.input[-1]

    def moved(graph):
        for n in graph.node:
            if n.name.startswith("between/") and b"_graft_part" not in n.attr:
                n.device = n.device.replace("/job:ps/task:0", "/job:worker/task:1")

    def unsaid(graph):
        for n in graph.node:
            if "^between/own_begin" in n.input:
                n.input.remove("^between/own_begin")

    assert all(refused(edit) for edit in (table, op, gone, other, unasked))
    assert refused(moved, (0, 1)) and refused(unsaid, (0,))
    assert certify(files, path).returncode == 0


def test_copies_are_read_by_a_function(tmp_path):
    """The values that a restarted worker takes from the chief are no edge between tasks, and are of the variable that it is
    a copy of."""
    path = harness.export(Spec("mlp_adam", "resource"))
    files = rewrite(path, 2, 0, "all-reduce")
    meta = harness.read_meta(files[1])
    nodes = {n.name: n for n in meta.graph_def.node}
    assert "between/refresh/value" not in nodes and nodes["between/refresh/values"].op == "RemoteCall"

    def refused(edit):
        meta = harness.read_meta(files[1])
        edit(meta.graph_def, next(f for f in meta.graph_def.library.function if len(f.signature.output_arg) > 2))
        broken = str(tmp_path / "broken.meta")
        with open(broken, "wb") as f:
            f.write(meta.SerializeToString())
        ran = certify([files[0], broken], path)
        return ran.returncode == 1 and "in the file of worker 1" in ran.stderr

    def variable(graph, f):
        f.node_def[0].attr["shared_name"].s = f.node_def[2].attr["shared_name"].s

    def crossed(graph, f):
        a, b = (n for n in graph.node if n.name in ("between/refresh/copy", "between/refresh/copy_1"))
        a.input[1], b.input[1] = b.input[1], a.input[1]

    def writes(graph, f):
        f.node_def.add(name="more", op="AssignAddVariableOp", input=["variable_0:resource:0", "read_0:value:0"])
        f.node_def[-1].attr["dtype"].type = f.node_def[0].attr["dtype"].type
        f.control_ret["more"] = "more"

    def gone(graph, f):
        del graph.library.function[:]

    def there(graph, f):
        where = next(n for n in graph.node if n.name == "between/refresh/values/where")
        where.attr["value"].tensor.string_val[0] = b"/job:worker/replica:0/task:1/device:CPU:0"

    assert all(refused(edit) for edit in (variable, crossed, writes, gone, there))
    ran = certify(files, path)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_when_a_session_may_be_prepared(tmp_path):
    """A node that claims to ask variables does nothing else, and no step waits for it."""
    path = harness.export(Spec("mlp_adam", "resource"))
    files = rewrite(path, 2, 0, "all-reduce")
    name = "graft/ready_for_local_init_op"
    for file in files:
        assert list(harness.read_meta(file).collection_def["ready_for_local_init_op"].node_list.value) == [name + ":0"]

    def refused(edit):
        meta = harness.read_meta(files[1])
        edit({node.name: node for node in meta.graph_def.node})
        broken = str(tmp_path / "broken.meta")
        with open(broken, "wb") as f:
            f.write(meta.SerializeToString())
        ran = certify([files[0], broken], path)
        return ran.returncode == 1 and name in ran.stderr

    def waits(nodes):
        nodes["replica_1/loss"].input.append("^" + name)

    def runs(nodes):
        nodes[name + "/names"].input.append("^init")

    def other(nodes):
        nodes[name + "/where"].op = "Unique"

    assert refused(waits) and refused(runs) and refused(other)
    ran = certify(files, path)
    assert (ran.returncode, ran.stderr) == (0, "")


def crossing(meta, name):
    """The tensors that a run of a name sends from task to task."""
    nodes, seen, work, found = {n.name: n for n in meta.graph_def.node}, set(), [name], set()
    task = lambda node: re.sub("/device:.*", "", node.device)
    while work:
        node = nodes[work.pop()]
        if node.name in seen:
            continue
        seen.add(node.name)
        for source in node.input:
            origin = nodes[source.lstrip("^").split(":")[0]]
            work.append(origin.name)
            if task(origin) != task(node):
                found.add((source, task(node)))
    return found


@pytest.mark.parametrize("model,to_chief", [("linear", 4), ("mlp_adam", 6)])
def test_what_crosses_tasks(model, to_chief):
    """A step of a worker with copies of variables sends four tensors and ends to the chief's task and three from there,
    however many variables there are: its gradients, the number of its rows, the end of its updates and
    whether it was killed; the number of the run, the sums, and the end. The powers of Adam's betas can be fetched
    alone, so that they end alone."""
    meta = harness.read_meta(rewrite(harness.export(Spec(model, "resource")), 2, 0, "all-reduce")[1])
    found = crossing(meta, "train_op")
    assert collections.Counter(to for _, to in found) == {"/job:worker/task:0": to_chief, "/job:worker/task:1": 3}, found
    # A runtime puts a Switch where its data is made, and removes an Identity between tasks.
    nodes = {n.name: n for n in meta.graph_def.node}
    for node in meta.graph_def.node:
        if node.op == "Switch" and "/refresh" in node.name:
            assert nodes[node.input[0].split(":")[0]].device == node.device


def test_a_copy_is_read_when_it_is_right(tmp_path):
    """That the chief has begun the run is not enough for a copy, which a run that was cut short may have written."""
    path = harness.export(Spec("mlp_adam", "resource"))
    files = rewrite(path, 2, 0, "all-reduce")
    meta = harness.read_meta(files[1])
    read = next(n for n in meta.graph_def.node if n.op == "ReadVariableOp" and "^between/refresh/either" in n.input)
    kept = [i.replace("^between/refresh/either", "^between/joins") for i in read.input]
    del read.input[:]
    read.input.extend(kept)
    early = tmp_path / "early.meta"
    early.write_bytes(meta.SerializeToString())
    ran = certify([files[0], str(early)], path)
    assert ran.returncode == 1 and f"node '{read.name}'" in ran.stderr and "may read a variable before" in ran.stderr, ran.stderr


def test_only_a_name_that_writes_copies_sets_them_right():
    """A loss that is fetched with the step would undo the step, where it takes a message of its own."""
    path = compare.export(Spec("loss_weighted"), models_habits.HABITS["loss_weighted"].build)
    for file in rewrite(path, 2, 0, "all-reduce")[1:]:
        names = [node.name for node in harness.read_meta(file).graph_def.node]
        assert len([name for name in names if re.fullmatch(r"between/refresh_name_\d+", name)]) == 1
