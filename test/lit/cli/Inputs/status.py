"""Runs a command and prints what it says; fails if its exit status is not the one that is expected.

    status.py STATUS COMMAND...
"""

import subprocess
import sys

done = subprocess.run(sys.argv[2:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
print(done.stdout)
if done.returncode != int(sys.argv[1]):
    sys.exit(f"exit status {done.returncode}\n{done.stdout}")
