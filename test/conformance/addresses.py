# SPDX-License-Identifier: Apache-2.0
"""Addresses of servers on this machine, which nothing else takes before their tasks have started, or between the death of one
and its next start: below the ports that the kernel gives to connections, none twice, and a run of its own for each process."""

import os
import socket

FIRST, LAST = 10000, 32000

# A prime step sets processes that begin one after another far apart.
_begin = os.getpid() * 197 % (LAST - FIRST)
_given = 0


def _is_free(port):
    with socket.socket() as s:
        try:
            s.bind(("", port))
        except OSError:
            return False
    return True


def free(count):
    """As many, each "host:port"."""
    global _given
    found = []
    while len(found) < count:
        assert _given < LAST - FIRST, "no port is free"
        port = FIRST + (_begin + _given) % (LAST - FIRST)
        _given += 1
        if _is_free(port):
            found.append(f"127.0.0.1:{port}")
    return found
