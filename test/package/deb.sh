#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs the Debian package into a root of its own, tries what is in it, and
# removes it again.
#
#   test/package/deb.sh PACKAGE    made by tools/package

set -euo pipefail
package=$(realpath "$1")
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "deb: $*" >&2
  exit 1
}

dpkg-deb --field "$package" Depends | grep -q 'libc6 (>= ' || fail "the package does not say which C library it takes"
# apt finds what it depends on, and nothing is installed.
apt-get install --simulate "$package" >"$work/apt.log" 2>&1 || {
  cat "$work/apt.log" >&2
  fail "its dependencies cannot be installed"
}

here=$work/root
mkdir -p "$here"/var/lib/dpkg/{info,updates}
touch "$here"/var/lib/dpkg/{status,available}
dpkg_here() {
  # No C library is installed in this root; programs run with that of the machine.
  dpkg --root="$here" --force-depends --force-not-root --log=/dev/null "$@" >"$work/dpkg.log" 2>&1 || {
    cat "$work/dpkg.log" >&2
    fail "dpkg $*"
  }
}
dpkg_here --install "$package"

"$here/usr/bin/graft-opt" "$root/test/inputs/mlp.pb" -o "$work/out.pb" --replicas=2 --device-type=CPU
for page in graft-opt graft-launch graft-diff graft-extract graft-reduce; do
  "$here/usr/bin/$page" --version >/dev/null
  man --warnings -l "$here/usr/share/man/man1/$page.1.gz" 2>"$work/man.log" >"$work/$page.txt" ||
    man --warnings -l "$here/usr/share/man/man1/$page.1" 2>"$work/man.log" >"$work/$page.txt"
  [[ ! -s $work/man.log ]] || fail "$(cat "$work/man.log")"
  grep -q 'EXIT STATUS' "$work/$page.txt" || fail "the manual of $page has no exit statuses"
done
bash -c "source '$here/usr/share/bash-completion/completions/graft-opt' && complete -p graft-opt graft-launch" >/dev/null
[[ -f $here/usr/share/zsh/site-functions/_graft ]] || fail "no completion of zsh"
[[ -f $here/usr/share/graft/bazel/graft.bzl ]] || fail "no rule for Bazel"
/usr/bin/python3 -B "$root/test/package/check_links.py" "$here/usr/share/doc/graft"

dpkg_here --purge graft
left=$(find "$here/usr" -type f 2>/dev/null || true)
[[ -z $left ]] || fail "after it was removed there is $left"
echo "deb: $(basename "$package") installed, tried and removed"
