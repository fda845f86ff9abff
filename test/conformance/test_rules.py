# SPDX-License-Identifier: Apache-2.0
"""The rules of lib/infer/rules against TensorFlow, op by op.

One graph holds every op that this file can build, on slices of a batch, partial sums and true values. It is rewritten
for 2 and 3 replicas, and every result is fetched from both graphs: a result whose type is wrong, N^-k * combine(local),
is put together wrongly. What a rule must not relate has to come with a warning.
"""

import re

import harness
import numpy as np
import pytest
import rule_coverage
import tensorflow as tf

tf1 = tf.compat.v1
raw = tf.raw_ops

ROWS = 12


# Ops on strings, with their attributes.
STRINGS = {
    "DecodeBase64": {},
    "DecodeCompressed": {},
    "EncodeBase64": {},
    "StaticRegexFullMatch": {"pattern": "1|2"},
    "StaticRegexReplace": {"pattern": "1", "rewrite": "one"},
    "StringLength": {},
    "StringLower": {},
    "StringStrip": {},
    "StringToHashBucket": {"num_buckets": 9},
    "StringToHashBucketStrong": {"num_buckets": 9, "key": [1, 2]},
    "StringUpper": {},
    "UnicodeTranscode": {"input_encoding": "UTF-8", "output_encoding": "UTF-16-BE"},
}


def families():
    """Op by op: its rule of sizes and its rule of types."""
    return {op: (entry.get("Sizes"), entry.get("Type")) for op, entry in rule_coverage.entries().items()}


class Feeds:
    """Placeholders whose axis 0 is the batch, and what is made of them."""

    SPLIT = "x y image volume spd color series ids ints bits".split()

    def __init__(self):
        random = np.random.RandomState(7)
        matrix = random.randn(ROWS, 3, 3)
        self.values = {
            "x": random.uniform(0.1, 0.9, (ROWS, 4)),
            "y": random.uniform(0.1, 0.9, (ROWS, 4)),
            "image": random.uniform(0.1, 0.9, (ROWS, 4, 4, 2)),
            "volume": random.uniform(0.1, 0.9, (ROWS, 4, 4, 4, 2)),
            "spd": matrix @ matrix.transpose(0, 2, 1) + 3 * np.eye(3),
            "color": random.uniform(0.1, 0.9, (ROWS, 3)),
            "series": random.uniform(0.1, 0.9, (ROWS, 5, 4)),
            "ids": random.randint(0, 4, (ROWS,)),
            "ints": random.randint(1, 7, (ROWS, 4)),
            "bits": random.randint(0, 2, (ROWS, 4)),
        }
        self.placeholders = {}
        for name, value in self.values.items():
            kind = np.int32 if value.dtype.kind == "i" else np.float32
            if name == "bits":
                kind = np.bool_
            self.values[name] = value.astype(kind)
            shape = [None, *value.shape[1:]]
            self.placeholders[name] = tf1.placeholder(kind, shape, name=name)
            setattr(self, name, self.placeholders[name])
        self.row = tf1.get_variable("row", initializer=np.linspace(0.2, 0.8, 4).astype(np.float32))
        self.table = tf1.get_variable("table", initializer=random.randn(4, 5).astype(np.float32))
        self.filter = tf1.get_variable("filter", initializer=random.randn(2, 2, 2, 3).astype(np.float32))
        self.filter3 = tf1.get_variable("filter3", initializer=random.randn(2, 2, 2, 2, 3).astype(np.float32))
        self.part = tf.reduce_sum(self.x, 0)  # Partial(sum)
        self.mean = tf.reduce_mean(self.x, 0)  # Partial(sum) k=1
        self.small = self.part / 100.0
        self.turned = tf.transpose(self.x)  # Sharded(1)


def unary(op, f):
    """An element-wise op on a slice and on a partial sum that lies in (0, 1)."""
    attr = {"FakeQuantWithMinMaxArgs": {}, "Bucketize": {"boundaries": [0.2, 0.4, 0.6]}}.get(op, {})
    make = getattr(raw, op)
    argument = tf1.get_default_graph().op_def_for_type(op).input_arg[0].name
    result = {}
    for kind, tensor in {"slice": f.x, "part": f.small, "turned": f.turned}.items():
        if op in ("Invert", "PopulationCount", "UnicodeScript"):
            tensor = tf.cast(tensor * 100, tf.int32) if kind != "part" else tf.reduce_sum(f.ints, 0)
        elif op in ("ComplexAbs", "Angle"):
            tensor = raw.Complex(real=tensor, imag=tensor * 2)
        elif op == "LogicalNot":
            tensor = tensor > 0.5
        elif op == "AsString":
            tensor = f.ints
        elif op == "StringToHashBucketFast":
            tensor, attr = tf.as_string(f.ints), {"num_buckets": 100}
        elif op in STRINGS:
            tensor, attr = tf.as_string(f.ints), STRINGS[op]
            if op == "DecodeBase64":
                tensor = raw.EncodeBase64(input=tensor)
        elif op == "StringToNumber":
            tensor = tf.as_string(f.ints)
        elif op == "Acosh":
            tensor = tensor + 1.0
        result[kind] = make(**{argument: tensor}, **attr)
    return result


def binary(op, f):
    """An element-wise op with broadcasting."""
    make, names = getattr(raw, op), [a.name for a in tf1.get_default_graph().op_def_for_type(op).input_arg]
    if op in ("ClipByValue", "FakeQuantWithMinMaxVars"):
        arguments = {"slice": (f.x, 0.2, 0.7), "part": (f.small, 0.0, 0.1)}
        if op == "ClipByValue":
            arguments["bounds"] = (f.row * 1.0, tf.reduce_min(f.x), tf.reduce_max(f.y))
    elif op == "Betainc":
        arguments = {"slice": (f.x, f.y, f.x), "part": (f.small, f.small, f.row * 1.0)}
    elif op.startswith("Logical"):
        arguments = {"slice": (f.bits, f.x > 0.5), "row": (f.bits, tf.constant([True, False, True, True]))}
    elif op.startswith("Bitwise") or op.endswith("Shift") or op in ("Mod", "TruncateMod", "TruncateDiv"):
        total = tf.reduce_sum(f.ints, 0)
        arguments = {"slice": (f.ints, f.ints + 1), "part": (total, tf.constant([1, 2, 3, 2]))}
    elif op == "Substr":
        words = tf.as_string(f.ints + 10)
        arguments = {"slice": (words, 0, 1), "row": (words, [0, 1, 0, 1], [1, 1, 2, 1])}
    elif op == "Polygamma":
        arguments = {"slice": (tf.round(f.x * 4), f.y), "part": (tf.round(f.part), f.row)}
    elif op == "Zeta":
        arguments = {"slice": (f.x + 1.5, f.y), "part": (f.part + 1.5, f.row)}
    else:
        arguments = {"slice": (f.x, f.y), "row": (f.x, f.row), "part": (f.part, f.row), "mean": (f.row, f.mean)}
        arguments["turned"] = (f.turned, tf.transpose(f.y))
    return {kind: make(**dict(zip(names, tensors))) for kind, tensors in arguments.items()}


def images(f):
    ones = [1, 1, 1, 1]
    conv = dict(strides=ones, padding="SAME")
    conv3 = dict(strides=[1] * 5, padding="SAME")
    y, y3 = raw.Conv2D(input=f.image, filter=f.filter, **conv), raw.Conv3D(input=f.volume, filter=f.filter3, **conv3)
    pool = dict(ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
    pool3 = dict(ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="VALID")
    top, average = raw.MaxPool(input=f.image, **pool), raw.AvgPool(value=f.image, **pool)
    top3, average3 = raw.MaxPool3D(input=f.volume, **pool3), raw.AvgPool3D(input=f.volume, **pool3)
    window = dict(ksize=tf.constant(pool["ksize"]), strides=tf.constant(pool["strides"]), padding="VALID")
    grad, grad3 = top * top, top3 * top3
    mean, mean3 = grad / tf.cast(tf.shape(f.image)[0], tf.float32), grad3 / tf.cast(tf.shape(f.volume)[0], tf.float32)
    resized = dict(size=tf.constant([6, 6]))
    shape, shape3 = tf.shape(f.image), tf.shape(f.volume)
    return {
        "Conv2D": [y, raw.Conv2D(input=f.image, filter=f.filter, strides=[1, 2, 2, 1], padding="VALID")],
        "Conv2DBackpropInput": [raw.Conv2DBackpropInput(input_sizes=shape, filter=f.filter, out_backprop=y, **conv)],
        "Conv2DBackpropFilter": [
            raw.Conv2DBackpropFilter(input=f.image, filter_sizes=[2, 2, 2, 3], out_backprop=y, **conv)
        ],
        "Conv3D": [y3, tf.nn.bias_add(y3, f.row[:3])],
        "Conv3DBackpropInputV2": [
            raw.Conv3DBackpropInputV2(input_sizes=shape3, filter=f.filter3, out_backprop=y3, **conv3)
        ],
        "Conv3DBackpropFilterV2": [
            raw.Conv3DBackpropFilterV2(input=f.volume, filter_sizes=[2, 2, 2, 2, 3], out_backprop=y3, **conv3)
        ],
        "MaxPool": [top],
        "AvgPool": [average],
        "MaxPool3D": [top3],
        "AvgPool3D": [average3],
        "MaxPoolV2": [raw.MaxPoolV2(input=f.image, **window)],
        "AvgPoolGrad": [raw.AvgPoolGrad(orig_input_shape=shape, grad=g, **pool) for g in (grad, mean)],
        "AvgPool3DGrad": [raw.AvgPool3DGrad(orig_input_shape=shape3, grad=g, **pool3) for g in (grad3, mean3)],
        "LRN": [raw.LRN(input=f.image)],
        "SpaceToDepth": [raw.SpaceToDepth(input=f.image, block_size=2)],
        "DepthToSpace": [raw.DepthToSpace(input=tf.concat([f.image, f.image], 3), block_size=2)],
        "ExtractImagePatches": [
            raw.ExtractImagePatches(images=f.image, ksizes=[1, 2, 2, 1], strides=ones, rates=ones, padding="VALID")
        ],
        "ResizeArea": [raw.ResizeArea(images=f.image, **resized)],
        "ResizeBicubic": [raw.ResizeBicubic(images=f.image, **resized)],
        "ResizeBilinear": [raw.ResizeBilinear(images=f.image, **resized)],
        "ResizeNearestNeighbor": [raw.ResizeNearestNeighbor(images=f.image, **resized)],
        "ResizeBilinearGrad": [raw.ResizeBilinearGrad(grads=f.image, original_image=f.image[:, 1:3, 1:3])],
        "ResizeNearestNeighborGrad": [raw.ResizeNearestNeighborGrad(grads=f.image, size=tf.constant([2, 2]))],
    }


def layouts(f):
    """Ops along axes, matrices, equations, rows by index."""
    turned = tf.transpose(f.series, [1, 0, 2])
    lengths = f.ids + 1
    pairs = tf.stack([f.ids, f.ids], 1)
    by_row, rows4 = f.ints[:, :2] % 3, tf.transpose(f.x[:, :4])
    log_det = raw.LogMatrixDeterminant(input=f.spd)
    qr = raw.Qr(input=f.spd)
    chol = raw.Cholesky(input=f.spd)
    bottom = [raw.MatrixBandPart(input=f.spd, num_lower=1, num_upper=0)]
    return {
        "Cumsum": [raw.Cumsum(x=f.x, axis=1), raw.Cumsum(x=f.part, axis=0), raw.Cumsum(x=turned, axis=-1)],
        "Cumprod": [raw.Cumprod(x=f.x, axis=1), raw.Cumprod(x=f.part, axis=0)],
        "CumulativeLogsumexp": [raw.CumulativeLogsumexp(x=f.x, axis=1)],
        "ReverseV2": [raw.ReverseV2(tensor=f.x, axis=[1]), raw.ReverseV2(tensor=turned, axis=[0, 2])],
        "Roll": [raw.Roll(input=f.x, shift=[1], axis=[1]), raw.Roll(input=f.mean, shift=[1], axis=[0])],
        "ReverseSequence": [
            raw.ReverseSequence(input=f.series, seq_lengths=lengths, seq_dim=1, batch_dim=0),
            raw.ReverseSequence(input=turned, seq_lengths=lengths, seq_dim=0, batch_dim=1),
        ],
        "EnsureShape": [raw.EnsureShape(input=f.x, shape=[None, 4])],
        "EuclideanNorm": [raw.EuclideanNorm(input=f.x, axis=[1]), raw.EuclideanNorm(input=f.part, axis=[0])],
        "Mean": [tf.reduce_mean(f.x, [0, 1]), tf.reduce_mean(tf.reduce_sum(f.ints, 0))],
        "Div": [raw.Div(x=tf.reduce_sum(f.ints, 0), y=[2, 3, 4, 5]), raw.Div(x=f.mean, y=f.row)],
        "PadV2": [
            raw.PadV2(input=f.part, paddings=[[1, 2]], constant_values=3.0),
            raw.PadV2(input=f.x, paddings=[[0, 0], [1, 0]], constant_values=3.0),
        ],
        "OneHot": [tf.one_hot(f.ids, 5), tf.one_hot(f.ids, 5, on_value=f.part[0], off_value=f.mean[1])],
        "TopKV2": [*raw.TopKV2(input=f.x, k=2)],
        "Cholesky": [chol],
        "CholeskyGrad": [raw.CholeskyGrad(l=chol, grad=f.spd)],
        "LogMatrixDeterminant": [*log_det],
        "MatrixBandPart": bottom + [raw.MatrixBandPart(input=tf.reduce_mean(f.spd, 0), num_lower=0, num_upper=1)],
        "MatrixDeterminant": [raw.MatrixDeterminant(input=f.spd)],
        "MatrixDiag": [raw.MatrixDiag(diagonal=f.x), raw.MatrixDiag(diagonal=f.part)],
        "MatrixDiagPart": [raw.MatrixDiagPart(input=f.spd)],
        "MatrixDiagPartV3": [raw.MatrixDiagPartV3(input=f.spd, k=0, padding_value=0.0)],
        "MatrixInverse": [raw.MatrixInverse(input=f.spd)],
        "MatrixSolve": [raw.MatrixSolve(matrix=f.spd, rhs=f.spd)],
        "MatrixTriangularSolve": [raw.MatrixTriangularSolve(matrix=f.spd, rhs=f.spd)],
        "Qr": [*qr],
        "SelfAdjointEigV2": [raw.SelfAdjointEigV2(input=f.spd).e],
        "Svd": [raw.Svd(input=f.spd).s],
        "RGBToHSV": [raw.RGBToHSV(images=f.color)],
        "HSVToRGB": [raw.HSVToRGB(images=f.color)],
        "Einsum": [
            raw.Einsum(inputs=[f.series, f.table], equation="bti,io->bto"),
            raw.Einsum(inputs=[f.series, f.series], equation="bti,bsi->bts"),
            raw.Einsum(inputs=[f.series, f.series], equation="bti,btj->ij"),
            raw.Einsum(inputs=[turned, f.x], equation="tbi,bj->jti"),
            raw.Einsum(inputs=[f.series], equation="bti->it"),
            raw.Einsum(inputs=[f.series], equation="bti->itb"),
            raw.Einsum(inputs=[f.mean, f.table], equation="i,io->o"),
        ],
        "GatherV2": [
            tf.gather(f.table, f.ids),
            tf.gather(f.x, [2, 0], axis=1),
            tf.gather(f.x, [[2, 0]], axis=-1),
            tf.gather(rows4, [[1, 0]], axis=0),
            tf.gather(f.series, by_row, axis=1, batch_dims=1),
        ],
        "GatherNd": [tf.gather_nd(f.table, pairs), tf.gather_nd(f.table, pairs[:, :1]), tf.gather_nd(f.part, [[1]])],
        "ScatterNd": [
            tf.scatter_nd(pairs[:, :1], f.x, [5, 4]),
            tf.scatter_nd(pairs, f.x[:, 0] / tf.cast(tf.shape(f.x)[0], tf.float32), [4, 4]),
            tf.scatter_nd([[1], [0]], f.mean[:2], [3]),
        ],
        "UnsortedSegmentSum": [tf.math.unsorted_segment_sum(f.x, f.ids, 4)],
        "UnsortedSegmentMax": [tf.math.unsorted_segment_max(f.x, f.ids, 5)],
        "UnsortedSegmentMin": [tf.math.unsorted_segment_min(f.x, f.ids, 5)],
        "FakeQuantWithMinMaxArgsGradient": [raw.FakeQuantWithMinMaxArgsGradient(gradients=f.x, inputs=f.y)],
        "ApproximateEqual": [raw.ApproximateEqual(x=f.x, y=f.y, tolerance=0.3)],
    }


def unrelated(f):
    """An op that mixes the rows of the batch, or reads values that replicas do not share: a warning for each."""
    lengths = f.ids + 1
    start = tf.stack([0, f.ids[0] % 2])
    return {
        "Cumsum": raw.Cumsum(x=f.x, axis=0),
        "ReverseV2": raw.ReverseV2(tensor=f.x, axis=[-2]),
        "Roll": raw.Roll(input=f.turned, shift=[1], axis=[1]),
        "ReverseSequence": raw.ReverseSequence(input=f.turned, seq_lengths=[1, 2, 3, 4], seq_dim=1, batch_dim=0),
        "EuclideanNorm": raw.EuclideanNorm(input=f.x, axis=[0]),
        "Einsum": raw.Einsum(inputs=[f.x, f.y], equation="bi,ci->bc"),
        "MatrixBandPart": raw.MatrixBandPart(input=f.x, num_lower=0, num_upper=1),
        "Cholesky": raw.Svd(input=f.x).s,
        "Slice": tf.slice(f.x, start, [-1, 2]),
        "OneHot": tf.one_hot(f.ids, tf.shape(f.x)[0]),
        "GatherV2": tf.gather(f.x, lengths[:1] * 0, axis=0),
    }


def related(f):
    """Fetches by name, `op.case`."""
    fetches = {}
    for op, (shape, kind) in sorted(families().items()):
        if kind == "types::nonLinear" and op not in ("ApproximateEqual", "OnesLike", "StringJoin") and op[0] != "_":
            made = (binary if shape == "sizes::broadcast" else unary)(op, f)
            fetches.update({f"{op}.{key}": tensor for key, tensor in made.items()})
    for group in (images(f), layouts(f)):
        for op, tensors in group.items():
            fetches.update({f"{op}.{i}": tensor for i, tensor in enumerate(tensors)})
    return fetches


def export(make, path):
    """Writes the graph of `make`. Returns its feeds, the names of its fetches, and of the step and the init op."""
    with tf.Graph().as_default() as graph:
        feeds = Feeds()
        names = {key: tf.identity(tensor).name for key, tensor in make(feeds).items()}
        step = tf1.assign_add(feeds.row, feeds.mean).op.name
        init = tf1.global_variables_initializer().name
    with open(path, "wb") as file:
        file.write(graph.as_graph_def().SerializeToString())
    return feeds.values, names, step, init


def run(graph_def, values, names, init, replicas):
    config = tf1.ConfigProto(device_count={"CPU": replicas}, inter_op_parallelism_threads=2)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    with tf.Graph().as_default() as graph:
        tf1.import_graph_def(graph_def, name="")
        with tf1.Session(graph=graph, config=config) as session:
            session.run(init)
            limit = tf1.RunOptions(timeout_in_ms=harness.RUN_TIMEOUT_MS)
            return session.run(names, {f"{k}:0": v for k, v in values.items()}, options=limit)


def close(got, want):
    if got.shape != want.shape or got.dtype != want.dtype:
        return False
    if want.dtype.kind not in "fc":
        return np.array_equal(got, want)
    return np.allclose(got, want, rtol=2e-4, atol=2e-4, equal_nan=True)


def options(replicas, fetches):
    listed = [f"--fetch={name.removesuffix(':0')}" for name in fetches]
    return [f"--replicas={replicas}", "--device-type=CPU", *listed]


def said_of(text):
    """The nodes that errors and warnings name, and those that are warned of with them."""
    return set(re.findall(r"(?:error|warning|note): node '([^']+)'", text))


def run_alone(make, path):
    """The graph of `make`: what export() says of it, and the values of its fetches."""
    values, names, step, init = export(make, path)
    return path, values, names, step, init, run(harness.read_graph_def(path), values, names, init, 1)


def check_related(program, replicas, out):
    """Rewritten to `out` without a warning of what is fetched, every fetch has the value of the single-device graph."""
    path, values, names, step, init, want = program
    done = harness.run_graft([path, "-o", out, *options(replicas, [*names.values(), step, init])])
    warned = said_of(done.stderr)
    loose = [key for key, name in names.items() if name.split(":")[0] in warned]
    assert not loose, f"not related: {loose}\n{done.stderr}"
    got = run(harness.read_graph_def(out), values, names, init, replicas)
    wrong = [
        f"{key}: {got[key].ravel()[:4]}, not {want[key].ravel()[:4]}" for key in names if not close(got[key], want[key])
    ]
    assert not wrong, "\n".join(wrong)


def check_unrelated(make, path):
    """Each fetch of the graph of `make` is refused, or warned of."""
    _, names, step, init = export(make, path)
    # --strict names all nodes of equal warnings.
    flags = ["--emit=none", "--strict", "--fallback=mean", *options(3, [*names.values(), step, init])]
    done = harness.run_graft([path, *flags], check=False)
    warned = said_of(done.stderr)
    missed = [key for key, name in names.items() if name.split(":")[0] not in warned]
    assert not missed, f"related without a reason: {missed}"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return run_alone(related, str(tmp_path_factory.mktemp("rules") / "rules.pb"))


@pytest.mark.parametrize("replicas", [2, 3])
def test_every_rule(program, replicas, tmp_path):
    check_related(program, replicas, str(tmp_path / "out.pb"))


def test_unrelated(tmp_path):
    check_unrelated(unrelated, str(tmp_path / "unrelated.pb"))
