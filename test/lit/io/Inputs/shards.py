# SPDX-License-Identifier: Apache-2.0
"""Cuts a GraphDef into shards of about one size, at the ends of its fields.

    shards.py FILE STEM COUNT EXTENSION
"""

import sys


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


file, stem, count, extension = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
data = open(file, "rb").read()
parts, at = [b""] * count, 0
while at < len(data):
    _, body = varint(data, at)
    length, body = varint(data, body)
    index = min(at * count // len(data), count - 1)
    parts[index] += data[at : body + length]
    at = body + length
for index, part in enumerate(parts):
    with open(f"{stem}-{index:05}-of-{count:05}{extension}", "wb") as out:
        out.write(part)
