# SPDX-License-Identifier: Apache-2.0
"""Looks at the files that --shard-size made.

    shards.py ONE SHARDED SIZE        against the nodes of the file ONE
    shards.py --same SHARDED SHARDED  files of two runs
"""

import glob
import os
import re
import sys


def files(path):
    stem, extension = os.path.splitext(path)
    found = sorted(glob.glob(f"{stem}-*-of-*{extension}"))
    for index, name in enumerate(found):
        assert name == f"{stem}-{index:05}-of-{len(found):05}{extension}", name
    return [open(name, "rb").read() for name in found]


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """Nodes and other fields, all length-delimited."""
    nodes, others, at = [], [], 0
    while at < len(data):
        start = at
        tag, at = varint(data, at)
        assert tag & 7 == 2
        length, at = varint(data, at)
        at += length
        (nodes if tag >> 3 == 1 else others).append(data[start:at])
    return nodes, others


if sys.argv[1] == "--same":
    assert files(sys.argv[2]) == files(sys.argv[3])
    print("the same files")
    sys.exit()
one, sharded, size = open(sys.argv[1], "rb").read(), files(sys.argv[2]), int(sys.argv[3])
nodes, others = fields(one)
parts = [fields(data) for data in sharded]
assert [node for part in parts for node in part[0]] == nodes, "other nodes"
assert [part[1] for part in parts] == [others] + [[]] * (len(parts) - 1)
large = [data for data in sharded if len(data) > size]
if not large:
    kind = "none too large"
else:
    assert all(len(part[0]) + len(part[1]) == 1 or part[1] for part in parts)
    kind = "one each"
print(f"shards: {len(parts)}, the same nodes, {kind}")
