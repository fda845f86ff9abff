# SPDX-License-Identifier: Apache-2.0
"""Runs a command whose standard output is a terminal; shows its messages."""

import os
import pty
import subprocess
import sys
import threading

main, terminal = pty.openpty()


def drain():
    try:
        while os.read(main, 65536):
            pass
    except OSError:  # The other side is closed.
        pass


reader = threading.Thread(target=drain)
reader.start()
done = subprocess.run(sys.argv[1:], stdout=terminal, stderr=subprocess.PIPE, text=True)
os.close(terminal)
reader.join()
print(done.stderr, end="")
print("exit status", done.returncode)
