# SPDX-License-Identifier: Apache-2.0
"""Makes a graph that fails small: first the plan (fewer genes, a plainer head, fewer options), then the GraphDef.

What is small still fails in the same way: the input runs on one device, and graft's output has the same kind of verdict.
"""

import copy
import dataclasses
import os
import shlex
import subprocess
import tempfile
import time

import genes
import numpy as np
import options
import running
import tensorflow.compat.v2 as tf
from google.protobuf import text_format
from running import tf1

LIMIT = 240  # seconds for each of the two parts


class Failure:
    """The same kind of verdict, with these flags and this change of the output."""

    def __init__(self, kind, folder, change=None):
        self.kind, self.folder, self.change, self.tries = kind, folder, change, 0

    def verdict(self, built, flags):
        """The verdict if it is the same kind, else None."""
        self.tries += 1
        try:
            reference = running.Reference(built)
        except Exception:  # what does not run, or does not load, is no input
            return None
        try:
            if not running.finite(reference.rows):
                return None
            verdict = running.judge(built, reference, flags, self.folder, self.change)
        finally:
            reference.close()
        return verdict if verdict.kind == self.kind else None

    def of_plan(self, plan, flags):
        try:
            return self.verdict(genes.build(plan), flags)
        except genes.Illegal:
            return None


def small_plan(plan, flags, failure, say):
    """Leaves out genes and options, and makes the head plain, as long as it fails."""
    end = time.time() + LIMIT
    changed = True
    while changed and time.time() < end:
        changed = False
        for i in reversed(range(len(plan.genes))):
            if time.time() > end:
                break
            less = dataclasses.replace(plan, genes=plan.genes[:i] + plan.genes[i + 1 :])
            if failure.of_plan(less, flags):
                plan, changed = less, True
        for key, value in (("shuffle", False), ("scope", ""), ("source", "feed"), ("variables", "resource"),
                           ("static", False), ("sizes", "any"), ("half", ""), ("empty", False), ("odd", False), ("dtype", "float64"), ("rows", 1), ("rows", 2)):  # fmt: skip
            if plan.head.get(key, value) != value and not (key == "rows" and plan.head["rows"] < value):
                plainer = dataclasses.replace(plan, head={**plan.head, key: value})
                if failure.of_plan(plainer, flags):
                    plan, changed = plainer, True
        for i in reversed(range(len(flags))):
            # Without a device the failure is another one: there is none of the kind that is written then.
            if not flags[i].startswith(("--replicas", "--device-type")) and failure.of_plan(plan, flags[:i] + flags[i + 1 :]):
                flags, changed = flags[:i] + flags[i + 1 :], True
        if plan.head["replicas"] > 2:
            fewer = dataclasses.replace(plan, head={**plan.head, "replicas": 2})
            two = ["--replicas=2" if f.startswith("--replicas") else f for f in flags]
            if failure.of_plan(fewer, two):
                plan, flags, changed = fewer, two, True
    say(f"{len(plan.genes)} genes: {', '.join(kind for _, kind, _ in plan.genes)}")
    return plan, flags


# --- The GraphDef. ---


def source_of(text):
    return text.lstrip("^").partition(":")[0]


def prune(built):
    """Without what the steps, the initializers and the probes do not need."""
    nodes = {n.name: n for n in built.meta.graph_def.node}
    variables = {n: t for n, t in built.variables.items() if n in nodes and source_of(t) in nodes}
    probes = [p for p in built.probes if source_of(p) in nodes]
    seen, queue = set(), ["init", *built.trains, *map(source_of, probes)]
    if built.saver:
        queue += [source_of(built.saver.file), built.saver.save, built.saver.restore]
    if not built.trains:
        queue += [source_of(t) for t in variables.values()]

    def reach():
        while queue:
            name = queue.pop()
            if name not in seen:
                seen.add(name)
                queue.extend(source_of(i) for i in nodes[name].input)

    init = nodes["init"]
    kept = list(init.input)
    del init.input[:]
    reach()
    # An initializer is there for what the rest uses.
    waiting = True
    while waiting:
        waiting = False
        for text in kept:
            name = source_of(text)
            if name not in seen and needed(nodes, name, seen):
                queue.append(name)
                waiting = True
        reach()
    init.input.extend(t for t in kept if source_of(t) in seen)
    variables = {n: t for n, t in variables.items() if n in seen}
    queue += [source_of(t) for t in variables.values()]
    reach()
    meta = tf1.MetaGraphDef()
    meta.meta_info_def.CopyFrom(built.meta.meta_info_def)
    meta.graph_def.versions.CopyFrom(built.meta.graph_def.versions)
    meta.graph_def.library.CopyFrom(built.meta.graph_def.library)
    meta.graph_def.node.extend(n for n in built.meta.graph_def.node if n.name in seen)
    for node in meta.graph_def.node:
        if any(c.decode()[len("loc:@") :] not in seen for c in node.attr["_class"].list.s):
            del node.attr["_class"]
        elif not node.attr["_class"].list.s:
            del node.attr["_class"]
    for key, collection in built.meta.collection_def.items():
        if collection.HasField("bytes_list") and "variables" in key:
            from tensorflow.core.framework import variable_pb2

            values = []
            for value in collection.bytes_list.value:
                d = variable_pb2.VariableDef.FromString(value)
                names = [d.variable_name, d.initializer_name, d.snapshot_name, d.initial_value_name]
                if all(source_of(n) in seen for n in names if n):
                    values.append(value)
            if values:
                meta.collection_def[key].bytes_list.value.extend(values)
        elif collection.HasField("node_list"):
            values = [v for v in collection.node_list.value if source_of(v) in seen]
            if values:
                meta.collection_def[key].node_list.value.extend(values)
    feeds = [{n: v for n, v in f.items() if source_of(n) in seen} for f in built.feeds]
    return dataclasses.replace(built, meta=meta, variables=variables, probes=probes, feeds=feeds, plan=None)


def needed(nodes, start, seen):
    """Does what the initializer writes belong to what is used? It writes its first operand."""
    node = nodes[start]
    if node.op == "NoOp":
        return any(needed(nodes, source_of(i), seen) for i in node.input)
    return bool(node.input) and source_of(node.input[0]) in seen


def copied(built):
    return dataclasses.replace(built, meta=copy.deepcopy(built.meta), feeds=[dict(f) for f in built.feeds])


def without_grouping(built):
    """Nodes that only group are replaced by what they group, so that updates go one by one."""
    result = copied(built)
    nodes = {n.name: n for n in result.meta.graph_def.node}
    for train in result.trains:
        node, done = nodes[train], False
        while not done:
            done, inputs = True, []
            for text in node.input:
                inner = nodes[source_of(text)]
                if inner.op == "NoOp":
                    inputs.extend(inner.input)
                    done = False
                else:
                    inputs.append(text)
            del node.input[:]
            node.input.extend(dict.fromkeys(inputs))
    return result


def plain(built):
    """Without attributes that no kernel reads."""
    result = copied(built)
    for node in result.meta.graph_def.node:
        for key in [key for key in node.attr if key.startswith("_")]:
            del node.attr[key]
    return result


def small_graph(built, flags, failure, say):
    end = time.time() + LIMIT
    best = built

    def attempt(candidate):
        nonlocal best
        if time.time() > end:
            return False
        try:
            candidate = prune(candidate)
        except KeyError:
            return False
        if failure.verdict(candidate, flags):
            best = candidate
            return True
        return False

    verdict = failure.verdict(best, flags)
    if verdict is None:
        return best
    attempt(dataclasses.replace(copied(best), probes=[]))
    if best.saver:
        attempt(dataclasses.replace(copied(best), saver=None))
    if best.probes:
        if verdict.where in best.probes:
            attempt(dataclasses.replace(copied(best), probes=[verdict.where], trains=[]))
        if len(best.probes) > 1 and verdict.where in best.probes:
            attempt(dataclasses.replace(copied(best), probes=[verdict.where]))
    for train in list(best.trains):
        if len(best.trains) > 1:
            attempt(dataclasses.replace(copied(best), trains=[t for t in best.trains if t != train]))
    if len(best.feeds) > 1:
        attempt(dataclasses.replace(copied(best), feeds=best.feeds[:1]))
    attempt(without_grouping(best))
    attempt(plain(best))
    again, size = True, None
    while again and time.time() < end:
        again = False
        size = len(best.meta.graph_def.node)
        for name in [n.name for n in reversed(best.meta.graph_def.node)]:
            if time.time() > end:
                break
            nodes = {n.name: n for n in best.meta.graph_def.node}
            if name not in nodes or name == "init":
                continue
            if any(attempt(c) for c in simpler(best, name)):
                continue
        again = len(best.meta.graph_def.node) < size
    say(f"{len(best.meta.graph_def.node)} nodes after {failure.tries} tries")
    return best


def simpler(built, name):
    """Graphs without the node: an operand instead, or a constant or a feed with its value; or without one of its edges."""
    node = next(n for n in built.meta.graph_def.node if n.name == name)
    for i, text in reversed(list(enumerate(node.input))):
        if text.startswith("^"):
            result = copied(built)
            del next(n for n in result.meta.graph_def.node if n.name == name).input[i]
            yield result
    if node.op in ("Const", "Placeholder", "VarHandleOp", "VariableV2", "NoOp", "ReadVariableOp"):
        return
    if any(name == source_of(t) for t in [*built.variables.values(), *built.probes]):
        return
    graph = tf.Graph()
    try:
        with graph.as_default():
            tf1.import_graph_def(built.meta.graph_def, name="")
        op = graph.get_operation_by_name(name)
    except (ValueError, KeyError):
        return
    if not op.outputs:
        return
    used = {i for n in built.meta.graph_def.node for i in n.input if source_of(i) == name and not i.startswith("^")}
    if len(op.outputs) == 1 or used <= {name}:
        out = op.outputs[0]
        for operand in op.inputs:
            if operand.dtype == out.dtype and operand.shape.as_list() == out.shape.as_list() if (
                operand.shape.rank is not None and out.shape.rank is not None) else False:
                yield rewired(built, {name: operand.name.removesuffix(":0")})
    try:
        with running.Running(built.meta.graph_def, 1) as session:
            session.run("init")
            wanted = [t for t in op.outputs if t.dtype.is_floating or t.dtype.is_integer or t.dtype.is_bool]
            if len(wanted) != len(op.outputs) or any(t.dtype._is_ref_dtype for t in wanted):
                return
            values = session.run([t.name for t in wanted], built.feeds[0])
    except tf.errors.OpError:
        return
    for feed in (False, True):
        result, changes = copied(built), {}
        for t, value in zip(wanted, values):
            value = np.asarray(value)
            new = f"{name}_value{t.value_index}".replace("/", "_")
            if feed:
                added = result.meta.graph_def.node.add(name=new, op="Placeholder")
                added.attr["shape"].shape.CopyFrom(t.shape.as_proto())
                for feeds in result.feeds:
                    feeds[new + ":0"] = value
            else:
                added = result.meta.graph_def.node.add(name=new, op="Const")
                added.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, dtype=t.dtype, shape=value.shape))
            added.attr["dtype"].type = t.dtype.base_dtype.as_datatype_enum
            changes[t.name.removesuffix(":0")] = new
        yield rewired(result, changes, mine=True)


def rewired(built, changes, mine=False):
    """The readers of a tensor of `changes` read the other tensor; nodes that waited for its node wait for nothing."""
    result = built if mine else copied(built)
    gone = {source_of(t) for t in changes}
    for node in result.meta.graph_def.node:
        inputs = [changes.get(i, i) for i in node.input]
        inputs = [i for i in inputs if not (i.startswith("^") and i[1:] in gone)]
        del node.input[:]
        node.input.extend(inputs)
    return result


def write(folder, built, flags, verdict, plan, number):
    """graph.pbtxt, its feeds, the command, and what is wrong."""
    os.makedirs(folder, exist_ok=True)
    meta = copy.deepcopy(built.meta)
    del meta.meta_info_def.stripped_op_list.op[:]
    with open(os.path.join(folder, "graph.pbtxt"), "w", encoding="utf-8") as file:
        file.write(text_format.MessageToString(meta))
    with open(os.path.join(folder, "graph.meta"), "wb") as file:
        file.write(built.meta.SerializeToString(deterministic=True))
    flags = [f.replace("{folder}", ".") for f in flags]
    count = int(running.value_of(flags, "--workers") or 0)
    for_each = [[f"--worker={i}"] for i in range(count)] or [[]]
    with open(os.path.join(folder, "cmd"), "w", encoding="utf-8") as file:
        for i, more in enumerate(for_each):
            out = f"out-{i}.meta" if count else "out.meta"
            file.write(shlex.join(["graft-opt", "graph.meta", "-o", out, *flags, *more]) + "\n")
    with open(os.path.join(folder, "feeds.txt"), "w", encoding="utf-8") as file:
        for i, feeds in enumerate(built.feeds, start=1):
            for name, value in feeds.items():
                file.write(f"step {i}: {name} {np.asarray(value).dtype} {np.asarray(value).tolist()}\n")
    with open(os.path.join(folder, "README"), "w", encoding="utf-8") as file:
        file.write(f"{verdict.kind}: {verdict.detail}\nwarnings: {', '.join(verdict.warnings) or 'none'}\n")
        file.write(f"train ops: {', '.join(built.trains)}; fetched: {', '.join(built.probes)}\n")
        file.write(f"found by test/fuzz/differential/fuzz.py --repeat={plan.seed}:{number}\nplan: {plan.text()}\n")
    # Without TensorFlow the graph can become smaller: graft-opt must refuse it for the same reason.
    if verdict.kind in ("uncertified", "refused") and not count:
        reduce = os.path.join(os.path.dirname(running.graft_opt()), "graft-reduce")
        command = [reduce, "graph.meta", "--fails", "-o", "smallest.pbtxt", "--", *flags]
        subprocess.run(command, cwd=folder, capture_output=True, timeout=LIMIT, check=False)


def small(plan, flags, kind, folder, change=None, say=print):
    """(plan, flags, built, verdict) of the smallest that fails in that way."""
    failure = Failure(kind, folder, change)
    plan, flags = small_plan(plan, flags, failure, say)
    built = small_graph(genes.build(plan), flags, failure, say)
    return plan, flags, built, failure.verdict(built, flags)


def main(family, text, found) -> int:
    seed, _, number = text.partition(":")
    genes.register_all()
    plan = genes.draw(family, int(seed))
    built = genes.build(plan)
    flags = options.draw(built, int(seed), int(number))
    with tempfile.TemporaryDirectory(prefix="graft-fuzz-") as folder:
        reference = running.Reference(built)
        verdict = running.judge(built, reference, flags, folder)
        reference.close()
        if verdict.kind not in (*running.BAD, "uncertified"):
            print(f"{text} is {verdict.kind}: {verdict.detail}")
            return 0
        plan, flags, built, verdict = small(plan, flags, verdict.kind, folder)
        where = os.path.join(found, f"{seed}-{number}")
        write(where, built, flags, verdict or running.Verdict("flaky"), plan, number)
        print(f"{verdict.kind if verdict else 'flaky'}: {verdict.detail if verdict else ''}")
        print(f"{len(built.meta.graph_def.node)} nodes, {' '.join(flags)}: {where}")
    return 1
