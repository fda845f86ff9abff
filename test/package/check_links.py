#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails where a page links to a file that is not there, or to a section that a page does not have. The index of docs,
its README.md, has to link to each page there.

    check_links.py PAGE-OR-FOLDER...
"""

import os
import re
import sys

LINK = re.compile(r"\]\(([^)\s#:]*)(#[^)\s]*)?\)")
HEADING = re.compile(r"^#+ (.*)$", re.M)


def anchors(path):
    with open(path, encoding="utf-8") as file:
        titles = HEADING.findall(file.read())
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def pages(path):
    if os.path.isfile(path):
        yield path
    for place, _, names in os.walk(path):
        for name in names:
            if name.endswith(".md"):
                yield os.path.join(place, name)


def main():
    count, broken = 0, []
    for page in [page for path in sys.argv[1:] for page in pages(path)]:
        with open(page, encoding="utf-8") as file:
            text = file.read()
        for target, anchor in LINK.findall(text):
            to = os.path.normpath(os.path.join(os.path.dirname(page), target)) if target else page
            count += 1
            if not os.path.exists(to):
                broken.append(f"{page}: there is no '{target}'")
            elif anchor and to.endswith(".md") and anchor[1:] not in anchors(to):
                broken.append(f"{page}: '{target}' has no section '{anchor}'")
        folder, name = os.path.split(page)
        if os.path.basename(folder) == "docs" and name == "README.md":
            listed = {target for target, _ in LINK.findall(text)} | {name}
            unlisted = sorted(other for other in os.listdir(folder) if other.endswith(".md") and other not in listed)
            broken += [f"{page}: has no link to '{other}'" for other in unlisted]
    if broken or not count:
        sys.exit("\n".join(broken) or "the pages have no links")
    print(f"{count} links lead somewhere")


main()
