# SPDX-License-Identifier: Apache-2.0
#
# Looks in programs for what GRAFT_HARDEN promises.
#
#   cmake -DREADELF=<readelf> -DPROGRAMS=<program>[;...] -DFORTIFIED=<0 or 1>
#         -P check-hardening.cmake

cmake_minimum_required(VERSION 3.25)

function(expect What Pattern)
  execute_process(COMMAND "${READELF}" ${ARGN} "${PROGRAM}"
    RESULT_VARIABLE Status OUTPUT_VARIABLE Out ERROR_VARIABLE Err)
  if(NOT Status EQUAL 0)
    message(FATAL_ERROR "${READELF} ${ARGN}: ${Err}")
  endif()
  if(NOT Out MATCHES "${Pattern}")
    message(SEND_ERROR "${PROGRAM} ${What}")
  endif()
endfunction()

foreach(PROGRAM IN LISTS PROGRAMS)
  expect("is not position-independent" "Flags:[^\n]* PIE" --dynamic --wide)
  expect("does not resolve its symbols at the start" "BIND_NOW|Flags:[^\n]* NOW"
    --dynamic --wide)
  expect("has no RELRO" "GNU_RELRO" --program-headers --wide)
  expect("has an executable stack" "GNU_STACK[^\n]* RW " --program-headers --wide)
  expect("has no stack protector" "__stack_chk_fail" --symbols --wide)
  if(FORTIFIED)
    expect("does not check calls of the C library" "__mem[a-z]+_chk" --symbols
      --wide)
  endif()
endforeach()
