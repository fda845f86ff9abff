# SPDX-License-Identifier: Apache-2.0
"""Writes a GraphItem around a GraphDef: wrap.py GRAPH OUT [TYPE [TENSORS=VARIABLE...]]"""

import sys


def field(number, value):
    size, length = len(value), b""
    while size >= 0x80:
        length += bytes([size & 0x7F | 0x80])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + value


graph, out, kind, *pairs = sys.argv[1:]
with open(graph, "rb") as f:
    item = field(1, field(1, kind.encode()) + field(2, f.read()))
for pair in pairs:
    tensors, _, variable = pair.partition("=")
    item += field(2, field(1, tensors.encode()) + field(2, variable.encode()))
with open(out, "wb") as f:
    f.write(item)
