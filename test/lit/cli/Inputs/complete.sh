# SPDX-License-Identifier: Apache-2.0
#
# complete.sh COMPLETION WORD...: what bash offers for the last of the words, as it takes them apart at "=".
source "$1"
shift
COMP_WORDS=()
for word in "$@"; do
  if [[ $word == --*=* ]]; then
    COMP_WORDS+=("${word%%=*}" "=")
    [[ -n ${word#*=} ]] && COMP_WORDS+=("${word#*=}")
  else
    COMP_WORDS+=("$word")
  fi
done
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
compopt() { :; }
_graft "${COMP_WORDS[0]}"
printf '%s\n' "${COMPREPLY[@]}"
