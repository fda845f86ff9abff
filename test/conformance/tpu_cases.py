# SPDX-License-Identifier: Apache-2.0
"""Computations for `tpu-replicate`: inputs, captures, control inputs, outputs, devices, control flow, options."""

import tensorflow as tf
from tensorflow.python.distribute import tpu_values
from tensorflow.python.tpu import tpu as tpu_lib
from tpu_build import assignment, case, functional, soft_placement, topology

tf1 = tf.compat.v1

# --- Inputs. ---


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=y:0}", "--feed=x=split", fetches=(("y:0", "concat"),))
def add(b):
    b.replicate(lambda x: tf.add(x, 1.0, name="y"), b.split(b.x()))


@case(
    "tpu-replicate{replicas=2 inputs=x:0 outputs=y:0 combine=concat(1)}",
    "--feed=x=split(1)",
    fetches=(("y:0", "concat1"),),
)
def split_on_axis_1(b):
    b.replicate(lambda x: tf.add(x, 1.0, name="y"), b.split(b.x(), 1))


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=y:0 combine=first}", "--feed=x=copy", fetches=(("y:0", "first"),))
def copied_input(b):
    b.replicate(lambda x: tf.add(x, 1.0, name="y"), b.copy(b.x()))


@case("tpu-replicate{replicas=2 inputs=a:0|c:0 outputs=y:0 combine=sum}", fetches=(("y:0", "sum"),))
def explicit_inputs(b):
    b.replicate(lambda x: tf.add(x, 1.0, name="y"), b.each(b.x("a"), b.x("c")))


@case("tpu-replicate{inputs=x:0,w:0,a:0|c:0 outputs=y:0}", "--replicas=2", "--feed=x=split", "--feed=w=copy")
def three_kinds_of_inputs(b):
    inputs = b.split(b.x()), b.copy(b.x("w", (4, 4))), b.each(b.x("a"), b.x("c"))
    b.replicate(lambda x, w, a: tf.add(tf.matmul(x, w), a, name="y"), *inputs)


@case("tpu-replicate{replicas=2 inputs=x:0,z:0 outputs=z:0,y:0}", "--feed=x=split", "--feed=z=split")
def input_passed_through(b):
    b.replicate(lambda x, z: (z, tf.negative(x, name="y")), b.split(b.x()), b.split(b.x("z")))


@case("tpu-replicate{replicas=2 inputs=x:0,z:0 outputs=y:0}", "--feed=x=split", "--feed=z=copy")
def unused_input(b):
    b.replicate(lambda x, z: tf.negative(x, name="y"), b.split(b.x()), b.copy(b.x("z")))


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=y:0}", "--feed=x=split")
def input_read_twice_by_one_op(b):
    b.replicate(lambda x: tf.matmul(x, x, transpose_b=True, name="y"), b.split(b.x()))


@case("tpu-replicate{replicas=2 inputs=m:0 outputs=y:0}")
def input_made_by_an_op(b):
    m = tf.multiply(b.x(), 2.0, name="m")
    b.replicate(lambda x: tf.subtract(x, 1.0, name="y"), b.split(m))


@case("tpu-replicate{replicas=2 outputs=y:0 combine=first}", fetches=(("y:0", "first"),))
def no_inputs(b):
    b.replicate(lambda: tf.add(tf.constant(1.0, name="k"), 2.0, name="y"))


@case("tpu-replicate{replicas=1 inputs=x:0 outputs=y:0}", "--feed=x=copy", replicas=1)
def one_replica(b):
    b.replicate(lambda x: tf.add(x, 1.0, name="y"), b.copy(b.x()))


@case("tpu-replicate{replicas=4 inputs=x:0 outputs=y:0}", "--feed=x=split", replicas=4, fetches=(("y:0", "concat"),))
def four_replicas(b):
    b.replicate(lambda x: tf.add(x, 1.0, name="y"), b.split(b.x()))


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=y:0}", "--feed=x=split")
def colocated_with_an_input(b):
    def computation(x):
        with tf1.colocate_with(x.op):
            return tf.add(x, 1.0, name="y")

    b.replicate(computation, b.split(b.x()))


# --- What is captured. ---


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=y:0 captures=c:0}", "--feed=x=split")
def captured_tensor(b):
    c = tf.constant([1.0, 2.0, 3.0, 4.0], name="c")
    b.replicate(lambda x: tf.add(tf.multiply(x, c, name="m"), c, name="y"), b.split(b.x()))


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=y:0}", "--feed=x=split")
def captured_placeholder(b):
    p = b.x("p", ())
    b.replicate(lambda x: tf.add(x, tf.exp(p, name="e"), name="y"), b.split(b.x()))


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=y:0 captures=c:0,d:1}", "--feed=x=split")
def op_of_captured_tensors_only(b):
    c = tf.constant(1.0, name="c")
    d = tf.unstack(tf.constant([1.0, 2.0], name="e"), name="d")
    b.replicate(lambda x: tf.add(x, tf.multiply(c, d[1], name="m"), name="y"), b.split(b.x()))


# --- Control inputs. ---


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=y:0 captures=^c}", "--feed=x=split")
def control_input_from_outside(b):
    c = tf.constant(1.0, name="c")

    def computation(x):
        with tf.control_dependencies([c]):
            return tf.negative(x, name="y")

    b.replicate(computation, b.split(b.x()))


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=y:0 captures=^n}", "--feed=x=split")
def control_input_from_a_noop_outside(b):
    n = tf.no_op(name="n")

    def computation(x):
        with tf.control_dependencies([n]):
            return tf.negative(x, name="y")

    b.replicate(computation, b.split(b.x()))


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=y:0}", "--feed=x=split")
def control_input_from_inside(b):
    def computation(x):
        first = tf.negative(x, name="n")
        with tf.control_dependencies([first]):
            return tf.add(tf.exp(x, name="e"), 1.0, name="y")

    b.replicate(computation, b.split(b.x()))


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=y:0 captures=^c,^n}", "--feed=x=split")
def control_inputs_of_both_kinds(b):
    c, n = tf.constant(1.0, name="c"), tf.no_op(name="n")

    def computation(x):
        first = tf.negative(x, name="f")
        with tf.control_dependencies([first, c, n]):
            k = tf.constant(3.0, name="k")
            e = tf.exp(x, name="e")
        return tf.add(e, k, name="y")

    b.replicate(computation, b.split(b.x()))


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=y:0 captures=^d}", "--feed=x=split")
def control_input_from_an_op_with_two_outputs(b):
    d = tf.unstack(tf.constant([1.0, 2.0], name="c"), name="d")

    def computation(x):
        with tf.control_dependencies([d[1]]):
            return tf.add(tf.exp(x, name="e"), tf.constant(1.0, name="k"), name="y")

    b.replicate(computation, b.split(b.x()))


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=y:0}", "--feed=x=split")
def control_input_from_an_input(b):
    def computation(x):
        with tf.control_dependencies([x]):
            k = tf.constant(1.0, name="k")
        return tf.add(x, k, name="y")

    b.replicate(computation, b.split(b.x()))


# --- Outputs. ---


@case(
    "tpu-replicate{replicas=2 inputs=x:0 outputs=y:0,l:0 combine=concat(0),mean}",
    "--feed=x=split",
    fetches=(("y:0", "concat"), ("l:0", "mean")),
)
def two_outputs(b):
    b.replicate(lambda x: (tf.add(x, 1.0, name="y"), tf.reduce_mean(x, name="l")), b.split(b.x()))


@case(
    "tpu-replicate{replicas=2 inputs=x:0 outputs=u:1,u:0}",
    "--feed=x=split",
    fetches=(("u:1", "concat"), ("u:0", "concat")),
)
def two_outputs_of_one_op(b):
    def computation(x):
        parts = tf.unstack(x, 4, axis=1, name="u")
        return parts[1], parts[0]

    b.replicate(computation, b.split(b.x()))


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=y:0,^t}", "--feed=x=split")
def tensor_and_operation(b):
    v = b.variable()[0]

    def computation(x):
        y = tf.add(x, b.read(v), name="y")
        return y, tf.raw_ops.AssignAddVariableOp(resource=v, value=tf.reduce_sum(y, 0, name="s"), name="t")

    b.replicate(computation, b.split(b.x()))


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=y:0,^t,^o}", "--feed=x=split")
def two_operations(b):
    v = b.variable()[0]

    def computation(x):
        s = tf.reduce_sum(x, 0, name="s")
        t = tf.raw_ops.AssignAddVariableOp(resource=v, value=s, name="t")
        with tf.control_dependencies([t]):
            o = tf.no_op(name="o")
        return tf.negative(x, name="y"), t, o

    b.replicate(computation, b.split(b.x()))


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=^t}", "--feed=x=split")
def operation_only(b):
    v = b.variable()[0]

    def computation(x):
        return tf.raw_ops.AssignAddVariableOp(resource=v, value=tf.reduce_sum(x, 0, name="s"), name="t")

    b.replicate(computation, b.split(b.x()))


@case("tpu-replicate{replicas=2 inputs=x:0 include=side/*}", "--feed=x=split")
def no_outputs(b):
    v = b.variable()[0]

    def computation(x):
        with tf.name_scope("side"):
            tf.raw_ops.AssignAddVariableOp(resource=v, value=tf.reduce_sum(x, 0, name="s"), name="t")

    b.replicate(computation, b.split(b.x()))


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=y:0 include=side*}", "--feed=x=split")
def op_that_no_output_needs(b):
    def computation(x):
        tf.exp(x, name="side")
        return tf.negative(x, name="y")

    b.replicate(computation, b.split(b.x()))


# --- Several computations, names. ---


@case(
    "tpu-replicate{replicas=2 inputs=x:0 outputs=y:0},tpu-replicate{replicas=2 inputs=z:0 outputs=w:0}",
    "--feed=x=split",
    "--feed=z=split",
)
def two_computations(b):
    x, z = b.x(), b.x("z")
    b.replicate(lambda x: tf.add(x, 1.0, name="y"), b.split(x))
    b.replicate(lambda z: tf.multiply(z, 2.0, name="w"), b.split(z))


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=y:0}", "--feed=x=split")
def names_that_are_taken(b):
    for name in ("cluster", "input0", "output_0_shard_0", "NoOp", "Identity", "split", "TPUReplicateMetadata"):
        tf.no_op(name=name)
    b.replicate(lambda x: tf.add(x, 1.0, name="y"), b.split(b.x()))


# --- Devices. ---


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=y:0 device=/job:worker/task:1}", "--feed=x=split")
def outer_job(b):
    x = b.x()
    with tf1.device("/job:worker/task:1"):
        b.replicate(lambda x: tf.add(x, 1.0, name="y"), b.split(x))


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=^t device=/job:worker/device:CPU:0}", "--feed=x=split")
def outer_device_without_tensors(b):
    v, x = b.variable()[0], b.x()

    def computation(x):
        return tf.raw_ops.AssignAddVariableOp(resource=v, value=tf.reduce_sum(x, 0, name="s"), name="t")

    with tf1.device("/job:worker/device:CPU:0"):
        b.replicate(computation, b.split(x))


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=y:0,z:0}", "--feed=x=split")
def output_on_core_1(b):
    def computation(x):
        with tf1.device(tf1.tpu.core(1)):
            y = tf.add(x, 1.0, name="y")
        return y, tf.negative(y, name="z")

    b.replicate(computation, b.split(b.x()))


# --- Control flow. ---


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=w/Exit_1:0 include=w/*}", "--feed=x=split")
def loop_of_version_1(b):
    def computation(x):
        return tf1.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2.0), [0, x], name="w")[1]

    b.replicate(computation, b.split(b.x()))


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=w/Exit_1:0 include=w/* captures=c:0}", "--feed=x=split")
def loop_of_version_1_that_captures(b):
    c = tf.constant(2.0, name="c")

    def computation(x):
        k = tf.constant(1.0, name="k")
        return tf1.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * c + k), [0, x], name="w")[1]

    b.replicate(computation, b.split(b.x()))


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=w/Exit_1:0 include=w/*}", "--feed=x=split")
def loop_of_version_1_with_a_control_input(b):
    def computation(x):
        def body(i, a):
            with tf.control_dependencies([tf.negative(a)]):
                return i + 1, a * tf.constant(2.0, name="k")

        return tf1.while_loop(lambda i, a: i < 3, body, [0, x], name="w")[1]

    b.replicate(computation, b.split(b.x()))


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=q/Merge:0 include=q/* captures=p:0}", "--feed=x=split")
def branch_of_version_1(b):
    p = tf1.placeholder(tf.bool, (), name="p")

    def computation(x):
        return tf1.cond(p, lambda: x + 1.0, lambda: tf.constant(2.0, name="k") * x, name="q")

    b.replicate(computation, b.split(b.x()))


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=w:3 include=w/*}", "--feed=x=split")
def functional_loop(b):
    def computation(x):
        with functional():
            return tf1.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2.0), [0, x], name="w")[1].op.inputs[0]

    b.replicate(computation, b.split(b.x()))


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=q:0 include=q/*}", "--feed=x=split")
def functional_branch(b):
    p = tf1.placeholder(tf.bool, (), name="p")

    def computation(x):
        with functional():
            return tf1.cond(p, lambda: x + 1.0, lambda: x * 2.0, name="q").op.inputs[0]

    b.replicate(computation, b.split(b.x()))


# --- Variables. ---


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=y:0,^t include=z}", "--feed=x=split")
def shared_variable(b):
    v = b.variable()[0]

    def computation(x):
        y = tf.add(x, b.read(v), name="y")
        t = tf.raw_ops.AssignAddVariableOp(resource=v, value=tf.reduce_sum(y, 0, name="s"), name="t")
        with tf.control_dependencies([t]):
            tf.add(b.read(v, "again"), 1.0, name="z")
        return y, t

    b.replicate(computation, b.split(b.x()))


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=y:0,^t}", "--feed=x=split")
def variable_made_inside(b):
    def computation(x):
        v = tf1.get_variable("v", (4,), initializer=tf1.ones_initializer(), use_resource=True)
        y = tf.add(x, b.read(v.handle), name="y")
        return y, tf.raw_ops.AssignSubVariableOp(resource=v.handle, value=tf.reduce_sum(y, 0, name="s"), name="t")

    b.replicate(computation, b.split(b.x()))


def _variable_case(b, copies, mirrored=False, packed=False):
    handles = b.variable(copies=copies)
    if packed:
        handles = handles[:1]

    def computation(x):
        v = b.replicated("v", handles, mirrored, packed)
        y = tf.add(x, b.read(v), name="y")
        again = b.replicated("v", handles, mirrored, packed)
        return y, tf.raw_ops.AssignAddVariableOp(resource=again, value=tf.reduce_sum(y, 0, name="s"), name="t")

    b.replicate(computation, b.split(b.x()))


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=y:0,^t mirrored-variables=v}", "--feed=x=split", scope="cluster")
def mirrored_variable(b):
    _variable_case(b, "{}/replica_{}", mirrored=True)


@case(
    "tpu-replicate{replicas=4 inputs=x:0 outputs=y:0,^t mirrored-variables=*}",
    "--feed=x=split",
    replicas=4,
    scope="cluster",
)
def mirrored_variable_of_four(b):
    _variable_case(b, "{}/replica_{}", mirrored=True)


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=y:0,^t replicated-variables=v}", "--feed=x=split", scope="cluster")
def replicated_variable(b):
    _variable_case(b, "{}/{}")


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=y:0,^t packed-variables=v}", "--feed=x=split", scope="cluster")
def packed_variable(b):
    _variable_case(b, None, packed=True)


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=y:0 mirrored-variables=v}", "--feed=x=split", scope="cluster")
def mirrored_variable_of_a_strategy(b):
    """Read through the class that TPUStrategy makes variables of."""
    handles = b.variable(copies="{}/replica_{}")

    def computation(x):
        if b.tpu:
            read = tpu_values.TPUMirroredVariable(
                None, b.copies, tf.VariableAggregation.NONE, tpu_values.TPUOnWritePolicy(tf.VariableAggregation.NONE)
            ).read_value()
        else:
            read = b.read(handles[0])
        return tf.add(x, read, name="y")

    b.replicate(computation, b.split(b.x()))


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=z:0 mirrored-variables=v}", "--feed=x=split", scope="cluster")
def mirrored_variable_under_control(b):
    handles = b.variable(copies="{}/replica_{}")

    def computation(x):
        v = b.replicated("v", handles, True)
        y = tf.add(x, 1.0, name="y")
        with tf.control_dependencies([y]):
            r = b.read(v)
        return tf.add(y, r, name="z")

    b.replicate(computation, b.split(b.x()))


@case(
    "tpu-replicate{replicas=2 inputs=x:0 outputs=y:0 mirrored-variables=v},"
    "tpu-replicate{replicas=2 inputs=u:0 outputs=w:0 mirrored-variables=v}",
    "--feed=x=split",
    "--feed=u=split",
    scope="cluster",
)
def mirrored_variable_of_two_computations(b):
    handles, x, u = b.variable(copies="{}/replica_{}"), b.x(), b.x("u")

    def first(x):
        return tf.add(x, b.read(b.replicated("v", handles, True), "r0"), name="y")

    def second(u):
        return tf.add(u, b.read(b.replicated("v", handles, True), "r1"), name="w")

    b.replicate(first, b.split(x))
    b.replicate(second, b.split(u))


# --- Options. ---


@case(
    "tpu-replicate{replicas=2 inputs=x:0 outputs=y:0 step-marker-location=STEP_MARK_AT_TOP_LEVEL_WHILE_LOOP}",
    "--feed=x=split",
)
def step_marker(b):
    def computation(x):
        return tf.add(x, 1.0, name="y")

    computation.step_marker_location = "STEP_MARK_AT_TOP_LEVEL_WHILE_LOOP"
    b.replicate(computation, b.split(b.x()))


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=y:0 allow-soft-placement=true}", "--feed=x=split")
def soft(b):
    with soft_placement():
        b.replicate(lambda x: tf.add(x, 1.0, name="y"), b.split(b.x()))


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=y:0 use-spmd-for-xla-partitioning=false}", "--feed=x=split")
def no_spmd(b):
    options = {"xla_options": tpu_lib.XLAOptions(use_spmd_for_xla_partitioning=False)} if b.tpu else {}
    b.replicate(lambda x: tf.add(x, 1.0, name="y"), b.split(b.x()), **options)


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=y:0 use-tpu=false}", "--feed=x=split")
def not_on_tpu(b):
    b.replicate(lambda x: tf.add(x, 1.0, name="y"), b.split(b.x()), use_tpu=False)


@case(
    "tpu-replicate{replicas=2 inputs=x:0 outputs=y:0 topology=TOPOLOGY device-assignment=0,0,0,0,1,0,0,0}",
    "--feed=x=split",
    files=lambda: {"TOPOLOGY": topology(2).serialized()},
)
def assigned_devices(b):
    options = {"device_assignment": assignment(2, 1)} if b.tpu else {}
    b.replicate(lambda x: tf.add(x, 1.0, name="y"), b.split(b.x()), **options)


_TWO_CORES = "device-assignment=0,0,0,0,1,0,0,0,2,0,0,0,3,0,0,0 num-cores-per-replica=2"


@case(
    "tpu-replicate{replicas=2 inputs=x:0 outputs=y:0 topology=TOPOLOGY " + _TWO_CORES + "}",
    "--feed=x=split",
    files=lambda: {"TOPOLOGY": topology(4).serialized()},
)
def two_cores_per_replica(b):
    options = {"device_assignment": assignment(2, 2)} if b.tpu else {}
    b.replicate(lambda x: tf.add(x, 1.0, name="y"), b.split(b.x()), **options)


@case(
    "tpu-replicate{replicas=2 inputs=x:0 outputs=y:0 topology=TOPOLOGY use-spmd-for-xla-partitioning=false "
    + _TWO_CORES
    + "}",
    "--feed=x=split",
    files=lambda: {"TOPOLOGY": topology(4).serialized()},
)
def two_cores_without_spmd(b):
    options = {}
    if b.tpu:
        options["device_assignment"] = assignment(2, 2)
        options["xla_options"] = tpu_lib.XLAOptions(use_spmd_for_xla_partitioning=False)
    b.replicate(lambda x: tf.add(x, 1.0, name="y"), b.split(b.x()), **options)


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=y:0 maximum-shapes=8x4}", "--feed=x=split")
def maximum_shapes(b):
    options = {"maximum_shapes": [tf.TensorShape([8, 4])]} if b.tpu else {}
    b.replicate(lambda x: tf.add(x, 1.0, name="y"), b.split(b.x()), **options)


# --- Sums over the replicas. ---


@case(
    "tpu-replicate{replicas=2 inputs=x:0 outputs=l:0 cross-replica-sum=l:0 combine=first}",
    "--feed=x=split",
    fetches=(("l:0", "first"),),
)
def sum_of_an_output(b):
    b.replicate(lambda x: b.cross_replica_sum(tf.reduce_mean(x, name="l")), b.split(b.x()))


@case(
    "tpu-replicate{replicas=2 inputs=x:0 outputs=l:0,^w/t,^c/t include=gradients/* "
    "cross-replica-sum=gradients/m_grad/MatMul_1:0,gradients/a_grad/Reshape:0}",
    "--feed=x=split",
)
def training_step(b):
    w, c = b.variable("w", (4, 3))[0], b.variable("c", (3,))[0]

    def computation(x):
        wr, cr = b.read(w, "wr"), b.read(c, "cr")
        loss = tf.reduce_mean(tf.add(tf.matmul(x, wr, name="m"), cr, name="a"), name="l")
        grads = tf.gradients(loss, [wr, cr])
        rate = tf.constant(0.1, name="rate")
        train = []
        for handle, name, grad in ((w, "w", grads[0]), (c, "c", grads[1])):
            total = b.cross_replica_sum(grad)
            train.append(tf.raw_ops.ResourceApplyGradientDescent(var=handle, alpha=rate, delta=total, name=name + "/t"))
        return [loss] + train

    b.replicate(computation, b.split(b.x()))
