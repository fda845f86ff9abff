# SPDX-License-Identifier: Apache-2.0
"""No output waits for ever: on a machine that has one of its devices, and with soft placement, each form of each model is right, or
an error within seconds.

Additions are right wherever their devices are. The members of a collective are on one device there, and wait for each other; so
nothing has collectives that did not ask for them, and those that did give up.
"""

import time

import models
import pytest
import tensorflow as tf
from cases import MATRIX
from harness import Options, Rewritten
from models import Spec

tf1 = tf.compat.v1

FORMS = {
    "auto": Options(2),
    "gpu": Options(2, extra=("--device-type=GPU",)),
    "add": Options(3, reduction="add"),
    "buckets": Options(2, extra=("--bucket-bytes=1M",)),
    "ps": Options(2, "ps"),
    "accumulator": Options(2, "ps", "accumulator"),
    "parallax": Options(2, "parallax"),
    "collective": Options(2, reduction="collective", extra=("--collective-timeout=2",)),
}
SAMPLE = [("mlp_adam", form) for form in FORMS] + [("embedding", "auto"), ("mlp_clip", "ps"), ("cnn", "gpu")]
SECONDS = 30


class OnOneCpu(Rewritten):
    """A machine with one CPU, on which TensorFlow puts what belongs elsewhere."""

    def restart(self, init=True, grappler=True):
        self.close()
        config = tf1.ConfigProto(device_count={"CPU": 1, "GPU": 0}, allow_soft_placement=True)
        self.session = tf1.Session(graph=self.graph, config=config)
        if init:
            self.run("init")


def options_of(form):
    options = FORMS[form]
    if "--device-type=GPU" not in options.extra:
        return options

    class Gpus(Options):
        def arguments(self):
            return [a for a in super().arguments() if a != "--device-type=CPU"]

    return Gpus(options.replicas, options.strategy, options.reduction, options.extra)


@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.parametrize("model", MATRIX)
def test_soft_placement(model, form, request):
    if not request.config.getoption("--full") and (model, form) not in SAMPLE:
        pytest.skip("with --full")
    started = time.monotonic()
    with OnOneCpu(Spec(model, "resource", None, "mean"), options_of(form)) as session:
        has_members = any(op.type.startswith("Collective") for op in session.graph.get_operations())
        assert has_members == (form == "collective"), f"{model} {form}: collectives that nobody asked for"
        if not has_members:
            session.check_steps()
            return
        session.restart()
        begun = time.monotonic()
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.step(models.batches(model)[0])
        assert time.monotonic() - begun < SECONDS, f"{model} {form}: {time.monotonic() - started:.0f} s"
