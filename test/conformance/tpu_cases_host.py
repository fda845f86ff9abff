# SPDX-License-Identifier: Apache-2.0
"""Computations for `mark-outside-compilation`: host ops, their control edges, gradients, control flow, cores, sums."""

import tensorflow as tf
from tpu_build import HOST, case, chained_ids, functional

tf1 = tf.compat.v1
ONE = "tpu-replicate{replicas=2 inputs=x:0 outputs=y:0 %s}"


def plain(more=""):
    return (ONE % more).replace(" }", "}")


def scoped(name, function):
    """`function` in a scope, so that a GLOB can name its ops."""

    def inner(*args):
        with tf.name_scope(name):
            return function(*args)

    return inner


def _one_host_op(b):
    def computation(x):
        h = b.outside(scoped("host", lambda x: tf.exp(x, name="e")), tf.negative(x, name="n"))
        return tf.add(h, 1.0, name="y")

    b.replicate(computation, b.split(b.x()))


@case(plain() + ",mark-outside-compilation{ops=host/*}", "--feed=x=split")
def host_op(b):
    _one_host_op(b)


@case("mark-outside-compilation{ops=host/*}," + plain(), "--feed=x=split")
def host_op_marked_first(b):
    _one_host_op(b)


@case("mark-outside-compilation{types=Exp}," + plain(), "--feed=x=split")
def host_op_by_type(b):
    _one_host_op(b)


@case(plain(), "--feed=x=split")
def host_op_by_attribute(b):
    def computation(x):
        negative = tf.negative(x, name="n")
        if b.tpu:
            h = b.outside(lambda x: tf.exp(x, name="e"), negative)
        else:
            with tf1.get_default_graph()._attr_scope({HOST: tf1.AttrValue(s=b"0")}):
                h = tf.exp(negative, name="e")
        return tf.add(h, 1.0, name="y")

    b.replicate(computation, b.split(b.x()))


@case(
    plain() + ",mark-outside-compilation{ops=a/*},mark-outside-compilation{ops=b/*},mark-outside-compilation{ops=c/*}",
    "--feed=x=split",
)
def three_host_clusters(b):
    def computation(x):
        for name in "abc":
            x = b.outside(scoped(name, lambda x: tf.exp(tf.multiply(x, 2.0))), tf.negative(x))
        return tf.add(x, 1.0, name="y")

    b.replicate(computation, b.split(b.x()))


@case(plain("captures=^c,^n include=host/*") + ",mark-outside-compilation{ops=host/e}", "--feed=x=split")
def host_op_with_control_edges(b):
    c, n = tf.constant(1.0, name="c"), tf.no_op(name="n")

    def computation(x):
        first = tf.negative(x, name="f")

        def host(x):
            with tf.control_dependencies([first, c, n]):
                return tf.exp(x, name="e")

        h = b.outside(scoped("host", host), tf.abs(x, name="a"))
        with tf.control_dependencies([h]):
            return tf.add(tf.identity(x, name="i"), 1.0, name="y")

    b.replicate(computation, b.split(b.x()))


@case("mark-outside-compilation{ops=host/e}," + plain("captures=^c include=host/*"), "--feed=x=split")
def control_edge_of_a_host_op_marked_first(b):
    c = tf.constant(1.0, name="c")

    def computation(x):
        def host(x):
            with tf.control_dependencies([c]):
                return tf.exp(x, name="e")

        return tf.add(b.outside(scoped("host", host), x), 1.0, name="y")

    b.replicate(computation, b.split(b.x()))


@case(plain() + ",mark-outside-compilation{ops=y}", "--feed=x=split")
def host_op_is_the_output(b):
    b.replicate(lambda x: b.outside(lambda x: tf.exp(x, name="y"), tf.negative(x, name="n")), b.split(b.x()))


@case(plain() + ",mark-outside-compilation{ops=host/*}", "--feed=x=split")
def host_op_of_an_input(b):
    def computation(x):
        return tf.add(b.outside(scoped("host", lambda x: tf.exp(x, name="e")), x), x, name="y")

    b.replicate(computation, b.split(b.x()))


@case(
    "tpu-replicate{replicas=2 inputs=x:0 outputs=y:0},mark-outside-compilation{ops=h0/*},"
    "tpu-replicate{replicas=2 inputs=z:0 outputs=w:0},mark-outside-compilation{ops=h1/*}",
    "--feed=x=split",
    "--feed=z=split",
)
def host_ops_of_two_computations(b):
    x, z = b.x(), b.x("z")
    b.replicate(lambda x: tf.add(b.outside(scoped("h0", tf.exp), x), 1.0, name="y"), b.split(x))
    b.replicate(lambda z: tf.add(b.outside(scoped("h1", tf.exp), z), 1.0, name="w"), b.split(z))


# --- Cores and devices. ---


def _on_core(b, clusters):
    def computation(x):
        for name, core in clusters:
            with tf1.device(tf1.tpu.core(core)):
                x = b.outside(scoped(name, lambda x: tf.exp(tf.multiply(x, 2.0))), x)
            x = tf.negative(x)
        return tf.add(x, 1.0, name="y")

    b.replicate(computation, b.split(b.x()))


@case(plain() + ",mark-outside-compilation{ops=a/*}", "--feed=x=split")
def host_op_on_a_core(b):
    _on_core(b, [("a", 1)])


@case("mark-outside-compilation{ops=a/*}," + plain(), "--feed=x=split")
def host_op_on_a_core_marked_first(b):
    _on_core(b, [("a", 1)])


@case(plain() + ",mark-outside-compilation{ops=a/*},mark-outside-compilation{ops=c/*}", "--feed=x=split")
def host_ops_on_two_cores(b):
    _on_core(b, [("a", 1), ("c", 0)])


# --- Gradients. ---


def _gradient_case(b, calls):
    def computation(x):
        t = tf.tanh(x, name="t")
        h = b.outside(scoped("host", lambda t: tf.sin(tf.exp(t, name="e"), name="s")), t)
        loss = tf.reduce_sum(tf.multiply(h, t, name="m"), name="l")
        return calls(x, loss)

    b.replicate(computation, b.split(b.x()))


def _gradients(y, x, name="gradients"):
    return tf1.gradients(y, x, colocate_gradients_with_ops=True, name=name)[0]


GRAD = plain("include=l,m,*gradients*") + ",mark-outside-compilation{ops=host/*}"


@case(GRAD, "--feed=x=split")
def gradient_of_a_host_op(b):
    _gradient_case(b, lambda x, l: tf.identity(_gradients(l, x), name="y"))


@case(GRAD.replace("l,m,", "l,m,Mul*,"), "--feed=x=split")
def two_gradient_calls(b):
    _gradient_case(b, lambda x, l: tf.add(_gradients(l, x), _gradients(tf.multiply(l, 3.0), x), name="y"))


@case(GRAD, "--feed=x=split")
def gradient_in_a_scope(b):
    def calls(x, l):
        with tf.name_scope("train"):
            g = _gradients(l, x)
        return tf.identity(g, name="y")

    _gradient_case(b, calls)


@case(plain("include=l,*gradients*") + ",mark-outside-compilation{ops=host/*}", "--feed=x=split")
def gradient_summed_in_a_host_op(b):
    def computation(x):
        t = tf.tanh(x, name="t")
        h = b.outside(scoped("host", lambda t: tf.exp(t, name="e")), t)
        loss = tf.reduce_sum(tf.multiply(h, tf.sin(h, name="s"), name="m"), name="l")
        with tf.name_scope("train"):
            g = _gradients(loss, x)
        return tf.identity(g, name="y")

    b.replicate(computation, b.split(b.x()))


def _twice(x, l):
    first = _gradients(l, x)
    return tf.identity(_gradients(tf.reduce_sum(tf.square(first, name="q"), name="l2"), x), name="y")


SECOND = plain("include=l,m,q,l2,*gradients*") + ",mark-outside-compilation{ops=host/*%s}"


@case(SECOND % "", "--feed=x=split")
def gradient_of_a_gradient(b):
    _gradient_case(b, _twice)


@case(SECOND % " gradient-ids=chained", "--feed=x=split", around=chained_ids)
def gradient_of_a_gradient_chained(b):
    _gradient_case(b, _twice)


@case(
    GRAD.replace("l,m,", "l,m,Mul*,").replace("host/*", "host/* gradient-ids=chained"),
    "--feed=x=split",
    around=chained_ids,
)
def two_gradient_calls_chained(b):
    _gradient_case(b, lambda x, l: tf.add(_gradients(l, x), _gradients(tf.multiply(l, 3.0), x), name="y"))


# --- Control flow. ---


@case(plain("include=w/*").replace("y:0", "w/Exit_1:0") + ",mark-outside-compilation{ops=w/host/*}", "--feed=x=split")
def host_op_in_a_loop_of_version_1(b):
    def computation(x):
        def body(i, a):
            return i + 1, b.outside(scoped("host", lambda a: tf.exp(a) * 2.0), a)

        return tf1.while_loop(lambda i, a: i < 3, body, [0, x], name="w")[1]

    b.replicate(computation, b.split(b.x()))


@case(
    plain("include=q/* captures=p:0").replace("y:0", "q/Merge:0") + ",mark-outside-compilation{ops=q/host/*}",
    "--feed=x=split",
)
def host_op_in_a_branch_of_version_1(b):
    p = tf1.placeholder(tf.bool, (), name="p")

    def computation(x):
        return tf1.cond(p, lambda: b.outside(scoped("host", lambda x: tf.exp(x) * 2.0), x), lambda: x * 2.0, name="q")

    b.replicate(computation, b.split(b.x()))


@case(plain("include=w/*").replace("y:0", "w:3") + ",mark-outside-compilation{ops=w_body*:host/*}", "--feed=x=split")
def host_op_in_a_functional_loop(b):
    def computation(x):
        def body(i, a):
            return i + 1, b.outside(scoped("host", lambda a: tf.exp(a) * 2.0), a)

        with functional():
            return tf1.while_loop(lambda i, a: i < 3, body, [0, x], name="w")[1].op.inputs[0]

    b.replicate(computation, b.split(b.x()))


def _host_in_branch(b):
    p = tf1.placeholder(tf.bool, (), name="p")

    def computation(x):
        def branch():
            return b.outside(scoped("host", lambda x: tf.exp(x) * 2.0), x)

        with functional():
            return tf1.cond(p, branch, lambda: x * 2.0, name="q").op.inputs[0]

    b.replicate(computation, b.split(b.x()))


@case(plain("include=q/*").replace("y:0", "q:0") + ",mark-outside-compilation{ops=q_true*:host/*}", "--feed=x=split")
def host_op_in_a_functional_branch(b):
    _host_in_branch(b)


@case("mark-outside-compilation{ops=q_true*:host/*}," + plain("include=q/*").replace("y:0", "q:0"), "--feed=x=split")
def host_op_in_a_functional_branch_marked_first(b):
    _host_in_branch(b)


@case(plain("include=q/*") + ",mark-outside-compilation{types=Exp}", "--feed=x=split")
def host_op_in_a_branch_by_type(b):
    p = tf1.placeholder(tf.bool, (), name="p")

    def computation(x):
        with functional():
            q = tf1.cond(p, lambda: b.outside(tf.exp, x), lambda: x * 2.0, name="q").op.outputs[0]
        return tf.add(q, 1.0, name="y")

    b.replicate(computation, b.split(b.x()))


@case(
    plain("include=q/*") + ",mark-outside-compilation{ops=h0/*},mark-outside-compilation{ops=q_true*:h1/*},"
    "mark-outside-compilation{ops=h2/*}",
    "--feed=x=split",
)
def host_ops_in_a_branch_and_outside_it(b):
    p = tf1.placeholder(tf.bool, (), name="p")

    def computation(x):
        x = b.outside(scoped("h0", tf.exp), x)

        def branch():
            return b.outside(scoped("h1", lambda x: tf.exp(x) * 2.0), x)

        with functional():
            q = tf1.cond(p, branch, lambda: x * 2.0, name="q").op.outputs[0]
        return tf.add(b.outside(scoped("h2", tf.exp), tf.negative(q)), 1.0, name="y")

    b.replicate(computation, b.split(b.x()))


# No case has the gradient of a functional branch with host ops: outside of a computation TensorFlow hands what the
# branch computed to its gradient in optionals, so the plain graph has other ops.


# --- Variables and sums. ---


@case(
    plain("mirrored-variables=v") + ",mark-outside-compilation{ops=host/*}",
    "--feed=x=split",
    scope="cluster",
)
def host_op_reads_a_mirrored_variable(b):
    handles = b.variable(copies="{}/replica_{}")

    def computation(x):
        def host(x):
            return tf.add(x, b.read(b.replicated("v", handles, True)), name="a")

        return tf.negative(b.outside(scoped("host", host), tf.exp(x)), name="y")

    b.replicate(computation, b.split(b.x()))


@case(plain("cross-replica-sum=s:0") + ",mark-outside-compilation{ops=host/*}", "--feed=x=split")
def host_op_reads_a_sum(b):
    def computation(x):
        total = b.cross_replica_sum(tf.reduce_sum(x, 0, name="s"))
        return tf.add(b.outside(scoped("host", tf.exp), total), 1.0, name="y")

    b.replicate(computation, b.split(b.x()))
