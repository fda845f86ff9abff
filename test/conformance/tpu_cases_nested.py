# SPDX-License-Identifier: Apache-2.0
"""Computations for `tpu-replicate`: nested control flow, gradients of it, padding, devices, captured variables."""

import tensorflow as tf
from tpu_build import case, functional

tf1 = tf.compat.v1


@case("tpu-replicate{replicas=2 inputs=x:0,z:0 outputs=y:0 maximum-shapes=?x4,5x3}", "--feed=x=split", "--feed=z=split")
def maximum_shapes_of_two(b):
    options = {"maximum_shapes": [tf.TensorShape([None, 4]), tf.TensorShape([5, 3])]} if b.tpu else {}
    inputs = b.split(b.x()), b.split(b.x("z", (4, 3)))
    b.replicate(lambda x, z: tf.add(tf.reduce_sum(x), tf.reduce_sum(z), name="y"), *inputs, **options)


@case("tpu-replicate{replicas=2 inputs=x:0,z:0 outputs=y:0 maximum-shapes=8x4,none}", "--feed=x=split", "--feed=z=split")
def maximum_shape_of_one(b):
    options = {"maximum_shapes": [tf.TensorShape([8, 4]), None]} if b.tpu else {}
    inputs = b.split(b.x()), b.split(b.x("z", (None, 3)))
    b.replicate(lambda x, z: tf.add(tf.reduce_sum(x), tf.reduce_sum(z), name="y"), *inputs, **options)


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=w/Exit_1:0 captures=p:0}", "--feed=x=split")
def branch_in_a_loop_of_version_1(b):
    p = tf1.placeholder(tf.bool, (), name="p")

    def computation(x):
        def body(i, a):
            return i + 1, tf1.cond(p, lambda: a + 1.0, lambda: tf.constant(2.0, name="k") * a)

        return tf1.while_loop(lambda i, a: i < 3, body, [0, x], name="w")[1]

    b.replicate(computation, b.split(b.x()))


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=w/Exit_1:0}", "--feed=x=split")
def loop_in_a_loop_of_version_1(b):
    def computation(x):
        def body(i, a):
            inner = tf1.while_loop(lambda j, c: j < 2, lambda j, c: (j + 1, c * 2.0), [0, a])
            return i + 1, inner[1]

        return tf1.while_loop(lambda i, a: i < 3, body, [0, x], name="w")[1]

    b.replicate(computation, b.split(b.x()))


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=w:3 include=w/*}", "--feed=x=split")
def functional_branch_in_a_functional_loop(b):
    def computation(x):
        def body(i, a):
            return i + 1, tf1.cond(i > 1, lambda: a * 2.0, lambda: a + 1.0)

        with functional():
            return tf1.while_loop(lambda i, a: i < 3, body, [0, x], name="w")[1].op.inputs[0]

    b.replicate(computation, b.split(b.x()))


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=g:0 include=w/*,*gradients/*,l*}", "--feed=x=split")
def gradient_of_a_functional_branch(b):
    p = tf1.placeholder(tf.bool, (), name="p")

    def computation(x):
        with functional():
            out = tf1.cond(p, lambda: x * x, lambda: x * 3.0, name="w")
            return tf.identity(tf.gradients(tf.reduce_sum(out, name="l"), x)[0], name="g")

    b.replicate(computation, b.split(b.x()))


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=w:3 mirrored-variables=v include=w/*}", "--feed=x=split", scope="cluster")
def mirrored_variable_of_a_functional_loop(b):
    handles = b.variable(copies="{}/replica_{}")

    def computation(x):
        v = b.replicated("v", handles, True)
        with functional():
            loop = tf1.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a + b.read(v)), [0, x], name="w")
            return loop[1].op.inputs[0]

    b.replicate(computation, b.split(b.x()))


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=w/Exit_1:0 mirrored-variables=v}", "--feed=x=split", scope="cluster")
def mirrored_variable_of_a_loop_of_version_1(b):
    handles = b.variable(copies="{}/replica_{}")

    def computation(x):
        v = b.replicated("v", handles, True)
        return tf1.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a + b.read(v)), [0, x], name="w")[1]

    b.replicate(computation, b.split(b.x()))


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=y:0,x:0,c:0 captures=c:0 device=/job:worker combine=concat(0),concat(0),first}", "--feed=x=split")
def outputs_that_are_inputs_and_captured(b):
    x, c = b.x(), tf.constant(2.0, name="c")

    def computation(x):
        return tf.multiply(x, c, name="y"), x, c

    with tf1.device("/job:worker"):
        b.replicate(computation, b.split(x))


@case("tpu-replicate{replicas=2 inputs=x:0,x:0 outputs=y:0}", "--feed=x=split")
def one_tensor_twice(b):
    x = b.x()
    b.replicate(lambda p, q: tf.negative(p, name="y"), b.split(x), b.split(x))


@case("tpu-replicate{replicas=2 inputs=x:0 outputs=q/Merge:0 captures=p:0}", "--feed=x=split")
def branch_with_an_unused_result(b):
    p = tf1.placeholder(tf.bool, (), name="p")

    def computation(x):
        return tf1.cond(p, lambda: (x + 1.0, x * 2.0), lambda: (x - 1.0, tf.exp(x)), name="q")[0]

    b.replicate(computation, b.split(b.x()))
