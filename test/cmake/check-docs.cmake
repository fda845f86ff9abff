# SPDX-License-Identifier: Apache-2.0
#
# docs/Passes.md is what graft-opt says about its passes.
#
#   cmake -DTOOL=<graft-opt> -DDOC=<docs/Passes.md> -P check-docs.cmake

cmake_minimum_required(VERSION 3.25)

execute_process(COMMAND "${TOOL}" --print-passes-md
  RESULT_VARIABLE Status OUTPUT_VARIABLE Now ERROR_VARIABLE Err)
if(NOT Status EQUAL 0)
  message(FATAL_ERROR "graft-opt --print-passes-md: exit status ${Status}\n${Err}")
endif()
if(NOT EXISTS "${DOC}")
  message(FATAL_ERROR "${DOC} is missing")
endif()
file(READ "${DOC}" Then)
if(NOT Now STREQUAL Then)
  message(FATAL_ERROR "docs/Passes.md is out of date. Make it again with\n"
    "  ${TOOL} --print-passes-md > docs/Passes.md")
endif()
