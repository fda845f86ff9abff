# SPDX-License-Identifier: Apache-2.0
"""Stops graft-opt with SIGTERM while it copies the folder of a SavedModel.

    interrupt_folder.py GRAFT-OPT
"""

import os
import shutil
import signal
import subprocess
import sys

shutil.rmtree("signal", ignore_errors=True)
shutil.copytree("in", "signal/in")
os.chdir("signal")
for i in range(4):
    with open(f"in/variables/big{i}", "wb") as file:
        file.truncate(1 << 30)
process = subprocess.Popen([sys.argv[1], "in", "-o", "out"])
started = []
while process.poll() is None and not started:
    started = [name for name in os.listdir(".") if name.endswith(".tmp") and os.path.exists(name + "/variables/big0")]
process.send_signal(signal.SIGSTOP)
process.send_signal(signal.SIGTERM)
process.send_signal(signal.SIGCONT)
process.wait()
print("writing:", *started)
print("left:", *sorted(os.listdir(".")))
shutil.rmtree("in")
