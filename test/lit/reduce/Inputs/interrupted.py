# SPDX-License-Identifier: Apache-2.0
"""Stops graft-reduce with signals: no test goes on, and its folder goes.

    interrupted.py GRAFT-REDUCE GRAPH
"""

import os
import shutil
import signal
import subprocess
import sys
import time


def runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


shutil.rmtree("signals", ignore_errors=True)
os.makedirs("signals/tmp")
os.chdir("signals")
with open("slow", "w") as file:
    file.write("#!/bin/sh\necho $$ > pid.new && mv pid.new pid\nsleep 1000\n")
os.chmod("slow", 0o755)
for name in ("HUP", "PIPE", "ALRM", "TERM", "USR1"):
    process = subprocess.Popen([sys.argv[1], sys.argv[2], "--test=./slow", "-j", "1", "-o", "out.pbtxt"], env=dict(os.environ, TMPDIR=os.path.abspath("tmp")), stderr=subprocess.DEVNULL)
    while not os.path.exists("pid"):
        time.sleep(0.01)
    process.send_signal(signal.Signals["SIG" + name])
    status = process.wait()
    with open("pid") as file:
        pid = int(file.read())
    os.remove("pid")
    print(name, status, "goes on" if runs(pid) else "ended", *os.listdir("tmp"))
