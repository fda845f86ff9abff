# SPDX-License-Identifier: Apache-2.0
"""Runs a command and says how many threads it was seen to have at once."""

import os
import subprocess
import sys

process = subprocess.Popen(sys.argv[1:])
most = 1
while process.poll() is None:
    try:
        most = max(most, len(os.listdir(f"/proc/{process.pid}/task")))
    except FileNotFoundError:
        break
status = process.wait()
print(f"at most {most} thread{'s' if most > 1 else ''}" if status == 0 else "failed")
