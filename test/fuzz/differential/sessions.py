# SPDX-License-Identifier: Apache-2.0
"""Sessions in which graphs run: by the names of nodes, on CPUs of this process.

    Running(graph_def, devices)        one graph
    on_one_machine(graph_def, each)    a graph of `--cluster`: /job:worker/task:T/device:CPU:K is the CPU T * each + K
    fold(graph_defs)                   the graphs of all workers beside each other: `worker<I>/<name>` on CPU I
    Workers(graph_defs, ...)           a session of those: a run is that of all workers at once

Collectives are those of the files: of groups of one process instead of several.
"""

import re
from typing import Dict, List

import numpy as np
import tensorflow.compat.v2 as tf
from genes import tf1
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import pywrap_tf_session as c_api
from tensorflow.python.framework import c_api_util

RUN_TIMEOUT_MS = 40000


def configuration(devices: int, grappler: bool):
    config = tf1.ConfigProto(
        device_count={"CPU": devices},
        allow_soft_placement=False,
        inter_op_parallelism_threads=2,
        intra_op_parallelism_threads=1,
    )
    if not grappler:
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        config.graph_options.optimizer_options.opt_level = -1
    return config


class Running:
    """A GraphDef in a session of its own.

    TensorFlow's importer in C++ reads it, and runs go by names: no object of Python exists for a node, which is what most of
    the time of `tf.import_graph_def` and of `Session.run` is for. Devices are as they are written.
    """

    def __init__(self, graph_def, devices: int, grappler: bool = False):
        self.graph = tf.Graph()
        options = c_api_util.ScopedTFImportGraphDefOptions()
        c_api.TF_ImportGraphDefOptionsSetValidateColocationConstraints(options.options, True)
        with self.graph._c_graph.get() as graph, c_api_util.tf_buffer(graph_def.SerializeToString()) as text:
            c_api.TF_GraphImportGraphDefWithResults(graph, text, options.options)
        self.session = tf1.Session(graph=self.graph, config=configuration(devices, grappler))
        self.calls = {}

    def call(self, names, feeds=None, targets=()):
        """Values of tensors, after or beside the operations `targets`."""
        fed = sorted(feeds or {})
        key = (tuple(names), tuple(fed), tuple(targets))
        if key not in self.calls:
            options = config_pb2.CallableOptions(feed=fed, fetch=names, target=targets)
            options.run_options.timeout_in_ms = RUN_TIMEOUT_MS
            self.calls[key] = self.session._make_callable_from_options(options)
        # A fetched reference is its memory.
        return [np.array(v) for v in self.calls[key](*[np.asarray(feeds[n]) for n in fed])]

    def run(self, fetches, feeds=None):
        """An operation, or a list of tensors."""
        if isinstance(fetches, str):
            return self.call([], feeds, [fetches])
        return self.call(list(fetches), feeds)

    def look(self, names, copies, feeds=None):
        """Values of tensors by their names, and of the copies of variables."""
        both = {**names, **copies}
        values = dict(zip(both, self.call(list(both.values()), feeds)))
        return {n: values[n] for n in names}, {n: values[n] for n in copies}

    def close(self):
        self.session.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


# --- Several tasks. ---


def on_one_machine(graph_def, each: int):
    """Devices of tasks become those of one process; `each`: replicas of a task. Any device of a task is its first."""
    for node in graph_def.node:
        match = re.fullmatch(r"/job:worker/(?:replica:0/)?task:(\d+)(?:/device:CPU:(\d+|\*))?", node.device)
        if match:
            # A task without a device: TensorFlow takes its first one, or what the node is colocated with.
            number = int((match[2] or "0").replace("*", "0"))
            assert number < each, f"{node.name}: {node.device}"
            node.device = f"/device:CPU:{int(match[1]) * each + number}" if match[2] else ""


def fold(graph_defs):
    result = tf1.GraphDef()
    result.versions.CopyFrom(graph_defs[0].versions)
    result.library.CopyFrom(graph_defs[0].library)
    for i, graph_def in enumerate(graph_defs):
        assert graph_def.library == result.library, f"worker {i} has other functions than worker 0"
        prefix = f"worker{i}/"
        for node in graph_def.node:
            assert node.device in (f"/job:worker/task:{i}/device:CPU:0", ""), f"{node.name}: {node.device} of worker {i}"
            new = result.node.add()
            new.CopyFrom(node)
            new.name, new.device = prefix + node.name, f"/device:CPU:{i}"
            del new.input[:]
            new.input.extend("^" + prefix + t[1:] if t.startswith("^") else prefix + t for t in node.input)
            for key in ("shared_name", "frame_name"):
                if key in new.attr and new.attr[key].s:
                    new.attr[key].s = prefix.encode() + new.attr[key].s
            if "_class" in new.attr:
                names = new.attr["_class"].list.s
                names[:] = [b"loc:@" + prefix.encode() + n[len(b"loc:@") :] for n in names]
    return result


class Workers(Running):
    """`axes`: along which axis a feed is split; others are fed to all workers. `own`: fetches that are a worker's rows, with
    the shapes that those of all workers may have."""

    def __init__(self, graph_defs, axes: Dict[str, int], own: Dict[str, set], grappler: bool = False):
        super().__init__(fold(graph_defs), len(graph_defs), grappler)
        self.count, self.axes, self.own = len(graph_defs), axes, own

    def call(self, names, feeds=None, targets=()):
        """Values of worker 0, or of all of them, then those of the others."""
        everyone: List[str] = [f"worker{i}/" for i in range(self.count)]
        fed = {}
        for name, value in (feeds or {}).items():
            axis = self.axes.get(name)
            parts = [value] * self.count if axis is None else np.split(value, self.count, axis)
            fed.update({who + name: part for who, part in zip(everyone, parts)})
        fetched = super().call([w + n for w in everyone for n in names], fed, [w + t for w in everyone for t in targets])
        return [fetched[i * len(names) : (i + 1) * len(names)] for i in range(self.count)]

    def look(self, names, copies, feeds=None):
        first, *others = self.call(list(names.values()), feeds)
        values, rest = dict(zip(names, first)), {}
        for i, theirs in enumerate(others, start=1):
            for name, value in zip(names, theirs):
                if name not in self.own:
                    rest[f"{name}/replica_{i}"] = value
        for name in set(names) & set(self.own):
            parts = [dict(zip(names, v))[name] for v in (first, *others)]
            for axis in range(np.ndim(parts[0])):
                joined = np.concatenate(parts, axis) if same_but(parts, axis) else None
                if joined is not None and joined.shape in self.own[name]:
                    values[name] = joined
                    break
        return values, rest


def same_but(parts, axis):
    shapes = {tuple(s for a, s in enumerate(p.shape) if a != axis) for p in parts}
    return len(shapes) == 1
