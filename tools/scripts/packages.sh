# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Debian packages, for tools/demo and tools/check; sourced by them.

# Packages for the build. Installed later, ccache would change all commands,
# and what was built is built again.
# shellcheck disable=SC2034 # used by the scripts that source this file
build_packages=(
  g++ cmake ninja-build python3 ccache
  llvm-19-dev llvm-19-tools libzstd-dev zlib1g-dev libncurses-dev
  libprotobuf-dev protobuf-compiler libfmt-dev catch2 libbenchmark-dev
)

# More packages for the tests.
# shellcheck disable=SC2034
check_packages=(
  git python3-venv
  clang-19 clang-tidy-19 clang-format-19 libclang-rt-19-dev
  man-db dpkg-dev file valgrind
)

# And with --full.
# shellcheck disable=SC2034
full_packages=(chromium bazel-bootstrap)

# install_packages PACKAGE...: installs those that are missing, if any.
install_packages() {
  local package missing=() sudo=()
  for package in "$@"; do
    if ! dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null |
      grep -qx installed; then
      missing+=("$package")
    fi
  done
  if [[ ${#missing[@]} -eq 0 ]]; then
    return 0
  fi
  echo "Installing: ${missing[*]}"
  if [[ $(id -u) -ne 0 ]]; then
    if ! command -v sudo >/dev/null; then
      echo "error: these packages are missing, and installing them takes" \
        "root: ${missing[*]}" >&2
      return 1
    fi
    sudo=(sudo)
  fi
  "${sudo[@]}" apt-get update -qq
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}"
}
