# SPDX-License-Identifier: Apache-2.0
"""Graphs that a strategy of AutoDist's made, in TensorFlow: what is shared by the tests of them.

A variable may be in parts, in copies or on another device; it is read by the names that the input declares.
"""

import functools
import os
import tempfile
from typing import Dict, List, Optional, Sequence

import addresses
import harness
import models
import tensorflow.compat.v2 as tf
from harness import Options, Rewritten, Session
from models import Spec, tf1

STRATEGIES = [
    "ps",
    "ps-load-balancing",
    "partitioned-ps",
    "uneven-partitioned-ps",
    "all-reduce",
    "partitioned-all-reduce",
    "random-axis-partition-all-reduce",
    "parallax",
    "auto",
]
# The variables of the models are small: parts of a few rows are what is wanted here.
SMALL = ("--min-shard-size=4", "--seed=7")
NODES = {"2x2": (2, 2), "2+1": (2, 1)}


@functools.lru_cache(maxsize=None)
def resources(layout: str) -> str:
    """A resource_spec.yml of machines with CPUs, as AutoDist's r6 and r9."""
    path = os.path.join(harness.workdir(), f"resources-{layout}.yml")
    with open(path, "w", encoding="utf-8") as file:
        file.write("nodes:\n")
        for i, count in enumerate(NODES[layout]):
            file.write(f"  - address: 10.20.41.{57 + i}\n    cpus: {list(range(count))}\n    network_bandwidth: 10\n")
            if i == 0:
                file.write("    chief: true\n")
    return path


@functools.lru_cache(maxsize=None)
def servers(layout: str) -> List[tf1.train.Server]:
    """A TensorFlow server for each machine, on the loopback."""
    jobs = {"worker": addresses.free(len(NODES[layout]))}
    return [
        tf1.train.Server(
            jobs,
            job_name="worker",
            task_index=i,
            config=tf1.ConfigProto(device_count={"CPU": count}, inter_op_parallelism_threads=2),
        )
        for i, count in enumerate(NODES[layout])
    ]


class Placed(Options):
    """Options for replicas on this machine (a number), or on the machines of a layout."""

    def __new__(cls, where, strategy: str, reduction: str = "auto", extra: Sequence[str] = ()):
        return object.__new__(cls)

    def __init__(self, where, strategy: str, reduction: str = "auto", extra: Sequence[str] = ()):
        count = where if isinstance(where, int) else sum(NODES[where])
        super().__init__(count, strategy, reduction, tuple(extra))
        object.__setattr__(self, "where", where)

    def arguments(self) -> List[str]:
        if isinstance(self.where, int):
            return super().arguments()
        return [
            f"--resources={resources(self.where)}",
            f"--strategy={self.strategy}",
            f"--reduction={self.reduction}",
            *self.extra,
        ]


class Anywhere(Session):
    """A session whose variables are those of the input, by the names that it declares, wherever they are."""

    where = 1

    def adopt(self, declared: Dict[str, str], trainable: Sequence[str]):
        self.own, self.variables, self.trainable = self.variables, dict(declared), list(trainable)

    def check_copies(self, what: str):
        """Copies of variables, or of their parts, equal the primary."""
        values, copies = self.run([self.own, self.copies])
        for name, by_replica in copies.items():
            for replica, value in by_replica.items():
                harness.assert_close(value, values[name], f"{what}: {name}/replica_{replica}")

    def restart(self, init: bool = True, grappler: bool = True):
        if isinstance(self.where, int):
            super().restart(init, grappler)
            return
        self.close()
        config = tf1.ConfigProto(isolate_session_state=True)
        if not grappler:
            config.graph_options.rewrite_options.disable_meta_optimizer = True
        self.session = tf1.Session(servers(self.where)[0].target, graph=self.graph, config=config)
        if init:
            self.run("init")

    @property
    def parts(self) -> Dict[str, List[str]]:
        """By variable of the input: the variables that are its parts."""
        found: Dict[str, List[str]] = {}
        for op in self.graph.get_operations():
            if "_graft_slice" in op.node_def.attr and op.type in ("VarHandleOp", "VariableV2", "Variable"):
                whole = op.get_attr("_graft_slice").decode().split(" ")[0]
                found.setdefault(whole, []).append(op.name)
        return found


@functools.lru_cache(maxsize=None)
def declared(path: str):
    """The variables of a file, and which are trained."""
    with tf.Graph().as_default():
        tf1.train.import_meta_graph(path)
        return {v.op.name: harness.read_name(v) for v in tf1.global_variables()}, [
            v.op.name for v in tf1.trainable_variables()
        ]


class Strategic(Anywhere, Rewritten):
    """A model of the zoo after a strategy."""

    def __init__(self, spec: Spec, options: Placed, path: Optional[str] = None):
        self.where = options.where
        source = path or harness.export(spec)
        Rewritten.__init__(self, spec, options, source)
        self.adopt(*declared(source))


class Distributed(Anywhere):
    """Any graph file after a strategy."""

    def __init__(self, path: str, options: Placed):
        self.where = options.where
        self.path, self.stderr = harness.rewrite(path, options)
        super().__init__(self.path, options.replicas)
        self.adopt(*declared(path))


def temporary(suffix: str) -> str:
    handle, path = tempfile.mkstemp(suffix=suffix, dir=harness.workdir())
    os.close(handle)
    return path
