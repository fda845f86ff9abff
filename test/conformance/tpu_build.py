# SPDX-License-Identifier: Apache-2.0
"""One Python function, two graphs: a plain one, and the one that `tf.compat.v1.tpu.replicate` of TensorFlow builds.

A computation is a function of a `Builder`. With `tpu=False` the builder's methods do nothing but call what they are
given; with `tpu=True` they call TensorFlow's `replicate`, `outside_compilation` and so on. A `Case` adds the pipeline that
must make graft turn the first graph into the second.
"""

import contextlib
import dataclasses
import re
from typing import Callable, Dict, Tuple

import tensorflow as tf
from tensorflow.python.framework import ops
from tensorflow.python.ops import control_flow_util
from tensorflow.python.tpu import device_assignment as device_assignment_lib
from tensorflow.python.tpu import topology as topology_lib
from tensorflow.python.tpu import tpu as tpu_lib
from tensorflow.python.tpu import tpu_replication

tf1 = tf.compat.v1
CLUSTER, HOST = "_tpu_replicate", "_xla_outside_compilation"


@dataclasses.dataclass(frozen=True)
class Input:
    """An input of a computation: what the plain one reads, and the tensor of each replica."""

    plain: tf.Tensor
    replicas: Tuple[tf.Tensor, ...]


class Builder:
    def __init__(self, tpu: bool, replicas: int = 2, marks: bool = True):
        self.tpu, self.replicas, self.marks = tpu, replicas, marks
        self.copies = []  # those of the last variable

    def x(self, name="x", shape=(None, 4), dtype=tf.float32):
        return tf1.placeholder(dtype, shape, name=name)

    # Inputs.

    def split(self, x, axis=0) -> Input:
        return Input(x, tuple(tf.split(x, self.replicas, axis)) if self.tpu else ())

    def copy(self, x) -> Input:
        return Input(x, (x,) * self.replicas)

    def each(self, *tensors) -> Input:
        return Input(tensors[0], tensors)

    # Computations.

    def replicate(self, function: Callable, *inputs: Input, use_tpu=True, **options):
        if not self.tpu:
            return function(*[i.plain for i in inputs])
        lists = [[i.replicas[r] for i in inputs] for r in range(self.replicas)]
        if not use_tpu:
            return tpu_lib.split_compile_and_replicate(function, lists, use_tpu=False, **options)[1]
        return tf1.tpu.replicate(function, lists, **options)

    def outside(self, function: Callable, *args):
        return tf1.tpu.outside_compilation(function, *args) if self.tpu and self.marks else function(*args)

    def cross_replica_sum(self, x):
        if not self.tpu:
            return x
        with ops.colocate_with(x.op):
            return tf1.tpu.cross_replica_sum(x)

    # Variables.

    def variable(self, name="v", shape=(4,), copies=None):
        """A variable and, where `copies` is '{}/replica_{}' or '{}/{}', its copies on the TPUs. Returns the handles."""
        with tf1.device("/device:TPU:0" if self.tpu and copies else None):
            first = tf1.get_variable(name, shape, initializer=tf1.zeros_initializer(), use_resource=True)
        self.copies = [first]
        for r in range(1, self.replicas if self.tpu and copies else 1):
            copy = copies.format(name, r)
            with tf1.device(f"/device:TPU:{r}"), tf1.name_scope(None):
                value = first.initial_value if copies == "{}/{}" else lambda: tf.identity(first.initial_value)
                other = tf1.Variable(value, trainable=False, use_resource=True, name=copy + "/")
            self.copies.append(other)
        return [variable.handle for variable in self.copies]

    def replicated(self, name, handles, mirrored=False, packed=False):
        """The handle that a computation uses."""
        if not self.tpu:
            return handles[0]
        context, _ = tpu_replication._enclosing_tpu_context_and_graph()
        return context.get_replicated_var_handle(name, name, handles, mirrored, packed)

    def read(self, handle, name="read"):
        return tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32, name=name)


@contextlib.contextmanager
def functional(on=True):
    """Control flow is If and While, not Switch and Merge."""
    before = control_flow_util.ENABLE_CONTROL_FLOW_V2
    control_flow_util.ENABLE_CONTROL_FLOW_V2 = on
    try:
        yield
    finally:
        control_flow_util.ENABLE_CONTROL_FLOW_V2 = before


@contextlib.contextmanager
def soft_placement():
    before = tf.config.get_soft_device_placement()
    tf.config.set_soft_device_placement(True)
    try:
        yield
    finally:
        tf.config.set_soft_device_placement(before)


@contextlib.contextmanager
def chained_ids():
    """Host ids of gradients as TensorFlow made them at first: an id is extended, unless it ends in this gradient call.

    Today TensorFlow takes the root of the id instead (`EnterGradientColocation`)."""
    context = tpu_replication.TPUReplicateContext
    enter = context._EnterOutsideCompilationScope

    def chained(self, cluster=None, **rest):
        if cluster and self._in_gradient_colocation is not None:
            before, uid = self._in_gradient_colocation.get_attr(HOST).decode(), cluster.partition(".")[2]
            cluster = before if "." in before and before.split(".")[-1] == uid else f"{before}.{uid}"
        enter(self, cluster, **rest)

    context._EnterOutsideCompilationScope = chained
    try:
        yield
    finally:
        context._EnterOutsideCompilationScope = enter


def topology(cores):
    """One task that has `cores` cores."""
    return topology_lib.Topology(mesh_shape=[cores, 1, 1, 1], device_coordinates=[[[i, 0, 0, 0] for i in range(cores)]])


def assignment(replicas, cores_per_replica):
    where = topology(replicas * cores_per_replica)
    cores = [[[r * cores_per_replica + k, 0, 0, 0] for k in range(cores_per_replica)] for r in range(replicas)]
    return device_assignment_lib.DeviceAssignment(where, cores)


@dataclasses.dataclass(frozen=True)
class Case:
    """A computation, and how graft gets TensorFlow's graph out of its plain one."""

    name: str
    build: Callable
    passes: str  # the pipeline
    arguments: Tuple[str, ...] = ()
    replicas: int = 2
    fetches: Tuple[Tuple[str, str], ...] = ()  # an output of the plain graph and the rule that merges it
    files: Callable = dict  # what options name: {"TOPOLOGY": bytes}
    around: Callable = contextlib.nullcontext  # what TensorFlow builds its graph in
    scope: str = "all"  # or "cluster": compare only what the computation reads and what reads it

    def __str__(self):
        return self.name

    def pipeline(self):
        """The pipeline as graft reads it: a value that is a list is quoted."""
        return re.sub(r"=([^\s{}']*,[^\s{}']*)(?=[\s}])", r"='\1'", self.passes)

    def graph(self, tpu: bool, marks: bool = True):
        graph = tf.Graph()
        # Soft placement is what marks automatic outside compilation: off, unless a case says otherwise.
        tf.config.set_soft_device_placement(False)
        with graph.as_default(), functional(False), self.around():
            self.build(Builder(tpu, self.replicas, marks))
        return graph.as_graph_def()


CASES: Dict[str, Case] = {}


def case(passes: str, *arguments: str, **fields):
    """Makes a case of a function, under its name."""

    def decorate(function):
        assert function.__name__ not in CASES, function.__name__
        CASES[function.__name__] = Case(function.__name__, function, passes, arguments, **fields)
        return function

    return decorate
