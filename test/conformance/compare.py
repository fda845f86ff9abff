# SPDX-License-Identifier: Apache-2.0
"""Runs one graph of any shape before and after graft-opt, step by step, and compares all that it leaves."""

import os
import re
import tempfile
from typing import Callable, List, Sequence, Tuple

import harness
import models_habits
import numpy as np
from harness import Options, Session
from models import Spec


def export(spec: Spec, fill: Callable, **kwargs) -> str:
    handle, path = tempfile.mkstemp(suffix=".meta", dir=harness.workdir())
    os.close(handle)
    harness.MODEL_OF[path] = spec.model

    def write(to: str) -> str:
        return models_habits.build(spec, fill, **kwargs).write(to)

    habit = models_habits.HABITS.get(spec.model)
    if kwargs or not habit or fill is not habit.build:
        return write(path)
    return harness.exported(f"habit-{spec}.meta", path, write)


def advance(session: Session, batches, steps, fetches, after) -> List[Tuple]:
    """Per step: what was fetched with it, all variables, what is read after it."""
    session.restart()
    rows = [((), session.values(), ())]
    for batch, step in zip(batches, steps):
        feeds = dict(zip(("x:0", "y:0", "lengths:0"), batch))
        fetched = session.run([*fetches, step], feeds)[: len(fetches)]
        rows.append((tuple(fetched), session.values(), tuple(session.run(list(after), feeds))))
    return rows


def run(path: str, batches, steps, fetches=("loss:0",), after=()) -> List[Tuple]:
    with Session(path) as session:
        return advance(session, batches, steps, fetches, after)


def same_steps(
    path: str,
    options: Options,
    batches,
    steps: Sequence[str] = ("train_op",) * 3,
    fetches: Sequence[str] = ("loss:0",),
    after: Sequence[str] = (),
    says: str = "",
) -> str:
    """The rewritten graph makes the same steps, its copies agree, and graft-opt said what `says` finds, or nothing.

    Returns its path.
    """
    want = run(path, batches, steps, fetches, after)
    out, said = harness.rewrite(path, options)
    assert re.search(says, said) if says else said == "", said
    with Session(out, options.replicas) as session:
        got = advance(session, batches, steps, fetches, after)
        session.check_copies("at the end")
    for i, (ours, theirs) in enumerate(zip(got, want)):
        harness.assert_all_close(ours[1], theirs[1], f"after step {i}")
        for name, a, b in zip((*fetches, *after), ours[0] + ours[2], theirs[0] + theirs[2]):
            harness.assert_close(a, b, f"{name} of step {i}")
    return out


def difference(got: List[Tuple], want: List[Tuple]) -> float:
    """The largest difference of a variable after the last step, as a multiple of the tolerance."""
    worst = 0.0
    for name, value in want[-1][1].items():
        if np.issubdtype(value.dtype, np.floating):
            worst = max(worst, float(np.max(np.abs(got[-1][1][name] - value))) / harness.tolerance(value))
    return worst
