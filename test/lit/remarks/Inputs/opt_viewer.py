# SPDX-License-Identifier: Apache-2.0
"""Prints each remark of FILE as LLVM's opt-viewer reads it.

    opt_viewer.py FOLDER-OF-OPT-VIEWER FILE
"""

import sys

sys.path.insert(0, sys.argv[1])
import optrecord  # noqa: E402
import yaml  # noqa: E402

with open(sys.argv[2]) as f:
    for remark in yaml.load_all(f, Loader=optrecord.Loader):
        remark.canonicalize()
        kind = type(remark).__name__
        print(kind, remark.Pass, remark.Name, f"{remark.Function}:", "".join(value for ((_, value),) in remark.Args))
