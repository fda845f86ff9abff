# SPDX-License-Identifier: Apache-2.0
"""Stops graft-opt with SIGTERM while it removes the folder that its output has replaced.

    interrupt_removal.py GRAFT-OPT
"""

import os
import shutil
import signal
import subprocess
import sys

shutil.rmtree("signal", ignore_errors=True)
shutil.copytree("in", "signal/in")
os.chdir("signal")
shutil.copytree("in", "out")
for i in range(30000):
    os.link("out/saved_model.pb", f"out/variables/old{i}")
process = subprocess.Popen([sys.argv[1], "in", "-o", "out", "--force"])
while process.poll() is None and os.path.exists("out/variables/old29999"):
    pass
process.send_signal(signal.SIGTERM)
print("status:", process.wait())
print("left:", *sorted(os.listdir(".")))
print("out is new:", not os.path.exists("out/variables/old0"))
