# SPDX-License-Identifier: Apache-2.0
"""Genes: what published models are made of: spectral norm, capsules, mixtures, chains of labels, batches that are compared with
themselves, samples of classes that are given, target networks, memories; and ops under the names that TensorFlow 1 wrote."""

import numpy as np
import tensorflow.compat.v2 as tf
from families import activation, is_matrix, is_rows, is_series, is_vector
from genes import Illegal, gene, tf1
from habits import unwritten
from lookups import is_ids
from training import finish, keep, step_of, total

raw = tf.raw_ops


def value_of(c, g, key):
    """A number for each row."""
    x = c.pick(g, key, lambda t: is_vector(t) or is_matrix(t))
    return x.tensor if x.rank == 1 else tf.reduce_sum(x.tensor, 1)


@gene("op", 1)
def old_names(c, g):
    """Ops that are written otherwise today."""
    x = c.pick(g, 0, is_rows)
    t, how = x.tensor, g.below(6)
    if how == 0:
        h = raw.Add(x=t, y=c.variable(g, x.shape[-1:]) * 1.0)
    elif how == 1:
        h = raw.Pad(input=t, paddings=[[0, 0]] * (x.rank - 1) + [[1, g.below(2)]])
        c.add(h, 0)
        return
    elif how == 2:
        h = raw.Select(condition=raw.Less(x=t, y=raw.ZerosLike(x=t)), x=t * 0.1, y=t)
    elif how == 3:
        h = raw.Mul(x=t, y=raw.Cast(x=raw.LogicalOr(x=t > 0.2, y=raw.LogicalNot(x=t > -0.2)), DstT=c.dtype))
    elif how == 4:
        h = tf1.Print(t, [tf.shape(t)], first_n=0)
    else:
        h = tf1.div(t, tf1.to_float(1.5) if c.dtype == tf.float32 else tf.cast(1.5, c.dtype))
    c.add(h, 0, x.shape)


@gene("op", 1)
def along_features(c, g):
    """Products, sums and greatest values of what comes before, either way."""
    x = c.pick(g, 0, is_rows)
    axis = g.choice([1, -1])
    how = g.below(4)
    if how == 0:
        h = tf.math.cumprod(1.0 + 0.1 * tf.tanh(x.tensor), axis, exclusive=g.chance(0.5), reverse=g.chance(0.5))
    elif how == 1:
        h = tf.cumsum(x.tensor, axis, exclusive=g.chance(0.5), reverse=g.chance(0.5)) * 0.3
    elif how == 2:
        h = tf.math.cumulative_logsumexp(x.tensor, axis, reverse=g.chance(0.5))
    else:
        h = tf.math.l2_normalize(x.tensor, axis, epsilon=1e-2) * tf.exp(tf.reduce_logsumexp(x.tensor, axis, keepdims=True) * 0.2)
    c.add(h, 0, x.shape)


@gene("op", 1)
def diagonals(c, g):
    """Bands, diagonals and triangles of a matrix for each row; masks of what may be seen."""
    x = c.pick(g, 0, is_series)
    t = tf.matmul(x.tensor, x.tensor, transpose_b=True)
    n, how = x.shape[1], g.below(5)
    if how == 0:
        h = tf.linalg.set_diag(t, tf.reduce_sum(x.tensor, 2))
    elif how == 1:
        h = tf.linalg.band_part(t, g.below(2), -1)
    elif how == 2:
        h = tf.linalg.diag(tf.reduce_sum(x.tensor, 2))
    elif how == 3:
        seen = tf.linalg.band_part(tf.ones([n, n], c.dtype), -1, 0)
        h = tf.nn.softmax(t + (1.0 - seen) * -1e4)
    else:
        seen = tf.tile(tf.linalg.band_part(tf.ones([1, n, n], c.dtype), -1, 0), tf.stack([tf.shape(t)[0], 1, 1]))
        h = tf.nn.softmax(tf.where(tf.equal(seen, 0), tf.ones_like(t) * -1e4, t))
    c.add(h, 0, (x.shape[0], n, n))


@gene("op", 0.9)
def spectral_norm(c, g):
    """A layer whose weights are divided by their greatest singular value, of which a step improves an estimate."""
    x = c.pick(g, 0, is_matrix)
    w = c.variable(g, [x.shape[1], c.width(g)])
    u = c.variable(g, [1, w.shape[1]], value=np.abs(c.value(g, [1, int(w.shape[1])])) + 0.3, trainable=False)
    # (Read once: the update comes after that.)
    v = tf.math.l2_normalize(tf.matmul(tf.identity(u), w, transpose_b=True), epsilon=1e-3)
    now = tf.math.l2_normalize(tf.matmul(v, w), epsilon=1e-3)
    now, v = tf.stop_gradient(now), tf.stop_gradient(v)
    sigma = tf.matmul(tf.matmul(v, w), now, transpose_b=True) + 0.1
    if g.chance(0.7) and hasattr(u, "handle"):
        tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, tf1.assign(u, now).op)
    c.add(activation(g)(tf.matmul(x.tensor, w / sigma)), 0)


@gene("op", 0.8)
def capsules(c, g):
    """Votes that are routed to where they agree: a product with a batch of matrices, and a softmax that goes round."""
    x = c.pick(g, 0, is_series)
    _, n, width = x.shape
    out, size = 2, 3
    w = c.variable(g, [1, n, out, width, size])
    u = tf.tile(tf.reshape(x.tensor, [-1, n, 1, 1, width]), [1, 1, out, 1, 1])
    votes = tf.squeeze(tf.matmul(u, tf.tile(w, tf.stack([tf.shape(u)[0], 1, 1, 1, 1]))), [3])
    logits = tf.zeros(tf.stack([tf.shape(x.tensor)[0], n, out, 1]), c.dtype)
    for turn in range(2):
        s = tf.reduce_sum(tf.nn.softmax(logits, 2) * votes, 1, keepdims=True)
        norm = tf.reduce_sum(tf.square(s), -1, keepdims=True)
        s = norm / (1.0 + norm) * s / tf.sqrt(norm + 1e-2)
        if turn == 0:
            logits += tf.reduce_sum(votes * (tf.stop_gradient(s) if g.chance(0.3) else s), -1, keepdims=True)
    c.add(tf.squeeze(s, 1), 0, (x.shape[0], out, size))


@gene("op", 0.8)
def squeeze_and_excite(c, g):
    """A layer is multiplied by a function of itself: a highway, a gate for channels, a mixture of experts."""
    x = c.pick(g, 0, is_rows)
    n, how = x.shape[-1], g.below(3)
    if how == 0 and x.rank == 2:
        gate = tf.sigmoid(tf.matmul(x.tensor, c.variable(g, [n, n])) - 1.0)
        h = gate * tf.tanh(tf.matmul(x.tensor, c.variable(g, [n, n]))) + (1.0 - gate) * x.tensor
    elif how == 1 and x.rank > 2:
        mean = tf.reduce_mean(x.tensor, list(range(1, x.rank - 1)))
        gate = tf.sigmoid(tf.matmul(tf.nn.relu(tf.matmul(mean, c.variable(g, [n, 2]))), c.variable(g, [2, n])))
        h = x.tensor * tf.reshape(gate, [-1] + [1] * (x.rank - 2) + [n])
    else:
        flat = tf.reshape(x.tensor, [-1, n])
        gates = tf.nn.softmax(tf.matmul(flat, c.variable(g, [n, 3])))
        experts = tf.reshape(tf.matmul(flat, c.variable(g, [n, 3 * n])), [-1, 3, n])
        h = tf.reshape(tf.reduce_sum(tf.expand_dims(gates, 2) * experts, 1), tf.shape(x.tensor))
    c.add(h, 0, x.shape)


@gene("op", 0.8)
def memory(c, g):
    """A memory that all rows read by how alike they are; it may be written by the step, of the mean of the batch."""
    x = c.pick(g, 0, is_matrix)
    written = g.chance(0.5)
    variable = c.variable(g, [4, x.shape[1]], trainable=not written)
    m = tf.identity(variable)
    like = tf.matmul(tf.math.l2_normalize(x.tensor, 1, 1e-2), tf.math.l2_normalize(m, 1, 1e-2), transpose_b=True)
    read = tf.matmul(tf.nn.softmax(like * 2.0), m)
    if written and hasattr(variable, "handle"):
        update = tf.matmul(tf.nn.softmax(like * 2.0), x.tensor, transpose_a=True) / tf.cast(tf.shape(x.tensor)[0], c.dtype)
        tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, tf1.assign(variable, m * 0.9 + 0.1 * update).op)
    c.add(tf.concat([x.tensor, read], 1), 0, (x.shape[0], 2 * x.shape[1]))


@gene("op", 0.8)
def nearest_codes(c, g):
    """Each row takes the code that is nearest to it, and the gradient goes past that."""
    x = c.pick(g, 0, is_matrix)
    codes = c.variable(g, [5, x.shape[1]])
    far = tf.reduce_sum(tf.square(x.tensor), 1, keepdims=True) - 2.0 * tf.matmul(x.tensor, codes, transpose_b=True)
    at = tf.argmin(far + tf.reduce_sum(tf.square(codes), 1), 1, output_type=tf.int32)
    code = tf.gather(codes, at)
    used = tf.reduce_mean(tf.one_hot(at, 5, dtype=c.dtype), 0)
    c.add(-tf.reduce_sum(used * tf.math.log(used + 0.1)), None, ())
    c.add(x.tensor + tf.stop_gradient(code - x.tensor), 0, x.shape)
    c.add(code, 0, x.shape)


@gene("op", 1.2)
def masked_steps(c, g):
    """Steps that a condition selects where time is first, in one axis with the rows or not; put back, or added up."""
    x = c.pick(g, 0, is_series)
    t = tf.transpose(x.tensor, [1, 0, 2])
    flat = tf.reshape(t, [-1, x.shape[2]])
    mask = t[:, :, 0] > (0.0 if g.chance(0.6) else tf.reduce_mean(x.tensor[:, :, 0]))
    if g.chance(0.4):
        tf.identity(tf.tanh(flat), name=f"steps{c.gene.number}")  # nothing reads it
    chosen = tf.boolean_mask(t, mask) if g.chance(0.6) else tf.gather(flat, tf.where(tf.reshape(mask, [-1]))[:, 0])
    w = c.variable(g, [x.shape[2], x.shape[2]])
    chosen = tf.tanh(tf.matmul(chosen, w))
    how = g.below(4)
    if how == 0:
        h = tf.reduce_sum(chosen, 0) / (tf.cast(tf.shape(chosen)[0], c.dtype) + 1.0)
        c.add(h, None, (x.shape[2],))
    elif how == 1:
        like = g.chance(0.5) and t.shape.is_fully_defined()
        shape = tf.constant(t.shape.as_list(), tf.int64) if like else tf.shape(t, out_type=tf.int64)
        h = tf.scatter_nd(tf.where(mask), chosen, shape)
        c.add(tf.transpose(h, [1, 0, 2]), 0, x.shape)
    elif how == 2:
        numbers = tf.cast(tf.argmax(chosen, 1), tf.int32)
        best = tf.gather_nd(chosen, tf.stack([tf.range(tf.size(numbers)), numbers], 1))
        c.add(tf.reduce_sum(best), None, ())
    else:
        back = tf.gather_nd(t, tf.where(mask))
        c.add(tf.reduce_sum(chosen * back, 0), None, (x.shape[2],))


@gene("op", 0.7)
def scanned(c, g):
    """scan and foldl over time, of what is put time first."""
    x = c.pick(g, 0, is_series)
    tf1.disable_control_flow_v2()
    c.v1_flow = True
    t = tf.transpose(x.tensor, [1, 0, 2])
    w = c.variable(g, [x.shape[2], x.shape[2]])
    if g.chance(0.5):
        h = tf.scan(lambda a, now: tf.tanh(tf.matmul(a, w) + now), t, initializer=tf.zeros_like(t[0]))
        c.add(tf.transpose(h, [1, 0, 2]), 0, x.shape)
    else:
        h = tf.foldl(lambda a, now: 0.5 * a + tf.tanh(tf.matmul(now, w)), t, initializer=tf.zeros_like(x.tensor[:, 0]))
        c.add(h, 0, (x.shape[0], x.shape[2]))


@gene("op", 0.7)
def beams(c, g):
    """Each row several times, one after the other, and the best of each."""
    x = c.pick(g, 0, is_matrix)
    n, k = x.shape[1], 2
    tiled = tf.reshape(tf.tile(tf.expand_dims(x.tensor, 1), [1, k, 1]), [-1, n])
    h = tf.nn.log_softmax(tf.matmul(tiled, c.variable(g, [n, 3])))
    top, at = tf.nn.top_k(tf.reshape(h, [-1, k * 3]), k)
    c.add(top, 0, (x.shape[0], k))
    parents = tf.reshape(at // 3 + tf.expand_dims(tf.range(tf.shape(at)[0]) * k, 1), [-1])
    c.add(tf.reshape(tf.gather(h, parents), [-1, k, 3]), 0, (x.shape[0], k, 3))


@gene("loss", 1)
def chain_of_labels(c, g):
    """The likelihood of a row of labels, with scores of transitions: the sum over all paths less the path."""
    x = c.pick(g, 0, is_series)
    y = c.pick(g, 1, lambda t: is_ids(t) and t.classes < 6)
    n = y.classes
    labels = (tf.expand_dims(y.tensor, 1) + tf.range(x.shape[1])) % n
    scores = tf.tensordot(x.tensor, c.variable(g, [x.shape[2], n]), [[2], [0]])
    moves = c.variable(g, [n, n])
    alpha = scores[:, 0]
    for i in range(1, x.shape[1]):
        alpha = scores[:, i] + tf.reduce_logsumexp(tf.expand_dims(alpha, 2) + moves, 1)
    if g.chance(0.5):
        path = tf.reduce_sum(tf.one_hot(labels, n, dtype=c.dtype) * scores, [1, 2])
    else:
        rows = tf.shape(scores)[0]
        at = tf.range(x.shape[1]) * n + labels
        at += tf.expand_dims(tf.range(rows) * (x.shape[1] * n), 1)
        path = tf.reduce_sum(tf.reshape(tf.gather(tf.reshape(scores, [-1]), tf.reshape(at, [-1])), tf.shape(labels)), 1)
    pairs = labels[:, :-1] * n + labels[:, 1:]
    path += tf.reduce_sum(tf.gather(tf.reshape(moves, [-1]), pairs), 1)
    keep(c, total(c, g, tf.reduce_logsumexp(alpha, 1) - path))


@gene("loss", 0.8)
def transcripts(c, g):
    """CTC of labels that are sparse; series are time first."""
    x = c.pick(g, 0, is_series)
    y = c.pick(g, 1, is_ids, lambda t: t.classes < 6)
    logits = tf.cast(tf.tensordot(x.tensor, c.variable(g, [x.shape[2], y.classes + 1]), [[2], [0]]), tf.float32)
    rows = tf.shape(y.tensor)[0]
    at = tf.stack([tf.range(rows), tf.zeros_like(y.tensor)], 1)
    labels = tf.SparseTensor(tf.cast(at, tf.int64), y.tensor, tf.cast(tf.stack([rows, 1]), tf.int64))
    lengths = tf.fill([rows], x.shape[1])
    loss = tf1.nn.ctc_loss(labels, tf.transpose(logits, [1, 0, 2]), lengths, time_major=True)
    keep(c, tf.cast(tf.reduce_mean(loss), c.dtype))


@gene("loss", 0.8)
def sampled_classes(c, g):
    """A softmax, or noise contrast, over classes that somebody drew before."""
    y = c.pick(g, 0, lambda t: is_ids(t) and t.classes < 9)
    x = c.pick(g, 1, is_matrix)
    n = y.classes
    w, b = c.variable(g, [n, x.shape[1]]), c.variable(g, [n])
    drawn = tf.constant(sorted({g.below(n) for _ in range(3)}), tf.int64)
    true = tf.cast(tf.expand_dims(y.tensor, 1), tf.int64)
    counts = (drawn, tf.ones_like(true, c.dtype) * 0.3, tf.ones_like(drawn, c.dtype) * 0.3)
    op = tf1.nn.sampled_softmax_loss if g.chance(0.5) else tf1.nn.nce_loss
    # (What counts accidental hits takes float32 alone.)
    hits = {"remove_accidental_hits": c.dtype == tf.float32 and g.chance(0.5)}
    rows = op(w, b, true, x.tensor, int(drawn.shape[0]), n, sampled_values=counts, **hits)
    keep(c, total(c, g, rows))


@gene("loss", 1)
def rows_against_rows(c, g):
    """Every row with every other: in-batch negatives, the hardest of them, pairs of a class, a kernel's mean."""
    x = c.pick(g, 0, is_matrix)
    how = g.below(4)
    a = tf.math.l2_normalize(x.tensor, 1, 1e-2)
    if how == 0:
        b = tf.math.l2_normalize(tf.matmul(x.tensor, c.variable(g, [x.shape[1]] * 2)), 1, 1e-2)
        rows = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.range(c.rows(g)), logits=tf.matmul(a, b, transpose_b=True))
        loss = tf.reduce_mean(rows)
    elif how == 1:
        like = tf.matmul(a, a, transpose_b=True)
        hard = tf.reduce_max(tf.linalg.set_diag(like, -tf.ones_like(like[:, 0])), 1)
        loss = tf.reduce_mean(tf.nn.relu(hard + 0.3))
    elif how == 2:
        y = c.pick(g, 1, is_ids)
        same = tf.cast(tf.equal(tf.expand_dims(y.tensor, 0), tf.expand_dims(y.tensor, 1)), c.dtype)
        far = tf.reduce_sum(tf.math.squared_difference(tf.expand_dims(a, 0), tf.expand_dims(a, 1)), 2)
        loss = tf.reduce_sum(same * far + (1.0 - same) * tf.nn.relu(1.0 - far)) / tf.cast(tf.size(far), c.dtype)
    else:
        mean, spread = tf.nn.moments(x.tensor, [0])
        centered = x.tensor - mean
        cov = tf.matmul(centered, centered, transpose_a=True) / tf.cast(tf.shape(x.tensor)[0], c.dtype)
        loss = tf.reduce_sum(tf.square(cov)) + tf.reduce_sum(tf.sqrt(spread + 0.1))
    keep(c, loss)


@gene("loss", 1)
def policies(c, g):
    """Advantages that are normalized over the batch, a ratio that is clipped, an entropy; a value under a mask of actions."""
    y = c.pick(g, 0, lambda t: is_ids(t) and t.classes < 9)
    x = c.pick(g, 1, is_matrix)
    r = tf.tanh(value_of(c, g, 2))
    logits = tf.matmul(x.tensor, c.variable(g, [x.shape[1], y.classes]))
    hot = tf.one_hot(y.tensor, y.classes, dtype=c.dtype)
    how = g.below(3)
    if how == 0:
        mean, spread = tf.nn.moments(r, [0])
        gain = tf.stop_gradient((r - mean) / tf.sqrt(spread + 0.1))
        logp = -tf.nn.softmax_cross_entropy_with_logits(labels=hot, logits=logits)
        ratio = tf.exp(logp - tf.stop_gradient(logp) + 0.1 * r)
        loss = -tf.reduce_mean(tf.minimum(ratio * gain, tf.clip_by_value(ratio, 0.8, 1.2) * gain))
    elif how == 1:
        value = tf.reduce_sum(logits * hot, 1)
        target = tf.stop_gradient(r + 0.9 * tf.reduce_max(logits, 1))
        error = tf.abs(value - target)
        loss = tf.reduce_mean(tf.where(error < 0.5, 0.5 * tf.square(error), 0.5 * (error - 0.25)))
    else:
        p = tf.nn.softmax(logits)
        rows = tf.range(tf.shape(p)[0])
        picked = tf.gather_nd(p, tf.stack([rows, y.tensor], 1))
        entropy = -tf.reduce_sum(p * tf.math.log(p + 1e-3), 1)
        loss = -tf.reduce_sum(tf.math.log(picked + 1e-3) * r) - 0.01 * tf.reduce_mean(entropy)
    keep(c, loss)


@gene("loss", 0.6)
def pairs_of_errors(c, g):
    """Errors of a row against each other, of a library; a likelihood with weights of rows."""
    x = c.pick(g, 0, is_matrix)
    y = c.pick(g, 1, lambda t: is_matrix(t) and t.shape == x.shape)
    if g.chance(0.5):
        loss = tf1.losses.mean_pairwise_squared_error(y.tensor, x.tensor, 1.0)
    else:
        r = c.pick(g, 2, is_vector)
        weights = tf.cast(tf.expand_dims(r.tensor > 0, 1), tf.float32)
        loss = tf1.losses.log_loss(tf.sigmoid(y.tensor), tf.sigmoid(x.tensor), weights, epsilon=1e-2)
    keep(c, loss)


@gene("loss", 0.8)
def mixture(c, g):
    """The likelihood of a value in a mixture of distributions that a row has of its own."""
    x = c.pick(g, 0, is_matrix)
    y = value_of(c, g, 1)
    out = tf.matmul(x.tensor, c.variable(g, [x.shape[1], 6]))
    pi, mu, width = tf.split(out, 3, 1)
    z = (tf.expand_dims(y, 1) - mu) * tf.exp(-tf.clip_by_value(width, -1.0, 1.0))
    rows = -tf.reduce_logsumexp(tf.nn.log_softmax(pi) - 0.5 * tf.square(z) - width, 1)
    keep(c, total(c, g, rows))


@gene("train", 0.9)
def target_network(c, g):
    """Weights that follow others: softly each step, or as a copy each second step."""
    variables = unwritten(c) if g.chance(0.3) else tf1.trainable_variables()
    followed = sorted(variables, key=lambda v: v.op.name)[:3]
    if not followed:
        raise Illegal("no weights")
    copies = [c.variable(g, v.shape, trainable=False, dtype=v.dtype.base_dtype, value=np.zeros(v.shape)) for v in followed]
    before = [c.trains[-1]] if c.trains and g.chance(0.6) else []
    if not before and c.trains:
        raise Illegal("a race with the update")
    with tf.control_dependencies(before):
        if g.chance(0.6):
            op = tf.group(*[tf1.assign(t, 0.9 * t + 0.1 * v) for t, v in zip(copies, followed)])
        else:
            due = tf.cast(tf.equal(tf.cast(step_of(c, g), tf.int32) % 2, 0), c.dtype)
            op = tf.group(*[tf1.assign(t, due * v + (1.0 - due) * t) for t, v in zip(copies, followed)])
    finish(c, g, op)
