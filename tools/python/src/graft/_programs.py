# SPDX-License-Identifier: Apache-2.0
"""The programs of the wheel."""

import os
import sys
from typing import NoReturn


def program(name: str) -> str:
    """The path of `graft-opt` or another: that of the wheel, or of the environment variable GRAFT_OPT, GRAFT_LAUNCH and so on."""
    other = os.environ.get(name.upper().replace("-", "_"))
    return other or os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", name)


def _become(name: str) -> NoReturn:
    path = program(name)
    sys.stdout.flush()
    os.execv(path, [name, *sys.argv[1:]])


def graft_opt() -> NoReturn:
    """The console script `graft-opt`, and `python -m graft`."""
    _become("graft-opt")


def graft_launch() -> NoReturn:
    """The console script `graft-launch`."""
    _become("graft-launch")


def graft_diff() -> NoReturn:
    """The console script `graft-diff`."""
    _become("graft-diff")


def graft_extract() -> NoReturn:
    """The console script `graft-extract`."""
    _become("graft-extract")


def graft_reduce() -> NoReturn:
    """The console script `graft-reduce`."""
    _become("graft-reduce")
