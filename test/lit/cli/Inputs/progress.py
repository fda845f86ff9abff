# SPDX-License-Identifier: Apache-2.0
"""Runs a command whose output nobody reads for more than two seconds, and prints what it writes on stderr.

    progress.py terminal|pipe COMMAND...
"""

import os
import pty
import signal
import subprocess
import sys
import time

ours, theirs = pty.openpty() if sys.argv[1] == "terminal" else os.pipe()


def takes_interrupts(task):
    with open(f"{task}/status") as status:
        blocked = next(int(line.split()[1], 16) for line in status if line.startswith("SigBlk"))
    return not blocked >> signal.SIGINT - 1 & 1


with subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE, stderr=theirs) as process:
    os.close(theirs)
    time.sleep(2.6)
    tasks = f"/proc/{process.pid}/task"
    print("blocks SIGINT:", sum(not takes_interrupts(f"{tasks}/{each}") for each in os.listdir(tasks)))
    process.stdout.read()
said = b""
try:
    while part := os.read(ours, 4096):
        said += part
except OSError:  # The other end of the terminal is closed.
    pass
for line in said.replace(b"\r", b"\n").split(b"\n"):
    print(repr(line.decode()))
