# SPDX-License-Identifier: Apache-2.0
"""The training steps that are broken: those of the zoo, one habit each, and three that have what the zoo lacks."""

from typing import Dict

import models
import models_habits
import tensorflow.compat.v2 as tf
from models import Builder, Spec, tf1
from models_habits import HABITS, Habit

COMBINED = ("rows", "total", "average", "largest", "smallest", "every", "some", "count")


def fetched(b: Builder):
    """Results that are merged in every way: rows, sums, means, extremes, truths, a count; and a summary of some."""
    x, y, rows = models_habits.regress(b)
    tf.identity(rows, name="rows")
    tf.reduce_sum(rows, name="total")
    tf.reduce_mean(rows, name="average")
    tf.reduce_max(rows, name="largest")
    tf.reduce_min(rows, name="smallest")
    tf.reduce_all(rows < 10.0, name="every")
    tf.reduce_any(rows > 2.0, name="some")
    tf.identity(tf.cast(tf.shape(x)[0], tf.float32), name="count")
    loss = b.loss(b.total(rows))
    tf1.summary.scalar("loss_summary", loss)
    tf1.summary.histogram("rows_summary", rows)
    tf.identity(tf1.summary.merge_all(), name="summary")
    for name in ("loss", *COMBINED):  # what is declared must be there, and hold
        tf1.add_to_collection("results", tf1.get_default_graph().get_tensor_by_name(name + ":0"))
    b.l2(0.05, *tf1.trainable_variables())
    step = tf1.train.get_or_create_global_step()
    b.train(tf1.train.MomentumOptimizer(0.1 / b.per, 0.9), loss, global_step=step)


def drawn(b: Builder):
    """Random draws: one for each row, in each replica, and one for the step, once."""
    x, y = b.inputs([5], [1])
    h = tf1.nn.dropout(tf.matmul(x, b.variable("w", [5, 6])), rate=0.4, seed=5)
    rate = tf1.random_uniform([], 0.9, 1.1, seed=3, dtype=b.dtype)
    error = tf.matmul(h, b.variable("v", [6, 1])) - y
    loss = b.loss(b.total(tf.square(error)))
    b.train(tf1.train.GradientDescentOptimizer(rate * 0.1 / b.per), loss)


def signed(b: Builder):
    """A classifier that says in signatures what is fed and fetched; a counter of its own; a print."""
    x, y = b.inputs([8], [], y_dtype=tf.int32)
    logits, w1, _ = models.perceptron(b, x, 8, 16, 4)
    scores = tf.nn.softmax(logits, name="scores")
    loss = b.loss(models.cross_entropy(b, y, logits))
    seen = b.constant("seen", [], 0.0)
    with tf.control_dependencies([seen.assign_add(tf.cast(tf.shape(x)[0], b.dtype))]):
        shown = tf1.Print(loss, [loss], message="", first_n=0)
    tf.identity(shown, name="shown")
    tf.identity(scores, name="served")
    b.train(tf1.train.AdamOptimizer(0.02, epsilon=0.01 * b.per), shown)


MODELS: Dict[str, Habit] = {
    **{
        name: Habit(zoo.build, zoo.data, losses=("mean", "sum"))
        for name, zoo in models.MODELS.items()
        if name in ("linear", "mlp_adam", "mlp_clip", "cnn", "embedding", "wide_mlp", "adamw_assign")
    },
    **{
        name: HABITS[name]
        for name in (
            "loss_masked",
            "loss_with_addend",
            "clip_norm",
            "scaled_loss",
            "accumulated",
            "tied_embedding",
            "sparse_adam",
            "gan",
            "target_network",
            "averaged",
            "scheduled_piecewise",
            "metrics",
            "recurrent",
            "batch_norm_written_out",
        )
    },
    "fetched": Habit(
        fetched,
        models_habits.ROWS,
        fetches=("loss:0", *(f"{name}:0" for name in COMBINED), "summary:0"),
        flags=tuple(f"--fetch={name}" for name in ("loss", *COMBINED, "summary")),
    ),
    "drawn": Habit(drawn, models_habits.ROWS),
    "signed": Habit(signed, models_habits.CLASSES, fetches=("loss:0", "served:0")),
    "named_steps": HABITS["named_steps"],
}
SIGNED = {"signed": ({"x": "x:0"}, {"scores": "served:0"})}


def build(spec: Spec) -> models.Built:
    return models_habits.build(spec, MODELS[spec.model].build)


def sign(meta, name: str):
    """Adds the signature of a model, as an exporter of a SavedModel does."""
    for inputs, outputs in [SIGNED[name]] if name in SIGNED else ():
        definition = meta.signature_def["serving_default"]
        definition.method_name = "tensorflow/serving/predict"
        for infos, tensors in ((definition.inputs, inputs), (definition.outputs, outputs)):
            for key, tensor in tensors.items():
                infos[key].name = tensor
