# SPDX-License-Identifier: Apache-2.0
"""Runs a command whose standard error is a terminal, and prints what it says there.

    stderr_terminal.py COMMAND...
"""

import os
import pty
import subprocess
import sys
import threading

main, terminal = pty.openpty()
said = []


def read():
    try:
        while data := os.read(main, 65536):
            said.append(data)
    except OSError:  # The other side is closed.
        pass


reader = threading.Thread(target=read)
reader.start()
status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=terminal).returncode
os.close(terminal)
reader.join()
print(b"".join(said).decode().replace("\r\n", "\n"), end="")
sys.exit(status)
