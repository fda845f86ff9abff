#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the bill of materials of a release, in the JSON of SPDX 2.3.

    sbom.py FOLDER    adds FOLDER/graft-VERSION.spdx.json

The programs are linked statically, so the libraries of the machine are in them. The versions are those of the Debian
packages that the build used. SOURCE_DATE_EPOCH sets the date; without it the date is that of the last commit.
"""

import datetime
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# The Debian package of each library in the programs, and its license.
LIBRARIES = {
    "llvm-19-dev": "Apache-2.0 WITH LLVM-exception",
    "libprotobuf-dev": "BSD-3-Clause",
    "libfmt-dev": "MIT",
    "libzstd-dev": "BSD-3-Clause",
    "zlib1g-dev": "Zlib",
    "libncurses-dev": "X11",
    "libstdc++-12-dev": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "libc6-dev": "LGPL-2.1-or-later",
}


def output_of(*command):
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, universal_newlines=True).stdout.strip()


def package(name, version, license_id, purl=None):
    identifier = "SPDXRef-" + re.sub(r"[^A-Za-z0-9.]", "-", name)
    entry = {
        "SPDXID": identifier,
        "name": name,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": license_id,
        "licenseDeclared": license_id,
        "copyrightText": "NOASSERTION",
    }
    if purl:
        entry["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}]
    return entry


def created():
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch is None:
        try:
            epoch = output_of("git", "log", "-1", "--format=%ct")
        except (OSError, subprocess.CalledProcessError):  # A source archive without git.
            epoch = os.path.getmtime(os.path.join(ROOT, "CMakeLists.txt"))
    return datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def main(folder):
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as cmake:
        version = re.search(r"project\(graft VERSION ([0-9.]+)", cmake.read()).group(1)
    ours = package("graft", version, "Apache-2.0")
    packages = [ours]
    for name, license_id in LIBRARIES.items():
        found = output_of("dpkg-query", "-W", "-f=${Version} ${Architecture}", name).split()
        packages.append(package(name, found[0], license_id, f"pkg:deb/debian/{name}@{found[0]}?arch={found[1]}"))
    packages.append(package("dagre", "NOASSERTION", "MIT"))
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"graft-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/graft-{version}-{os.uname().machine}",
        "creationInfo": {"created": created(), "creators": [f"Tool: graft-sbom-{version}"]},
        "packages": packages,
        "relationships": [
            {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": ours["SPDXID"]},
            *(
                {"spdxElementId": ours["SPDXID"], "relationshipType": "STATIC_LINK", "relatedSpdxElement": entry["SPDXID"]}
                for entry in packages[1:]
            ),
        ],
    }
    with open(os.path.join(folder, f"graft-{version}.spdx.json"), "w", encoding="utf-8") as output:
        json.dump(document, output, indent=2)
        output.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
