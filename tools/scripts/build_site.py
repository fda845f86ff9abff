#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the site of the pages with MkDocs: build/site/index.html and so on. A link that leads nowhere is an error.

    tools/scripts/build_site.py [--output=FOLDER]

Run by a Python that has what test/requirements-package.txt lists. README.md is the first page; links between pages are
those of the repository.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Beside docs/, under the name that it has on the site.
ABOVE = {"README.md": "index.md", "CONTRIBUTING.md": "CONTRIBUTING.md", "CHANGELOG.md": "CHANGELOG.md", "SECURITY.md": "SECURITY.md"}
FILES = ("LICENSE", "NOTICE")
LINK = re.compile(r"(\]\()([^)#:\s]+)((?:#[^)]*)?\))")


def move(text, page):
    """The text of a page with links as they are on the site, where all pages are in one folder."""

    def moved(match):
        target = os.path.normpath(os.path.join(os.path.dirname(page), match[2]))
        if target in ABOVE:
            target = ABOVE[target]
        elif target.startswith("docs/"):
            target = target[len("docs/") :]
        elif target not in FILES:
            return match[0]
        return match[1] + target + match[3]

    return LINK.sub(moved, text)


def collect(folder):
    shutil.copytree(os.path.join(ROOT, "docs"), folder, ignore=shutil.ignore_patterns("README.md", "man", "mkdocs.yml", "*.txt"))
    for page, name in [*ABOVE.items(), *((os.path.join("docs", each), each) for each in os.listdir(folder) if each.endswith(".md"))]:
        with open(os.path.join(ROOT, page), encoding="utf-8") as file:
            text = file.read()
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(move(text, page))
    for name in FILES:
        shutil.copy(os.path.join(ROOT, name), folder)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", default=os.path.join(ROOT, "build", "site"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        collect(os.path.join(work, "docs"))
        shutil.copy(os.path.join(ROOT, "docs", "mkdocs.yml"), work)
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--clean", "--site-dir", os.path.abspath(options.output)]
        environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}
        # With --quiet a warning would be none.
        done = subprocess.run(
            command, cwd=work, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
    if done.returncode != 0:
        sys.exit(done.stdout)
    print(f"site: {sum(name.endswith('.html') for name in os.listdir(options.output))} pages, all links lead somewhere")


main()
