# SPDX-License-Identifier: Apache-2.0
"""Pictures of pages that are held against references: what `devtools.Browser` gives as PNG, with the standard library alone.

Fonts differ between machines, and letters with them. So areas of AREA x AREA pixels are compared by their mean colors, in which letters
are a shade of gray, and lines, bars and boxes are what they are.
"""

import struct
import zlib

AREA = 4
TOLERANCE = 24  # Of 255, for each of red, green and blue.


def read_png(data):
    """(width, height, rows of bytes, bytes of a pixel) of a PNG with 8 bits, red, green and blue, and maybe what is transparent."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n", "no PNG"
    at, packed = 8, []
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + size]
        if kind == b"IHDR":
            width, height, bits, color, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            assert bits == 8 and color in (2, 6) and not interlaced, f"a PNG of {bits} bits and color type {color}"
        elif kind == b"IDAT":
            packed.append(body)
        at += size + 12
    step = 3 if color == 2 else 4
    raw, line = zlib.decompress(b"".join(packed)), width * step
    rows, above = [], bytearray(line)
    for begin in range(0, len(raw), line + 1):
        above = unfiltered(raw[begin], bytearray(raw[begin + 1 : begin + 1 + line]), above, step)
        rows.append(above)
    assert len(rows) == height, "a PNG that is cut off"
    return width, height, rows, step


def unfiltered(kind, row, above, step):
    """The bytes of a row that has the differences to those before it, as `kind` says."""
    if kind == 1:
        for i in range(step, len(row)):
            row[i] = row[i] + row[i - step] & 255
    elif kind == 2:
        for i, up in enumerate(above):
            row[i] = row[i] + up & 255
    elif kind == 3:
        for i, up in enumerate(above):
            row[i] = row[i] + ((row[i - step] if i >= step else 0) + up >> 1) & 255
    elif kind == 4:
        for i, up in enumerate(above):
            left, corner = (row[i - step], above[i - step]) if i >= step else (0, 0)
            by_left, by_up, by_corner = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
            nearest = left if by_left <= by_up and by_left <= by_corner else up if by_up <= by_corner else corner
            row[i] = row[i] + nearest & 255
    return row


class Picture:
    """The mean colors of the areas of a PNG, row by row, those at the right and lower edge without what is no whole area."""

    def __init__(self, data):
        width, height, rows, step = read_png(data)
        self.size = width, height
        self.areas = []
        for y in range(0, height - height % AREA, AREA):
            lines = rows[y : y + AREA]
            self.areas.append([
                tuple(sum(sum(line[x * step + part : (x + AREA) * step : step]) for line in lines) // (AREA * AREA) for part in range(3))
                for x in range(0, width - width % AREA, AREA)
            ])  # fmt: skip

    def difference(self, other, part):
        """The share of areas that differ in part (left, top, right, bottom), in pixels."""
        left, top, right, bottom = (edge // AREA for edge in part)
        pairs = [pair for rows in zip(self.areas[top:bottom], other.areas[top:bottom]) for pair in zip(*(row[left:right] for row in rows))]
        return sum(any(abs(a - b) > TOLERANCE for a, b in zip(*pair)) for pair in pairs) / max(1, len(pairs))
