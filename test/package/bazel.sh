#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds a graph with tools/bazel/graft.bzl, and checks when it is made again.
#
#   test/package/bazel.sh PROGRAMS    the folder of graft-opt

set -euo pipefail
programs=$(realpath "$1")
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

mkdir -p "$work/project/third_party/graft" "$work/project/strategies"
cd "$work/project"
touch WORKSPACE
cp "$root/tools/bazel/graft.bzl" "$programs/graft-opt" third_party/graft/
echo 'exports_files(["graft-opt"])' >third_party/graft/BUILD
cp "$root/test/cmake/project/linear.pbtxt" .
"$programs/graft-opt" linear.pbtxt -o ignored.pbtxt --replicas=2 --device-type=CPU \
  --strategy=ps --emit-strategy=strategies/ps.pbtxt
rm ignored.pbtxt
cat >BUILD <<'BUILD'
load("//third_party/graft:graft.bzl", "graft_add_graph")

graft_add_graph(
    name = "x2",
    args = ["--fetch=loss"],
    device_type = "CPU",
    input = "linear.pbtxt",
    output = "linear.x2.pbtxt",
    replicas = 2,
    strategy = "all-reduce",
)

graft_add_graph(
    name = "ps",
    device_type = "CPU",
    input = "linear.pbtxt",
    output = "linear.ps.pbtxt",
    replicas = 2,
    strategy_file = "strategies/ps.pbtxt",
)
BUILD

# build EXPECTED WHY: how many graphs Bazel makes.
build() {
  local log made
  log=$(bazel --batch --output_user_root="$work/root" build //... 2>&1) || {
    echo "$log" >&2
    return 1
  }
  made=$(grep -oE '[0-9]+ (linux-sandbox|processwrapper-sandbox|local)' <<<"$log" | cut -d' ' -f1 | head -n 1 || true)
  if [[ ${made:-0} -ne $1 ]]; then
    echo "$log" >&2
    echo "$2: ${made:-0} graphs were made instead of $1" >&2
    return 1
  fi
  echo "bazel, $2: ${made:-0} graphs made"
}

build 2 "first build"
build 0 "nothing changed"
"$programs/graft-opt" linear.pbtxt -o "$work/x2.pbtxt" --replicas=2 --device-type=CPU --strategy=all-reduce --fetch=loss
cmp bazel-bin/linear.x2.pbtxt "$work/x2.pbtxt"
sed -i 's/float_val: 0.01/float_val: 0.25/' linear.pbtxt
build 2 "input changed"
grep -q 'float_val: 0.25' bazel-bin/linear.x2.pbtxt
echo '# the same' >>strategies/ps.pbtxt
build 1 "strategy file changed"
