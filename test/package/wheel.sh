#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Looks at what the wheel asks of a machine, and installs it into empty
# environments, where it rewrites a graph without TensorFlow.
#
#   test/package/wheel.sh PYTHON WHEEL [INTERPRETER...]
#
# tools/package makes WHEEL, PYTHON has auditwheel, and the wheel is tried in
# each INTERPRETER.

set -euo pipefail
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
python=$1 wheel=$(realpath "$2")
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "wheel: $*" >&2
  exit 1
}

# The tags promise glibc 2.17 or musl 1.1: programs without shared libraries.
"$python" -m zipfile --extract "$wheel" "$work/wheel"
programs=(graft-opt graft-launch graft-diff graft-extract graft-reduce)
for program in "${programs[@]}"; do
  if readelf --dynamic "$work/wheel/graft/bin/$program" | grep -q NEEDED; then
    fail "$program takes shared libraries"
  fi
  readelf --dynamic "$work/wheel/graft/bin/$program" | grep -q 'Flags:.* PIE' || fail "$program is not position-independent"
  if readelf --dyn-syms --wide "$work/wheel/graft/bin/$program" | grep -q 'GLIBC_'; then
    fail "$program takes symbols of a glibc"
  fi
done
PATH=$(dirname "$python"):$PATH "$python" -m auditwheel show "$wheel" >"$work/audit.txt" 2>&1 || true
grep -q 'requires no external shared libraries' "$work/audit.txt" || fail "auditwheel: $(cat "$work/audit.txt")"
grep -oE 'consistent with.*' "$work/audit.txt" | sed 's/^/auditwheel: /'
# Where there is nothing but the program and a graph.
if [[ $(id -u) -eq 0 ]]; then
  chmod +x "$work/wheel/graft/bin/graft-opt"
  cp "$root/test/inputs/mlp.pb" "$work/wheel/graft/bin/"
  chroot "$work/wheel/graft/bin" /graft-opt /mlp.pb -o /out.pb --replicas=2 --device-type=CPU ||
    fail "graft-opt needs more than a kernel"
fi

cat >"$work/try.py" <<'PYTHON'
import sys

import graft

made = graft.rewrite(sys.argv[1], replicas=2, device_type="CPU", output=sys.argv[2])
assert made.plan.replicas == 2 and made.remarks, made
assert "tensorflow" not in sys.modules
try:
    graft.rewrite(sys.argv[1], replicas=2, strategy="no-such")
except graft.UsageError as error:
    assert error.status == 2
PYTHON
for interpreter in "$@"; do
  "$interpreter" -m venv "$work/empty"
  "$work/empty/bin/python" -m pip install --quiet --disable-pip-version-check --no-index --no-compile "$wheel"
  (
    cd "$work"
    "$work/empty/bin/python" try.py "$root/test/inputs/cnn_bn.meta" out.meta
    "$work/empty/bin/graft-opt" "$root/test/inputs/cnn_bn.meta" -o command.meta --replicas=2 --device-type=CPU
    "$work/empty/bin/python" -m graft command.meta --emit=none
    cmp out.meta command.meta
    for program in "${programs[@]}"; do
      "$work/empty/bin/$program" --version >/dev/null
    done
    "$work/empty/bin/graft-reduce" command.meta --fails -o none.pbtxt -- --no-such-flag 2>/dev/null ||
      fail "graft-reduce does not find its tests"
    for program in "${programs[@]}"; do
      [[ -s $work/empty/share/man/man1/$program.1 && -s $work/empty/share/bash-completion/completions/$program ]] ||
        fail "the environment has no man page or completion of $program"
    done
    [[ -s $work/empty/share/zsh/site-functions/_graft ]] || fail "the environment has no completion for zsh"
    status=0
    "$work/empty/bin/graft-opt" --no-such-flag 2>/dev/null || status=$?
    [[ $status -eq 2 ]] || fail "the console script ends with $status"
  )
  echo "wheel: $("$work/empty/bin/python" --version) runs it"
  rm -rf "$work/empty" "$work/out.meta" "$work/command.meta"
done
echo "wheel: $(basename "$wheel")"
