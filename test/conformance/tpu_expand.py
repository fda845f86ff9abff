# SPDX-License-Identifier: Apache-2.0
"""A TPU form as a graph that CPUs run, so that TensorFlow can say what it computes.

    expand(path, out)     MetaGraphDef or GraphDef in, the same kind out

What `tf.compat.v1.tpu.replicate` means, done by hand: a member of a computation is there once for each replica, a
TPUReplicatedInput is the operand of the replica, output r of a TPUReplicatedOutput is its operand in replica r, a
CrossReplicaSum is an AddN over the replicas, and devices are CPUs. Nothing here knows how graft made the form.
"""

import re

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1

DROPPED = (
    "_tpu_replicate",
    "_xla_outside_compilation",
    "_tpu_input_identity",
    "_tpu_output_identity",
    "_tpu_compilation_status",
    "_pivot_for_cluster",
    "_output_shapes",
)


def split_input(text):
    """(name, port, is control)"""
    if text.startswith("^"):
        return text[1:], 0, True
    name, _, port = text.partition(":")
    return name, int(port or 0), False


def on_cpu(device, replica=None):
    if "TPU_REPLICATED_CORE" in device or "TPU_REPLICATED_HOST" in device:
        return ""
    device = re.sub(r"(?i)(/device:)?TPU:(\d+)", r"/device:CPU:\2", device)
    return device if replica is None or device else f"/device:CPU:{replica}"


class Expander:
    def __init__(self, graph_def):
        self.nodes = {n.name: n for n in graph_def.node}
        self.cluster = {
            n.name: n.attr["_tpu_replicate"].s.decode() for n in graph_def.node if "_tpu_replicate" in n.attr
        }
        self.replicas = {}
        for n in graph_def.node:
            if n.op == "TPUReplicateMetadata":
                assert self.cluster[n.name] not in self.replicas, "two metadata nodes in one computation"
                self.replicas[self.cluster[n.name]] = n.attr["num_replicas"].i
        for name, cluster in self.cluster.items():
            assert cluster in self.replicas, f"{name}: computation {cluster} has no metadata"
        self.out = tf1.GraphDef()
        self.out.versions.CopyFrom(graph_def.versions)
        self.out.library.CopyFrom(graph_def.library)

    def is_member(self, name):
        return name in self.cluster

    def copy_name(self, name, replica):
        return f"tpu_{replica}/{name}"

    def outside(self, text):
        """The tensor that a node outside reads for `text`."""
        name, port, control = split_input(text)
        node = self.nodes[name]
        if control:
            if node.op in ("TPUReplicatedInput", "TPUReplicatedOutput"):
                raise AssertionError(f"a control edge from {node.op} {name}")
            if not self.is_member(name):
                return [text]
            if node.op == "TPUReplicateMetadata":
                return []
            return ["^" + self.copy_name(name, r) for r in range(self.replicas[self.cluster[name]])]
        if node.op == "TPUReplicatedOutput":
            source, source_port, _ = split_input(node.input[0])
            assert self.is_member(source), f"{name} is no output of a computation"
            return [f"{self.copy_name(source, port)}:{source_port}"]
        assert node.op != "TPUReplicatedInput", f"{text} is read outside of its computation"
        assert not self.is_member(name), f"{text}: a tensor of a computation is read outside"
        return [text]

    def inside(self, text, cluster, replica):
        name, port, control = split_input(text)
        node = self.nodes[name]
        if node.op == "TPUReplicateMetadata":
            return []
        if self.is_member(name):
            assert self.cluster[name] == cluster, f"{text} is in another computation"
            copy = self.copy_name(name, replica)
            return ["^" + copy if control else f"{copy}:{port}"]
        if control:
            return [text]
        if node.op == "TPUReplicatedInput":
            operands = [i for i in node.input if not i.startswith("^")]
            assert len(operands) == node.attr["N"].i, f"{name}: N is not the number of operands"
            if node.attr["is_packed"].b:
                assert len(operands) == 1
                return self.outside(operands[0])
            assert len(operands) == self.replicas[cluster], f"{name}: {len(operands)} operands"
            return self.outside(operands[replica])
        return self.outside(text)

    def check_sum(self, node, replicas):
        groups = self.nodes[split_input(node.input[1])[0]]
        assert groups.op == "Const", "the groups of a CrossReplicaSum are no constant"
        value = tf.make_ndarray(groups.attr["value"].tensor)
        assert np.array_equal(value, [list(range(replicas))]), f"{node.name}: groups {value}"

    def strip(self, node):
        for key in [k for k in node.attr if k in DROPPED]:
            del node.attr[key]

    def check_whole(self):
        """A computation runs as a whole: nothing outside stands between two parts of it."""
        place = lambda name: self.cluster.get(name, name)
        waits = {}
        for node in self.nodes.values():
            for text in node.input:
                source = place(split_input(text)[0])
                if source != place(node.name) and self.nodes[split_input(text)[0]].op != "NextIteration":
                    waits.setdefault(place(node.name), set()).add(source)
        # A control input of a TPUReplicatedInput within its computation is gone once the computation is one node.
        for node in self.nodes.values():
            if node.op == "TPUReplicatedInput":
                sources = [split_input(text)[0] for text in node.input]
                own = {place(n) for n in sources if self.nodes[n].op == "TPUReplicateMetadata"}
                waits.get(node.name, set()).difference_update(own)
            if node.op == "TPUCompilationResult":
                waits.pop(node.name, None)
        done, path = set(), set()
        for start in list(waits):
            stack = [(start, iter(waits.get(start, ())))]
            path.add(start)
            while stack:
                name, rest = stack[-1]
                step = next(rest, None)
                if step is None:
                    stack.pop()
                    path.discard(name)
                    done.add(name)
                elif step not in done:
                    assert step not in path, f"{name} waits for {step}, which waits for it"
                    path.add(step)
                    stack.append((step, iter(waits.get(step, ()))))

    def run(self):
        self.check_whole()
        for node in self.nodes.values():
            if node.op in ("TPUReplicateMetadata", "TPUReplicatedInput", "TPUReplicatedOutput", "TPUCompilationResult"):
                continue
            if not self.is_member(node.name):
                new = self.out.node.add()
                new.CopyFrom(node)
                del new.input[:]
                new.input.extend(i for text in node.input for i in self.outside(text))
                new.device = on_cpu(node.device)
                self.strip(new)
                continue
            cluster = self.cluster[node.name]
            replicas = self.replicas[cluster]
            if node.op == "CrossReplicaSum":
                self.check_sum(node, replicas)
                total = self.out.node.add(name=node.name + "/all", op="AddN", device="/device:CPU:0")
                for r in range(replicas):
                    total.input.extend(self.inside(node.input[0], cluster, r))
                total.attr["N"].i = replicas
                total.attr["T"].type = node.attr["T"].type
            for r in range(replicas):
                new = self.out.node.add()
                new.CopyFrom(node)
                new.name = self.copy_name(node.name, r)
                del new.input[:]
                new.input.extend(i for text in node.input for i in self.inside(text, cluster, r))
                new.device = on_cpu(node.device, r) or f"/device:CPU:{r}"
                if "_xla_outside_compilation" in node.attr or re.search("(?i)CPU", node.device):
                    new.device = "/device:CPU:0"
                if "frame_name" in new.attr:
                    new.attr["frame_name"].s = f"{r}/".encode() + new.attr["frame_name"].s
                if "_class" in new.attr:
                    del new.attr["_class"]
                self.strip(new)
                if node.op == "CrossReplicaSum":
                    new.op = "Identity"
                    controls = [i for i in new.input if i.startswith("^")]
                    del new.input[:]
                    new.input.extend([node.name + "/all"] + controls)
        return self.out


def expand(path, out):
    text = path.endswith(".pbtxt")
    meta = None
    if path.endswith(".meta"):
        meta = tf1.MetaGraphDef()
        with open(path, "rb") as file:
            meta.ParseFromString(file.read())
        graph_def = meta.graph_def
    else:
        assert not text
        graph_def = tf1.GraphDef()
        with open(path, "rb") as file:
            graph_def.ParseFromString(file.read())
    expanded = Expander(graph_def).run()
    if meta is not None:
        meta.graph_def.CopyFrom(expanded)
        # The contexts of conditionals and loops name members, which are N nodes now.
        for key in ("cond_context", "while_context"):
            meta.collection_def.pop(key, None)
        # So are those that other collections name.
        names = {node.name for node in expanded.node}
        for collection in meta.collection_def.values():
            kept = [v for v in collection.node_list.value if v.partition(":")[0] in names]
            if collection.HasField("node_list"):
                collection.node_list.value[:] = kept
        # Ops of the TPU form are gone; an import checks the list.
        del meta.meta_info_def.stripped_op_list.op[:]
        expanded = meta
    with open(out, "wb") as file:
        file.write(expanded.SerializeToString(deterministic=True))
    return out
