# SPDX-License-Identifier: Apache-2.0
"""graft spreads the training step of a TensorFlow graph over many devices.

    import graft

    made = graft.rewrite("model.meta", replicas=2, device_type="CPU", output="model.x2.meta")
    with graft.load(made) as model:
        model.session.run(model.init_op)
        model.session.run(model.train_op, {model.feeds["x"]: x, model.feeds["y"]: y})

`rewrite` needs no TensorFlow; `load` and what gives messages (`Rewrite.graph_def`, `Rewrite.meta_graph`) do.
"""

from graft._check import Check, check
from graft._diagnostics import Diagnostic, GraftError, InputError, InternalError, UsageError
from graft._keras import keras_step
from graft._load import Loaded, load
from graft._programs import program
from graft._rewrite import Plan, PlanRow, Rewrite, rewrite, version

__all__ = [
    "Check",
    "Diagnostic",
    "GraftError",
    "InputError",
    "InternalError",
    "Loaded",
    "Plan",
    "PlanRow",
    "Rewrite",
    "UsageError",
    "check",
    "keras_step",
    "load",
    "program",
    "rewrite",
    "version",
]
