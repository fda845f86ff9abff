# SPDX-License-Identifier: Apache-2.0
"""Runs a command whose standard output nobody reads."""

import os
import subprocess
import sys

read, write = os.pipe()
os.close(read)
done = subprocess.run(sys.argv[1:], stdout=write, stderr=subprocess.PIPE, text=True)
print(done.stderr, end="")
print("exit status", done.returncode)
