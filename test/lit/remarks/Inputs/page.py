# SPDX-License-Identifier: Apache-2.0
"""Looks at the page of a report: page.py FILE.html FILE.json."""

import base64
import collections
import html.parser
import re
import sys
import zlib

with open(sys.argv[1], encoding="utf-8") as f:
    page = f.read()
with open(sys.argv[2], encoding="utf-8") as f:
    report = f.read()


class Parser(html.parser.HTMLParser):
    """Counts elements, and keeps the report, and what is asked for."""

    def __init__(self):
        super().__init__()
        self.elements, self.is_report, self.report, self.policy = collections.Counter(), False, "", ""

    def handle_starttag(self, tag, attrs):
        self.elements[tag] += 1
        attrs = dict(attrs)
        assert "src" not in attrs and attrs.get("href", "#").startswith("#"), attrs
        if attrs.get("http-equiv") == "Content-Security-Policy":
            self.policy = attrs["content"]
        self.is_report = attrs.get("id") == "report"

    def handle_data(self, data):
        if self.is_report:
            self.report += data

    def handle_endtag(self, tag):
        self.is_report = False


parser = Parser()
parser.feed(page)
is_same = zlib.decompress(base64.b64decode(parser.report)).decode() == report
print("the report is that of r.json" if is_same else "the report is another one")
print("elements:", ", ".join(f"{tag} {parser.elements[tag]}" for tag in ("html", "main", "header", "nav", "form", "style", "noscript")))
print("from elsewhere:", re.match("[^;]*", parser.policy)[0])
assert page.count("</script") == parser.elements["script"], parser.elements
assert "{{" not in re.sub("<script.*?</script>", "", page, flags=re.S), "a mark of the template was left"
