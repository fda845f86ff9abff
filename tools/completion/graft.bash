# bash completion for graft. Made by tools/scripts/gen_cli.py; SPDX-License-Identifier: Apache-2.0

_graft() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} flag= words= files=
  COMPREPLY=()
  # bash may take "--flag=value" for three words.
  if [[ $current == "=" ]]; then
    flag=$before current=
  elif [[ $before == "=" ]]; then
    flag=${COMP_WORDS[COMP_CWORD - 2]}
  elif [[ $current == --*=* ]]; then
    flag=${current%%=*} current=${current#*=}
  elif [[ $before == -? ]]; then
    flag=$before
  fi
  case $1:$flag in
  *graft-opt:--around) words='' files= ;;
  *graft-opt:--capture) words='' files= ;;
  *graft-opt:-d) words='' files=1 ;;
  *graft-opt:--emit) words='pb pbtxt lines summary dot types none' files= ;;
  *graft-opt:--function) words='' files= ;;
  *graft-opt:--input-kind) words='auto graph metagraph savedmodel graphitem' files= ;;
  *graft-opt:-o) words='' files=1 ;;
  *graft-opt:--scope) words='' files= ;;
  *graft-opt:--shard-size) words='' files= ;;
  *graft-opt:--tags) words='' files= ;;
  *graft-opt:--threads) words='' files= ;;
  *graft-opt:--batch) words='global per-replica' files= ;;
  *graft-opt:--batch-norm) words='local exact sync' files= ;;
  *graft-opt:--bucket-bytes) words='' files= ;;
  *graft-opt:--cluster) words='' files=1 ;;
  *graft-opt:--collective-timeout) words='' files= ;;
  *graft-opt:--compressor) words='none fp16 fp16-ef bf16 bf16-ef' files= ;;
  *graft-opt:--device-map) words='' files= ;;
  *graft-opt:--device-type) words='CPU GPU TPU IPU' files= ;;
  *graft-opt:--devices) words='' files= ;;
  *graft-opt:--emit-strategy) words='' files=1 ;;
  *graft-opt:--fallback) words='once mean refuse' files= ;;
  *graft-opt:--feed) words='' files= ;;
  *graft-opt:--fetch) words='' files= ;;
  *graft-opt:--grad) words='' files= ;;
  *graft-opt:--group-size) words='' files= ;;
  *graft-opt:--max-shards) words='' files= ;;
  *graft-opt:--min-shard-size) words='' files= ;;
  *graft-opt:--min-spread) words='' files= ;;
  *graft-opt:--mode) words='in-graph between-graph' files= ;;
  *graft-opt:--plan) words='yaml json' files= ;;
  *graft-opt:--reduction) words='auto add collective accumulator' files= ;;
  *graft-opt:--replicas) words='' files= ;;
  *graft-opt:--resources) words='' files=1 ;;
  *graft-opt:--seed) words='' files= ;;
  *graft-opt:--spec) words='auto nccl ring' files= ;;
  *graft-opt:--staleness) words='' files= ;;
  *graft-opt:--strategy) words='ps ps-load-balancing partitioned-ps uneven-partitioned-ps all-reduce partitioned-all-reduce random-axis-partition-all-reduce parallax auto tpu ipu-multi-worker' files=1 ;;
  *graft-opt:--variable) words='' files= ;;
  *graft-opt:--worker) words='' files= ;;
  *graft-opt:--workers) words='' files= ;;
  *graft-opt:--against) words='' files=1 ;;
  *graft-opt:--custom-ops) words='' files= ;;
  *graft-opt:--explain) words='' files= ;;
  *graft-opt:--progress) words='auto never' files= ;;
  *graft-opt:--remarks) words='' files=1 ;;
  *graft-opt:--remarks-format) words='yaml opt-yaml json sarif text' files= ;;
  *graft-opt:--report) words='' files=1 ;;
  *graft-opt:--help-pass) words='' files= ;;
  *graft-opt:--passes) words='' files= ;;
  *graft-opt:--print-after) words='' files= ;;
  *graft-opt:--print-before) words='' files= ;;
  *graft-opt:--print-changed) words='diff quiet' files= ;;
  *graft-launch:--grace) words='' files= ;;
  *graft-launch:--port-base) words='' files= ;;
  *graft-launch:--quiet) words='' files= ;;
  *graft-launch:--restart) words='' files= ;;
  *graft-launch:--timeout) words='' files= ;;
  *graft-extract:--around) words='' files= ;;
  *graft-extract:--fetches) words='' files= ;;
  *graft-extract:--nodes) words='' files= ;;
  *graft-extract:-o) words='' files=1 ;;
  *graft-reduce:-j) words='' files= ;;
  *graft-reduce:-o) words='' files=1 ;;
  *graft-reduce:--python) words='' files= ;;
  *graft-reduce:--test) words='' files= ;;
  *graft-reduce:--timeout) words='' files= ;;
  *graft-reduce:--warns) words='' files= ;;
  *) flag= ;;
  esac
  if [[ -n $flag ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    if [[ -n $files ]]; then
      compopt -o filenames 2>/dev/null
      mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$current")
    fi
    return
  fi
  if [[ $current == -* ]]; then
    case $1 in
    *graft-opt) words='-S --around= --capture= -d --emit= -f --force --function= --in-place --input-kind= --link -o --scope= --shard-size= --signatures-only --tags= --threads= --write-if-changed --async --batch= --batch-norm= --bucket-bytes= --check-copies --cluster= --collective-timeout= --compressor= --device-map= --device-type= --devices= --emit-strategy= --even-batches --fallback= --feed= --fetch= --grad= --group-size= --local-replication --max-shards= --min-shard-size= --min-spread= --mode= --plan --reduction= --replicas= --resources= --seed= --spec= --staleness= --strategy= --variable= --worker= --workers= --against= --certify --custom-ops= --explain= --json --no-verify-output --progress= --quiet --remarks --remarks-format= --report= --strict --verify-output --help-pass= --list-passes --passes= --print-pipeline-passes --pass-statistics --print-after= --print-after-all --print-before= --print-before-all --print-changed --split-input-file --time-passes --verify-diagnostics --verify-each --help --version' ;;
    *graft-launch) words='--grace= --port-base= --quiet= --restart= --timeout= --help --version' ;;
    *graft-diff) words='--format --names -q --color --help --version' ;;
    *graft-extract) words='-S --around= -f --fetches= --nodes= -o --help --version' ;;
    *graft-reduce) words='--differs --fails -j -o --python= --test= --text --timeout= --warns= --help --version' ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
    return
  fi
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -f -- "$current")
}
complete -F _graft graft-opt graft-launch graft-diff graft-extract graft-reduce
