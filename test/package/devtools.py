# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium that a test looks into and types into, by the protocol of its developer tools, over a pipe."""

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-pipe")


def find():
    """The browser that is installed, or None."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


class Browser:
    """One page. `errors` has the messages of its console and its exceptions, `requests` the URLs that it loads."""

    def __init__(self, browser, width=1280, height=900):
        self.profile = tempfile.mkdtemp()
        self.errors, self.requests, self.events, self.number, self.rest = [], [], [], 0, b""
        to_browser, self.to = os.pipe()
        self.out, from_browser = os.pipe()

        def pipes():
            # The browser reads its descriptor 3 and writes 4. The first two are free of both before.
            os.dup2(to_browser, 63), os.dup2(from_browser, 64)
            os.dup2(63, 3), os.dup2(64, 4)

        self.process = subprocess.Popen(
            [browser, *FLAGS, f"--user-data-dir={self.profile}", f"--window-size={width},{height}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=pipes, close_fds=False, start_new_session=True,
        )
        os.close(to_browser), os.close(from_browser)
        self.session = None
        try:
            target = next(each for each in self.call("Target.getTargets")["targetInfos"] if each["type"] == "page")
            self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
            for domain in "Page", "Runtime", "Log", "Network":
                self.call(f"{domain}.enable")
            self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        os.close(self.to), os.close(self.out)
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def _read(self, seconds):
        end = time.monotonic() + seconds
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.out], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise TimeoutError("the browser says nothing")
            got = os.read(self.out, 1 << 20)
            if not got:
                raise EOFError("the browser is gone")
            self.rest += got
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, seconds=60, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            got = self._read(seconds)
            if got.get("id") == self.number:
                assert "error" not in got, f"{method}: {got['error']}"
                return got["result"]
            self._notice(got)

    def _notice(self, event):
        method, what = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = what["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and what["type"] in ("error", "warning", "assert"):
            self.errors.append(" ".join(str(each.get("value", each.get("description"))) for each in what["args"]))
        elif method == "Log.entryAdded" and what["entry"]["level"] in ("error", "warning"):
            self.errors.append(what["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(what["request"]["url"])

    def run(self, script):
        """The result of JavaScript as JSON; waits for a promise."""
        got = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in got, f"{script}: {got['exceptionDetails']}"
        return got["result"].get("value")

    def open(self, url, is_ready, seconds=60):
        """Opens a page, and gives the seconds until it is ready."""
        self.run("window.isLast = true")
        begin = time.monotonic()
        self.call("Page.navigate", url=url)
        self.wait(f"!window.isLast && document.documentElement && {is_ready}", seconds)
        return time.monotonic() - begin

    def wait(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while not self.run(f"Boolean({condition})"):
            assert time.monotonic() < end, f"{condition}: not within {seconds} s"
            time.sleep(0.02)

    def click(self, selector):
        """A click of the mouse in the middle of the element."""
        x, y = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center', behavior: 'instant'}});"
            " const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in "mousePressed", "mouseReleased":
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def press(self, key):
        code = {"Enter": 13, "Tab": 9, " ": 32}.get(key, 0)
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        for kind in "keyDown", "keyUp":
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **({"text": text} if kind == "keyDown" and text else {}))

    def scheme(self, name):
        """light or dark, as the user prefers."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
