#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens what --report=FILE.html writes in a headless Chromium, and uses it.

    test/package/report_page.py GRAFT_OPT [SCREENSHOTS]

The browser complains about nothing and asks for nothing but the page; a search finds a node, a click shows how its type came about;
the keyboard does the same; names are never HTML. Screenshots, light and dark, are left in SCREENSHOTS.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import devtools

INPUTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "inputs")
READY = "document.documentElement.dataset.ready"
GRADIENT = "gradients/output/MatMul_grad/MatMul_1"


def report(graft_opt, graph, folder, *flags, output="out.pb"):
    page = os.path.join(folder, "report.html")
    if os.path.exists(page):
        os.remove(page)
    subprocess.run([graft_opt, graph, *flags, "-o", os.path.join(folder, output), f"--report={page}"], check=False, stderr=subprocess.DEVNULL)
    assert os.path.exists(page), "no page was written"
    return page


def is_quiet(browser, page):
    assert browser.errors == [], browser.errors
    assert all(url == f"file://{page}" or url.startswith(("data:", "blob:")) for url in browser.requests), browser.requests


def names(browser, selector):
    return browser.run(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)")


def uses(browser, page):
    browser.open(f"file://{page}", READY)
    # Sections, and their tables, have names; what can be pressed has, too.
    titles = names(browser, "main section > h2")
    assert {"Warnings", "Graph", "Nodes", "Variables", "Reductions", "Predicted steps", "Remarks"} <= set(titles), titles
    assert names(browser, "nav a") == titles
    assert browser.run("[...document.querySelectorAll('table')].every(t => t.caption && t.querySelector('thead th[scope=col]'))")
    assert browser.run("[...document.querySelectorAll('button, a, summary')].every(e => e.textContent.trim() || e.ariaLabel)")
    assert browser.run("[...document.querySelectorAll('input')].every(e => e.labels.length === 1)")
    text = browser.run("document.getElementById('main').textContent")
    assert "[object" not in text and "undefined" not in text, "something was not made text"
    assert "hidden/kernel" in text and "mirrored" in text
    assert "Copyright (c) 2012-2014 Chris Pettitt" in names(browser, "footer pre")[0], "the licence of dagre is not there"

    # By mouse: a search finds a node, and a click shows its chain.
    browser.click("#query")
    browser.type(GRADIENT)
    assert "result" in names(browser, "#found")[0]
    assert names(browser, "#results button")[0] == GRADIENT, names(browser, "#results button")
    assert names(browser, "#reductions ol.chain") == []
    browser.click("#results li:first-child button")
    chain = names(browser, "#reductions ol.chain li")
    assert chain[0].startswith(f"{GRADIENT} = MatMul: Partial(sum) k=1, because input 0 hidden/Relu is"), chain
    assert any("is split over the replicas" in line for line in chain), chain
    assert browser.run("document.activeElement.getAttribute('aria-expanded')") == "true"
    # The same row closes.
    browser.press("Enter")
    assert names(browser, "#reductions ol.chain") == []

    # By keyboard: to the search, to what was found, there.
    browser.run("document.activeElement.blur()")
    browser.press("/")
    browser.run("document.getElementById('query').select()")
    browser.type("hidden/kernel")
    browser.press("Enter")
    assert browser.run("document.activeElement.textContent") == "hidden/kernel"
    browser.press("Enter")
    assert browser.run("document.activeElement.closest('section').id") == "variables"
    browser.run("document.getElementById('query').focus(); document.getElementById('query').select()")
    browser.type("no such name")
    assert names(browser, "#found") == ["0 results"]

    graph(browser)
    nodes(browser)
    steps(browser, os.path.dirname(page))

    # A column sorts.
    browser.click("#variables thead th:first-child button")
    sorted_names = names(browser, "#variables tbody th")
    assert sorted_names == sorted(sorted_names, key=str.lower) and len(sorted_names) > 5, sorted_names
    is_quiet(browser, page)


def graph(browser):
    """A box opens its scope, by mouse and by keyboard; the way back; a search finds a scope."""
    boxes = "#graph svg [data-scope]"
    assert {"hidden", "output", "gradients"} <= set(browser.run(f"[...document.querySelectorAll('{boxes}')].map(e => e.dataset.scope)"))
    assert browser.run(f"[...document.querySelectorAll('{boxes}')].every(e => e.getAttribute('role') === 'button' && e.ariaLabel)")
    assert browser.run("document.querySelectorAll('#graph svg .line.exchange').length") > 0
    browser.click("#graph svg [data-scope=gradients]")
    assert names(browser, ".path li") == ["the graph", "gradients"]
    inside = browser.run(f"[...document.querySelectorAll('{boxes}')].map(e => e.dataset.scope)")
    assert "gradients/hidden" in inside and "hidden" in inside, inside
    assert browser.run("document.querySelectorAll('#graph svg .frame').length") == 1
    browser.run("document.querySelector('#graph svg [data-scope=\"gradients/hidden\"]').focus()")
    browser.press("Enter")
    assert names(browser, ".path li") == ["the graph", "gradients", "hidden"]
    assert any(name == "gradients/hidden/BiasAdd_grad/BiasAddGrad" for name in names(browser, ".panel button")), names(browser, ".panel")
    browser.click(".path li:first-child button")
    assert names(browser, ".path li") == ["the graph"]
    browser.run("document.getElementById('query').focus(); document.getElementById('query').select()")
    browser.type("gradients/output")
    browser.press("Enter")
    assert "gradients/output" in names(browser, "#results button")
    browser.run("[...document.querySelectorAll('#results button')].find(e => e.textContent === 'gradients/output').click()")
    assert names(browser, ".path li") == ["the graph", "gradients", "output"]


def nodes(browser):
    """Any node is found and explained, and what made its type so a click away."""
    browser.run("document.getElementById('query').focus(); document.getElementById('query').select()")
    browser.type("hidden/Relu")
    browser.run("[...document.querySelectorAll('#results li')].find(e => e.textContent === 'hidden/Relunode').firstChild.click()")
    chain = names(browser, "#nodes ol.chain li")
    assert chain[0] == "hidden/Relu = Relu: Sharded(0), because input 0 hidden/BiasAdd is Sharded(0)", chain
    assert any("is split over the replicas" in line for line in chain), chain
    browser.click("#nodes li:nth-child(2) button")
    assert names(browser, "#nodes ol.chain li")[0].startswith("hidden/BiasAdd = BiasAdd: Sharded(0)")
    assert names(browser, "#nodes h3") == ["hidden/BiasAdd"]


def steps(browser, folder):
    """Bars of the strategies' steps, the links of one, and the trace."""
    rows = names(browser, "#steps tbody th")
    assert "all-reduce (this graph)" in rows and len(rows) > 5, rows
    assert browser.run("[...document.querySelectorAll('#steps .bar')].every(e => e.ariaLabel.includes(' ms'))")
    browser.click("#steps tbody th button")
    assert names(browser, "#steps tr.detail thead th") == ["Machine", "To the network", "From the network", "Inside"]
    browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=folder)
    browser.click("#trace")
    path = os.path.join(folder, "trace.json")
    end = time.monotonic() + 20
    while not os.path.exists(path):
        assert time.monotonic() < end, "the trace is not saved"
        time.sleep(0.05)
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    named = [each["args"]["name"] for each in events if each["name"] == "thread_name"]
    assert sorted(named) == sorted(row.removesuffix(" (this graph)") for row in rows), named
    assert all(each["dur"] > 0 and each["ts"] >= 0 for each in events if each["ph"] == "X") and len(events) > 2 * len(named)


def main():
    graft_opt, *rest = sys.argv[1:]
    found = devtools.find()
    if found is None:
        sys.exit("browser: there is none")
    replicas = ["--replicas=2", "--device-type=CPU"]
    with tempfile.TemporaryDirectory() as folder, devtools.Browser(found) as browser:
        page = report(graft_opt, os.path.join(INPUTS, "mlp.pb"), folder, *replicas)
        uses(browser, page)
        if rest:
            os.makedirs(rest[0], exist_ok=True)
            for scheme in "light", "dark":
                browser.scheme(scheme)
                browser.open(f"file://{page}", READY)
                browser.screenshot(os.path.join(rest[0], f"report-{scheme}.png"))

        # A name that would be HTML is text.
        evil = os.path.join(folder, "<img src=x onerror=console.error(1)><")
        os.makedirs(evil)
        evil = os.path.join(evil, "script><script>console.error(2)<")
        shutil.copyfile(os.path.join(INPUTS, "mlp.pb"), evil)
        page = report(graft_opt, evil, folder, *replicas)
        browser.open(f"file://{page}", READY)
        assert names(browser, "#input-name") == [evil]
        assert browser.run("document.images.length") == 0
        is_quiet(browser, page)

        # After an error the page shows it.
        page = report(graft_opt, os.path.join(INPUTS, "mlp.pb"), folder, *replicas, "--feed=z=split")
        browser.open(f"file://{page}", READY)
        assert "error" in names(browser, "#warnings .level"), names(browser, "#warnings")
        is_quiet(browser, page)
        # Of a SavedModel functions are distributed, and the graph is not.
        model = os.path.join(folder, "model")
        os.makedirs(model)
        shutil.copyfile(os.path.join(INPUTS, os.pardir, "lit", "functions", "Inputs", "model.pbtxt"), os.path.join(model, "saved_model.pbtxt"))
        page = report(graft_opt, model, folder, *replicas, output="distributed")
        browser.open(f"file://{page}", READY)
        assert "functions that are distributed: train" in names(browser, "#overview")[0], names(browser, "#overview")
        is_quiet(browser, page)
    print("browser: the page of a report was opened, searched and read")


main()
