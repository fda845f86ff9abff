# SPDX-License-Identifier: Apache-2.0
"""Stops graft-opt with SIGTERM while it writes into FOLDER.

    interrupt.py FOLDER GRAFT-OPT
"""

import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
folder, graft_opt = sys.argv[1:]
os.chdir(folder)
with open("out.pb", "w") as file:
    file.write("before")
with open("big.pb", "wb") as file:
    subprocess.run(
        [sys.executable, os.path.join(os.path.dirname(__file__), "wire.py"), "big"],
        stdout=file,
        check=True,
    )
process = subprocess.Popen(
    [graft_opt, "big.pb", "--passes=test-edit{node=n0,do=rename,to=n}", "-o", "out.pb"]
)
temporary = []
while process.poll() is None and not temporary:
    temporary = [name for name in os.listdir(".") if name.endswith(".tmp")]
# Stopped, so that it cannot finish before it is told to end.
process.send_signal(signal.SIGSTOP)
process.send_signal(signal.SIGTERM)
process.send_signal(signal.SIGCONT)
process.wait()
print("writing:", *temporary)
print("left:", *sorted(os.listdir(".")))
print("out.pb:", open("out.pb").read()[:20])
