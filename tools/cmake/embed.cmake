# SPDX-License-Identifier: Apache-2.0
#
# Writes the text of FILE as a raw literal of C++ to LITERAL.

file(READ "${FILE}" Text)
set(Mark "graft")
if(Text MATCHES "\\)${Mark}\"")
  message(FATAL_ERROR "${FILE} has what ends a literal")
endif()
file(WRITE "${LITERAL}" "R\"${Mark}(${Text})${Mark}\"\n")
