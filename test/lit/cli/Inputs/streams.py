# SPDX-License-Identifier: Apache-2.0
"""Runs a command with a stream that is closed, that nobody reads, or that is full; prints its exit status and what it says.

    streams.py stdout|stderr closed|left|full COMMAND...
"""

import os
import subprocess
import sys

stream, how = sys.argv[1:3]
number = {"stdout": 1, "stderr": 2}[stream]
read, broken = os.pipe()
os.close(read)
full = os.open("/dev/full", os.O_WRONLY)


def start():
    if how == "closed":
        os.close(number)
    else:
        os.dup2(full if how == "full" else broken, number)


done = subprocess.run(sys.argv[3:], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=start)
print("status", done.returncode, done.stderr)
