#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens the site in a headless Chromium, and looks at what is there.

    test/package/browser.py SITE [SCREENSHOTS]

Each page that the first one leads to is loaded; what the search reads is there, and a
screenshot of some pages, light and dark, is left in SCREENSHOTS.
"""

import functools
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading

import devtools


class Quiet(http.server.SimpleHTTPRequestHandler):
    missing = []

    def log_message(self, *_):
        pass

    def send_error(self, code, *rest):
        Quiet.missing.append(f"{code} {self.path}")
        super().send_error(code, *rest)


def browse(browser, url, *flags):
    with tempfile.TemporaryDirectory() as profile:
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}"]
        command += ["--disable-dev-shm-usage", "--virtual-time-budget=4000", *flags, url]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=120, check=True, text=True)
    return done.stdout


def main():
    site, *rest = sys.argv[1:]
    shots = rest[0] if rest else None
    browser = devtools.find()
    if browser is None:
        sys.exit("browser: there is none")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    home = f"http://127.0.0.1:{server.server_address[1]}/"

    page = browse(browser, home + "index.html", "--dump-dom")
    assert re.search(r"<h1[^>]*>graft", page), "the first page has no title"
    pages = sorted(set(re.findall(r'href="([A-Za-z]+\.html)"', page)))
    assert len(pages) > 30 and "Tutorial.html" in pages, pages
    assert 'data-md-component="search"' in page, "the first page has no search"
    with open(os.path.join(site, "search", "search_index.json"), encoding="utf-8") as file:
        places = [entry["location"] for entry in json.load(file)["docs"] if "parallax" in entry["text"]]
    assert any(place.startswith("Strategies.html") for place in places), "the search would find nothing"
    for name, title in ("Tutorial.html", "Tutorial"), ("Troubleshooting.html", "Troubleshooting"), ("Cli.html", "The command line"):
        page = browse(browser, home + name, "--dump-dom")
        assert re.search(rf"<h1[^>]*>{title}", page), f"{name} has no title"
        assert "<table" in page or "highlight" in page, f"{name} has neither a table nor code"
    if shots:
        os.makedirs(shots, exist_ok=True)
        for name in "index", "Tutorial", "Cli":
            for theme, flag in ("light", "--blink-settings=preferredColorScheme=1"), ("dark", "--blink-settings=preferredColorScheme=0"):
                to = os.path.abspath(os.path.join(shots, f"{name}-{theme}.png"))
                browse(browser, f"{home}{name}.html", "--window-size=1280,1400", flag, f"--screenshot={to}")
                assert os.path.getsize(to) > 30000, f"{to} is empty"
    bad = [each for each in Quiet.missing if "favicon" not in each]
    assert not bad, bad
    print(f"browser: {len(pages)} pages, all there")


main()
