# SPDX-License-Identifier: Apache-2.0
"""Prints a graph that has the variables of a known model, each with the op that updates it, and nothing else.

Shapes are those of the papers' code: LM1B as in Parallax's examples/lm1b (two LSTM-free embeddings, sampled softmax, one
LSTM of 2048 units projected to 512), BERT-large (24 layers, 1024 wide, 30,522 words), VGG-16 and ResNet-50 v1.5.
"""

import sys


def tensor_shape(shape):
    return "shape { " + " ".join(f"dim {{ size: {size} }}" for size in shape) + " }"


class Graph:
    def __init__(self, reference):
        self.reference = reference

    def node(self, name, op, inputs=(), **attrs):
        print(f'node {{ name: "{name}" op: "{op}"')
        for value in inputs:
            print(f'  input: "{value}"')
        for key, value in attrs.items():
            print(f'  attr {{ key: "{key}" value {{ {value} }} }}')
        print("}")

    def variable(self, name, shape):
        if self.reference:
            self.node(name, "VariableV2", dtype="type: DT_FLOAT", shape=tensor_shape(shape))
        else:
            self.node(name, "VarHandleOp", dtype="type: DT_FLOAT", shape=tensor_shape(shape), shared_name=f's: "{name}"')

    def placeholder(self, name, shape, dtype="DT_FLOAT"):
        self.node(name, "Placeholder", dtype=f"type: {dtype}", shape=tensor_shape(shape))

    def dense(self, name, *shape):
        self.variable(name, shape)
        self.placeholder(f"{name}/grad", shape)
        op = "ApplyGradientDescent" if self.reference else "ResourceApplyGradientDescent"
        self.node(f"{name}/update", op, (name, "rate", f"{name}/grad"), T="type: DT_FLOAT")

    def sparse(self, name, rows, *shape):
        """`rows` of the variable are updated in a step, each of them once as optimizers do it."""
        self.variable(name, shape)
        self.variable(f"{name}/accumulator", shape)
        self.placeholder(f"{name}/ids", (rows,), "DT_INT64")
        self.node(f"{name}/unique", "Unique", (f"{name}/ids",), T="type: DT_INT64", out_idx="type: DT_INT32")
        self.placeholder(f"{name}/grad", (-1, *shape[1:]))
        op = "SparseApplyAdagrad" if self.reference else "ResourceSparseApplyAdagrad"
        inputs = (name, f"{name}/accumulator", "rate", f"{name}/grad", f"{name}/unique")
        self.node(f"{name}/update", op, inputs, T="type: DT_FLOAT", Tindices="type: DT_INT64")


def lm1b(graph):
    """128 rows of 20 words on each of 48 replicas; 8192 sampled classes on each."""
    words = 48 * 128 * 20
    graph.sparse("emb", words, 793470, 512)
    graph.sparse("softmax_w", words + 48 * 8192, 793471, 512)
    graph.sparse("softmax_b", words + 48 * 8192, 793471)
    graph.dense("lstm/W", 1024, 8192)
    graph.dense("lstm/B", 8192)
    graph.dense("lstm/W_P", 2048, 512)


def bert_large(graph):
    """The word embedding is the output layer's matrix too, so its gradient is dense."""
    width = 1024

    def norm(name):
        graph.dense(f"{name}/gamma", width)
        graph.dense(f"{name}/beta", width)

    def layer(name, rows, columns):
        graph.dense(f"{name}/kernel", rows, columns)
        graph.dense(f"{name}/bias", columns)

    graph.dense("word_embeddings", 30522, width)
    graph.dense("token_type_embeddings", 2, width)
    graph.dense("position_embeddings", 512, width)
    norm("embeddings")
    for i in range(24):
        for part in ("query", "key", "value", "attention/output"):
            layer(f"layer_{i}/{part}", width, width)
        norm(f"layer_{i}/attention")
        layer(f"layer_{i}/intermediate", width, 4 * width)
        layer(f"layer_{i}/output", 4 * width, width)
        norm(f"layer_{i}/output")
    layer("pooler", width, width)
    layer("transform", width, width)
    norm("transform")
    graph.dense("output_bias", 30522)
    graph.dense("seq_relationship/kernel", 2, width)
    graph.dense("seq_relationship/bias", 2)


def vgg16(graph):
    channels, last = (64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512), 3
    for i, count in enumerate(channels):
        graph.dense(f"conv{i}/kernel", 3, 3, last, count)
        graph.dense(f"conv{i}/bias", count)
        last = count
    last *= 7 * 7
    for i, count in enumerate((4096, 4096, 1000)):
        graph.dense(f"fc{i}/kernel", last, count)
        graph.dense(f"fc{i}/bias", count)
        last = count


def resnet50(graph):
    def conv(name, size, from_channels, to_channels):
        graph.dense(f"{name}/kernel", size, size, from_channels, to_channels)
        graph.dense(f"{name}/gamma", to_channels)
        graph.dense(f"{name}/beta", to_channels)

    conv("conv1", 7, 3, 64)
    last = 64
    for stage, (blocks, width) in enumerate(zip((3, 4, 6, 3), (64, 128, 256, 512))):
        for block in range(blocks):
            name = f"stage{stage}/block{block}"
            if block == 0:
                conv(f"{name}/shortcut", 1, last, 4 * width)
            conv(f"{name}/a", 1, last, width)
            conv(f"{name}/b", 3, width, width)
            conv(f"{name}/c", 1, width, 4 * width)
            last = 4 * width
    graph.dense("fc/kernel", 2048, 1000)
    graph.dense("fc/bias", 1000)


MODELS = {model.__name__: model for model in (lm1b, bert_large, vgg16, resnet50)}

if __name__ == "__main__":
    made = Graph(reference=sys.argv[1] == "vgg16")
    made.placeholder("rate", ())
    MODELS[sys.argv[1]](made)
