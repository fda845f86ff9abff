#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the picture of docs/Architecture.md, docs/images/rooms.svg, from docs/images/rooms.txt.

    tools/scripts/draw_rooms.py            writes the picture
    tools/scripts/draw_rooms.py --check    fails if it is another one

Every room that test/cmake/check-rooms.cmake lists is in it once, and no other.
"""

import os
import re
import sys
from xml.sax.saxutils import escape

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCE = os.path.join(ROOT, "docs", "images", "rooms.txt")
PICTURE = os.path.join(ROOT, "docs", "images", "rooms.svg")
ROOMS = os.path.join(ROOT, "test", "cmake", "check-rooms.cmake")

COLUMN, GAP, MARGIN = 136, 8, 12
BAR, STAGE, ROOM = 34, 54, 26

# Both sets of colours have a contrast of 7 to 1 and more between text and ground.
STYLE = """
  .ground { fill: #ffffff } .box { fill: #f3f4f6; stroke: #6b7280 } .step { fill: #dbeafe; stroke: #1d4ed8 }
  .name { fill: #111827; font: 12px ui-monospace, monospace } .verb { fill: #111827; font: bold 15px sans-serif }
  .text { fill: #374151; font: 12px sans-serif } .middle { text-anchor: middle }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117 } .box { fill: #1f2937; stroke: #9ca3af } .step { fill: #172554; stroke: #93c5fd }
    .name, .verb { fill: #f3f4f6 } .text { fill: #d1d5db }
  }"""


def read_source():
    """The bars and rows of columns, from the top: ("bar", rooms, text) or ("stages", [(verb, text, rooms)])."""
    rows = []
    with open(SOURCE, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.split("#")[0].strip()
            if not line:
                continue
            what, _, rest = line.partition(" ")
            names, _, text = (part.strip() for part in rest.partition(" : "))
            if what == "bar":
                rows.append(("bar", names.split(), text))
            elif what == "stage":
                if not rows or rows[-1][0] != "stages":
                    rows.append(("stages", [], ""))
                rows[-1][1].append((names, text, []))
            elif what == "room" and rows and rows[-1][0] == "stages":
                rows[-1][1][-1][2].append(names)
            else:
                sys.exit(f"{SOURCE}:{number}: neither a bar, nor a stage, nor a room of one")
    return rows


def check_rooms(rows):
    drawn = []
    for what, items, _ in rows:
        drawn += items if what == "bar" else [room for _, _, rooms in items for room in rooms]
    with open(ROOMS, encoding="utf-8") as file:
        listed = re.findall(r"^room\(([^\s)]+)", file.read(), re.M)
    problems = [f"'{room}' is not in the picture" for room in listed if room not in drawn]
    problems += [f"'{room}' is no room" for room in drawn if room not in listed]
    problems += [f"'{room}' is in the picture twice" for room in sorted(set(drawn)) if drawn.count(room) > 1]
    if problems:
        sys.exit(f"{SOURCE}:\n  " + "\n  ".join(problems))


def short(room):
    return room.removeprefix("lib/")


def draw(rows):
    columns = max(len(items) for what, items, _ in rows if what == "stages")
    width = 2 * MARGIN + columns * (COLUMN + GAP) - GAP
    body, y = [], MARGIN

    def box(x, y, wide, high, kind="box"):
        body.append(f'<rect class="{kind}" x="{x}" y="{y}" width="{wide}" height="{high}" rx="4"/>')

    def text(x, y, kind, string):
        body.append(f'<text class="{kind}" x="{x}" y="{y}">{escape(string)}</text>')

    for what, items, label in rows:
        if what == "bar":
            box(MARGIN, y, width - 2 * MARGIN, BAR)
            text(MARGIN + 12, y + 22, "name", ", ".join(short(room) for room in items))
            text(MARGIN + 2 * (COLUMN + GAP) + 12, y + 22, "text", label)
            y += BAR + GAP
            continue
        for i, (verb, label, rooms) in enumerate(items):
            x = MARGIN + i * (COLUMN + GAP)
            # An arrow whose tip reaches into the next one.
            left, right, tip = x, x + COLUMN - 8, x + COLUMN + 4
            middle, low = y + STAGE // 2, y + STAGE
            notch = f"{left},{middle} " if i == 0 else f"{left + 12},{middle} "
            body.append(
                f'<polygon class="step" points="{left},{y} {right},{y} {tip},{middle} {right},{low} {left},{low} {notch}"/>'
            )
            text(x + COLUMN // 2 + 2, y + 23, "verb middle", verb)
            text(x + COLUMN // 2 + 2, y + 42, "text middle", label)
            for k, room in enumerate(rooms):
                top = y + STAGE + GAP + k * (ROOM + 4)
                box(x, top, COLUMN, ROOM)
                text(x + COLUMN // 2, top + 17, "name middle", short(room))
        y += STAGE + GAP + max(len(rooms) for _, _, rooms in items) * (ROOM + 4) - 4 + GAP
    height = y - GAP + MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">\n'
        "<!-- Made by tools/scripts/draw_rooms.py from docs/images/rooms.txt. -->\n"
        "<title>The rooms of graft and a graph's way through them</title>\n"
        f"<style>{STYLE}\n</style>\n"
        f'<rect class="ground" width="{width}" height="{height}"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    rows = read_source()
    check_rooms(rows)
    picture = draw(rows)
    if not sys.argv[1:]:
        with open(PICTURE, "w", encoding="utf-8") as file:
            file.write(picture)
        return
    with open(PICTURE, encoding="utf-8") as file:
        if file.read() != picture:
            sys.exit(f"{PICTURE} is out of date; tools/scripts/draw_rooms.py makes it again")


main()
