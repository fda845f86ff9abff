#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# test/bench/gates.sh BUILD_DIR [NODES]: the cost of a rewrite against yardsticks
# that run beside it, as ratios; fails when a gate is not met. All processes are
# cold, outputs are new files, and each figure is the least of ten runs or more
# that take turns. Lines that start with `gates: ` are the results.

set -euo pipefail

build=$(cd "${1:?usage: gates.sh BUILD_DIR [NODES]}" && pwd)
nodes=${2:-100000}
graft=$build/bin/graft-opt
bench=$build/bench
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# Least of what was seen so far, by name: wall, user, sys (s), peak (KiB).
declare -A least
declare -a count

# Ratios of two walls are taken pair by pair, run next to each other, and the
# median of the pairs counts: a shared machine changes its speed between runs.
pairs=()

median() { # VALUE...
  printf '%s\n' "$@" | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

least_of() { # NAME VALUE
  least[$1]=$(awk -v a="${least[$1]:-}" -v b="$2" \
    'BEGIN { print (a == "" || b < a) ? b : a }')
}

# run_graft NAME ARGUMENT...: one run of graft-opt. The output must be a new
# file: to replace an old one costs what it costs to delete it.
run_graft() {
  local name=$1 line
  shift
  rm -f "$work/out.pb"
  /usr/bin/env python3 - "$graft" "$@" >"$work/times" <<'PYTHON'
import os, subprocess, sys, time

start = time.monotonic()
process = subprocess.Popen(sys.argv[1:])
_, status, usage = os.wait4(process.pid, 0)
wall = time.monotonic() - start
print(f"wall {wall:.4f} user {usage.ru_utime:.4f} sys {usage.ru_stime:.4f} peak {usage.ru_maxrss}")
sys.exit(os.waitstatus_to_exitcode(status))
PYTHON
  take "$name" <"$work/times"
}

# take NAME: reads a line `wall S user S sys S peak KIB`.
take() {
  local _ user sys peak
  read -r _ wall _ user _ sys _ peak
  least_of "$1.wall" "$wall"
  least_of "$1.user" "$user"
  least_of "$1.sys" "$sys"
  least_of "$1.peak" "$peak"
}

ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.3f", a / b }'; }

# gate TEXT VALUE LIMIT: VALUE must not exceed LIMIT.
gate() {
  local verdict=ok
  if ! awk -v v="$2" -v l="$3" 'BEGIN { exit !(v <= l) }'; then
    verdict=FAILED
    failed=1
  fi
  printf 'gates: %-64s %8s  (at most %s)  %s\n' "$1" "$2" "$3" "$verdict"
}

row() { # TEXT RATIO
  printf 'gates: %-64s %8s\n' "$1" "$2"
}

#===------------------------------------------------------------------------===#
# The whole job against protobuf
#===------------------------------------------------------------------------===#

input=$work/in.pb
"$bench/generate" "$nodes" "$input"
flags=(--replicas=8 --device-type=CPU --strategy=all-reduce --reduction=collective)
pair() { # one run of the job and one of the yardstick, next to each other
  rm -f "$work/result.pb"
  run_graft job "$input" -o "$work/out.pb" "${flags[@]}"
  local job_wall=$wall
  mv "$work/out.pb" "$work/result.pb"
  take message < <("$bench/protobuf_baseline" message "$work/result.pb" "$work/out.pb")
  pairs+=("$(ratio "$job_wall" "$wall")")
  rm -f "$work/out.pb"
}

# The limit is for a machine that is left alone. A round in which a neighbour
# took a core is measured again, twice at most; the best round counts.
wall_limit=0.25
best=
for round in 1 2 3; do
  pairs=()
  for _ in 1 2 3 4 5 6 7; do pair; done
  found=$(median "${pairs[@]}")
  echo "gates: round $round, pairs: ${pairs[*]}"
  if [[ -z $best ]] || awk -v a="$found" -v b="$best" 'BEGIN { exit !(a < b) }'; then
    best=$found
  fi
  awk -v b="$best" -v l="$wall_limit" 'BEGIN { exit !(b <= l) }' && break
done
for _ in 1 2 3; do
  pair
  take memcpy < <("$bench/protobuf_baseline" memcpy "$work/result.pb")
  take copy < <("$bench/protobuf_baseline" copy "$work/result.pb" "$work/out.pb")
  run_graft identity "$input" -o "$work/out.pb"
  cmp "$input" "$work/out.pb"
  take input < <("$bench/protobuf_baseline" message "$input")
  rm -f "$work/out.pb"
done

bytes=$(stat -c %s "$work/result.pb")
kib=$(awk -v b="$bytes" 'BEGIN { print b / 1024 }')
rm -f "$work/result.pb"
row "$nodes nodes x 8: output / input, bytes" "$(ratio "$bytes" "$(stat -c %s "$input")")"
gate "wall / protobuf arena parse + serialize + write of the output" \
  "$best" "$wall_limit"
row "user CPU / user CPU of the same" "$(ratio "${least[job.user]}" "${least[message.user]}")"
row "wall / copy of the output file" "$(ratio "${least[job.wall]}" "${least[copy.wall]}")"
row "wall / memcpy of the output into fresh memory" "$(ratio "${least[job.wall]}" "${least[memcpy.wall]}")"
gate "peak memory / output size" "$(ratio "${least[job.peak]}" "$kib")" 0.5
row "protobuf's peak memory / output size" "$(ratio "${least[message.peak]}" "$kib")"
row "empty pipeline, wall / protobuf parse + serialize of the input" \
  "$(ratio "${least[identity.wall]}" "${least[input.wall]}")"

#===------------------------------------------------------------------------===#
# Replicas cost nothing before the write
#===------------------------------------------------------------------------===#

small=$work/small.pb
"$bench/generate" 10000 "$small" >/dev/null
for replicas in 2 64; do
  flags[0]=--replicas=$replicas
  pipeline=$("$graft" "$small" "${flags[@]}" --print-pipeline-passes)
  count[replicas]=$("$graft" "$small" --passes="${pipeline%,expand-replicas}" --emit=summary | grep -c ' = ')
  for _ in 1 2 3; do
    run_graft "none$replicas" "$small" --emit=none "${flags[@]}"
    run_graft "file$replicas" "$small" -o "$work/out.pb" "${flags[@]}"
  done
done

spread() { # A B: |A - B| / B
  awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; printf "%.3f", (d < 0 ? -d : d) / b }'
}
gate "10000 nodes: program's nodes, x 64 against x 2" "$(spread "${count[64]}" "${count[2]}")" 0
gate "10000 nodes: peak memory before the write, x 64 against x 2" \
  "$(spread "${least[none64.peak]}" "${least[none2.peak]}")" 0.05
# While it is written the certificate runs beside it, at no fixed pace.
gate "10000 nodes: peak memory with the write, x 64 against x 2" \
  "$(spread "${least[file64.peak]}" "${least[file2.peak]}")" 0.1

# GraphDef and NodeDef messages are made by the text format and nothing else.
users=$(nm -A -C -u "$build"/libgraft_*.a 2>/dev/null |
  grep -E 'tensorflow::(Graph|Node)Def::' |
  sed -nE 's/.*\/libgraft_([a-z]+)\.a:([^:]*)\.o:.*/\1\/\2/p' |
  grep -v '^proto/' | sort -u | tr '\n' ' ') || true
if [[ -n $users && $users != "io/Text.cpp " ]]; then
  echo "gates: NodeDef messages outside of io/Text.cpp: $users FAILED"
  failed=1
else
  row "objects that make NodeDef messages: io/Text.cpp (text format)" "ok"
fi

if [[ $failed -ne 0 ]]; then
  echo "gates: a gate is not met" >&2
fi
exit "$failed"
