# SPDX-License-Identifier: Apache-2.0
"""A static batch of any size: one row a replica, and as many rows as another size of the model says; a batch of no rows.

A number of a graph with a static batch may be that of the rows, or not. Where two are equal by chance no verdict may
depend on it: every model is rewritten at such sizes, without a word, and makes the same steps.
"""

import sys

import compare
import models
import models_bn
import models_functions
import models_loops
import models_habits
import pytest
import tensorflow as tf
from harness import Options
from models import Spec
from models_habits import Habit
from tensorflow.python.framework.meta_graph import read_meta_graph_file

tf1 = tf.compat.v1

PLAIN = {name: Habit(zoo.build, zoo.data) for name, zoo in models.MODELS.items() if not zoo.batch_norm}
ZOO = {
    **PLAIN,
    **models_habits.HABITS,
    **{f"loop_{name}": model for name, model in models_loops.LOOPS.items()},
    **{f"function_{name}": model for name, model in (models_functions.BRANCHES | models_functions.FUNCTIONS).items()},
    **{f"function_{name}": model for name, model in models_functions.LOOPS.items()},
    **{f"exact_{name}": model for name, model in models_bn.EXACT.items()},
}
del ZOO["mlp_random"], ZOO["dropout"]  # other numbers on every device
del ZOO["exact_layer_norm_fused"]  # refused with any static batch, see test_batch_norm.py

# The gradient of a norm over few rows is a difference of nearly equal numbers.
ILL_CONDITIONED = ("batch_norm_written_out", "exact_moments", "exact_moments_keras")


def pytest_generate_tests(metafunc):
    """Default: two replicas, and one size of each model. --full: four replicas too, and all sizes."""
    full = metafunc.config.getoption("--full")
    if "replicas" in metafunc.fixturenames:
        metafunc.parametrize("replicas", (2, 4) if full else (2,))
    if "every" in metafunc.fixturenames:
        metafunc.parametrize("every", (full,), ids=("all" if full else "one",))


@pytest.fixture
def of(monkeypatch):
    """Gives the models another batch."""

    def change(batch):
        for module in list(sys.modules.values()):
            if getattr(module, "__name__", "").startswith("models") and hasattr(module, "BATCH"):
                monkeypatch.setattr(module, "BATCH", batch)

    return change


def same_steps(name, batch, replicas):
    model = ZOO[name]
    spec = Spec(name, "resource", batch, model.losses[-1], "float64" if name in ILL_CONDITIONED else "float32")
    path = compare.export(spec, model.build)
    data = models_habits.batches(model.data, len(model.steps), spec.dtype)
    strategy = ("all-reduce", "ps")[len(name) % 2]
    options = Options(replicas, strategy, "add", model.flags)
    compare.same_steps(path, options, data, model.steps, model.fetches, model.after)


def equal_batches(name):
    """Batches for two replicas that are another size of the model's feeds or variables, or of which half is one."""
    nodes = read_meta_graph_file(compare.export(Spec(name), ZOO[name].build)).graph_def.node
    shapes = [node.attr["shape"].shape.dim for node in nodes if node.op in ("Placeholder", "VarHandleOp")]
    found = {dim.size for dims in shapes for dim in dims if dim.size > 1}
    return sorted({2 * size for size in found} | {size for size in found if size % 2 == 0})


@pytest.mark.parametrize("name", ZOO)
def test_one_row_a_replica(of, name, replicas):
    of(replicas)
    same_steps(name, replicas, replicas)


@pytest.mark.parametrize("name", ZOO)
def test_sizes_equal_by_chance(of, name, every):
    of(2)
    chosen = equal_batches(name)
    first = list(ZOO).index(name) % len(chosen)
    for batch in chosen if every else chosen[first : first + 1]:
        of(batch)
        same_steps(name, batch, 2)


def at_least_one_row(b: models.Builder):
    """A sum over the rows and a penalty, each divided by the number of rows, or by 1 if there are none."""
    _, _, rows = models_habits.regress(b)
    number = tf.cast(tf.maximum(tf.shape(rows)[0], 1), b.dtype)
    b.l2(0.05, *tf1.trainable_variables())
    models_habits.descend(b, tf.identity((tf.reduce_sum(rows) + tf.add_n(b.penalties)) / number, name="loss"))


def each_mean(b: models.Builder):
    """A sum of means over what each row has, whose gradient divides sizes by the number of rows, or by 1."""
    x, _, rows = models_habits.regress(b)
    models_habits.descend(b, b.loss(tf.reduce_sum(rows + tf.reduce_mean(tf.matmul(x, b.variable("u", [5, 3])), 1)) / models.BATCH))


@pytest.mark.parametrize("strategy", ("all-reduce", "ps"))
@pytest.mark.parametrize("fill", (at_least_one_row, each_mean))
def test_no_rows(fill, strategy, replicas):
    """A step that is fed no rows is that of the single device."""
    path = compare.export(Spec(f"no-rows-{fill.__name__}", "resource", None, "mean"), fill)
    some = models_habits.batches(models_habits.HABITS["loss_over_dynamic_batch"].data, 3)
    some[1] = tuple(of[:0] for of in some[1])
    compare.same_steps(path, Options(replicas, strategy, "add"), some)
