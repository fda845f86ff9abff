# SPDX-License-Identifier: Apache-2.0
#
# A room of the source tree is a folder. It includes itself and the rooms that
# it is listed with here, each listed above it: so no circle arises.
#
#   cmake -DROOT=<repository> -P check-rooms.cmake

cmake_minimum_required(VERSION 3.25)

set(Rooms)
set(Debts)
set(Errors)

# room(<folder> <room that it may include>...)
function(room Room)
  foreach(Above IN LISTS ARGN)
    if(NOT Above IN_LIST Rooms)
      message(FATAL_ERROR "'${Room}' is listed with '${Above}', which is no "
        "room above it")
    endif()
  endforeach()
  set(Rooms ${Rooms} "${Room}" PARENT_SCOPE)
  set("May_${Room}" "${Room}" ${ARGN} PARENT_SCOPE)
endfunction()

# file_of_room(<file> <room>...): what one file may include more than its room.
function(file_of_room File)
  set("May_${File}" ${ARGN} PARENT_SCOPE)
endfunction()

# debt(<file> <header> <reason>): an include against the order, which is to go.
function(debt File Header Reason)
  set(Debts ${Debts} "${File} ${Header}" PARENT_SCOPE)
endfunction()

#===------------------------------------------------------------------------===#
# The rooms
#===------------------------------------------------------------------------===#

# The graph and its files.
room(lib/support)
room(lib/ops lib/support)
room(lib/graph lib/support lib/ops)
set(Base lib/support lib/ops lib/graph)
room(lib/io ${Base})
room(lib/io/read ${Base} lib/io)
room(lib/io/write ${Base} lib/io)
room(lib/io/inline ${Base} lib/io)
room(lib/io/functions ${Base} lib/io lib/io/inline)
room(lib/pass ${Base} lib/io lib/io/write)

# The form of a replicated program, and the facts about one.
room(lib/program ${Base})
room(lib/program/forms ${Base} lib/program)
set(Program lib/program lib/program/forms)
room(lib/infer/graph ${Base} lib/program)
room(lib/infer/sizes ${Base} ${Program} lib/infer/graph)
room(lib/infer/types ${Base} ${Program} lib/infer/graph lib/infer/sizes)
room(lib/infer/rules ${Base} ${Program}
  lib/infer/graph lib/infer/sizes lib/infer/types)
room(lib/infer/facts ${Base} ${Program} lib/io
  lib/infer/graph lib/infer/sizes lib/infer/types lib/infer/rules)
room(lib/infer/batch ${Base} ${Program}
  lib/infer/graph lib/infer/sizes lib/infer/rules)
set(Infer lib/infer/graph lib/infer/sizes lib/infer/types lib/infer/rules
  lib/infer/facts lib/infer/batch)

# Decisions, and edits that passes share.
room(lib/strategy ${Base} lib/io lib/io/read
  lib/program lib/infer/graph lib/infer/sizes)
room(lib/rewrite ${Base} lib/io ${Program} ${Infer} lib/strategy)
room(lib/rewrite/partition ${Base} lib/io ${Program} lib/infer/graph
  lib/strategy lib/rewrite)

# From a program to the graph that is written.
room(lib/lower/expand ${Base} lib/io ${Program} lib/infer/graph lib/infer/rules
  lib/strategy)
room(lib/lower/workers ${Base} lib/io ${Program} ${Infer} lib/lower/expand)
room(lib/lower/tpu ${Base} lib/io lib/io/inline ${Program} ${Infer}
  lib/lower/expand)

# The checker. Its one entry is lib/certify itself (Certify.h), and no pass
# includes it but those that are listed below.
room(lib/certify/forms ${Base} ${Program} ${Infer})
room(lib/certify/compare ${Base} ${Program} ${Infer} lib/certify/forms)
room(lib/certify/fold ${Base} ${Program} lib/infer/graph lib/infer/rules
  lib/certify/forms lib/certify/compare)
room(lib/certify/workers ${Base} lib/program lib/program/forms lib/infer/graph
  lib/infer/facts lib/certify/forms lib/certify/fold)
room(lib/certify/tpu ${Base} lib/program lib/infer/graph)
room(lib/certify/partition ${Base} lib/io lib/program lib/rewrite/partition)
room(lib/certify ${Base} lib/io lib/io/inline lib/program lib/infer/graph
  lib/certify/compare lib/certify/fold lib/certify/partition
  lib/certify/tpu lib/certify/workers)

set(Passes ${Base} lib/io lib/io/inline lib/pass ${Program} ${Infer}
  lib/strategy lib/rewrite lib/rewrite/partition
  lib/lower/expand lib/lower/workers lib/lower/tpu)
room(passes ${Passes})
# A function, which is a message of a library.
file_of_room(lib/program/forms/Messages.cpp lib/io)
file_of_room(lib/certify/workers/WireCheck.cpp lib/io)
file_of_room(passes/CheckReplication.cpp lib/io/read lib/certify)
file_of_room(passes/PartitionVariables.cpp lib/certify)

# The program that makes a graph of a part of a graph.
room(lib/extract ${Base} lib/io lib/infer/graph)
room(tools/graft-extract ${Base} lib/io/read lib/io/write lib/extract)

# The output of a run.
room(lib/report ${Base} lib/io lib/io/read lib/io/inline lib/io/functions lib/infer/graph
  lib/strategy lib/extract)

# The program.
room(lib/driver ${Base} lib/io lib/io/read lib/io/write lib/io/inline
  lib/io/functions lib/pass lib/program lib/infer/facts lib/strategy lib/certify
  lib/report passes)
file_of_room(lib/driver/Picture.cpp lib/lower/expand)
room(tools/graft-opt lib/support lib/io/read lib/pass lib/driver)

# The program that runs one for each task.
room(lib/launch lib/support lib/strategy)
room(tools/graft-launch lib/support lib/strategy lib/launch)

# The program that compares two graphs.
room(lib/diff ${Base} lib/io lib/io/write lib/program lib/infer/graph
  lib/certify/fold)
room(tools/graft-diff lib/support lib/io/read lib/diff)

# The program that makes small test cases.
room(lib/reduce ${Base} lib/io lib/io/read lib/io/write lib/infer/graph
  lib/extract)
room(tools/graft-reduce lib/support lib/io/read lib/io/write lib/reduce)

#===------------------------------------------------------------------------===#
# Known debts
#===------------------------------------------------------------------------===#


#===------------------------------------------------------------------------===#
# The check
#===------------------------------------------------------------------------===#

set(Paid ${Debts})
file(GLOB_RECURSE Files RELATIVE "${ROOT}"
  "${ROOT}/lib/*.cpp" "${ROOT}/lib/*.h" "${ROOT}/lib/*.def"
  "${ROOT}/passes/*" "${ROOT}/tools/graft-*/*")
foreach(File IN LISTS Files)
  cmake_path(GET File PARENT_PATH Room)
  if(NOT Room IN_LIST Rooms)
    list(APPEND Errors "${File}: '${Room}' is no room")
    continue()
  endif()
  file(STRINGS "${ROOT}/${File}" Includes
    REGEX "^[ \t]*#[ \t]*include[ \t]+\"(lib|passes|tools|test)/")
  foreach(Include IN LISTS Includes)
    string(REGEX REPLACE "^[^\"]*\"([^\"]*)\".*$" "\\1" Header "${Include}")
    cmake_path(GET Header PARENT_PATH Other)
    if("${File} ${Header}" IN_LIST Debts)
      list(REMOVE_ITEM Paid "${File} ${Header}")
    elseif(NOT Other IN_LIST "May_${Room}" AND NOT Other IN_LIST "May_${File}")
      list(APPEND Errors "${File} includes ${Header}")
    endif()
  endforeach()
endforeach()
foreach(Debt IN LISTS Paid)
  list(APPEND Errors "the debt '${Debt}' is paid: strike it off")
endforeach()

# The README.md of each room is its path as a heading and a few lines of plain
# text: a formatter of code, which takes it for code, indents it.
file(GLOB_RECURSE Readmes RELATIVE "${ROOT}" "${ROOT}/lib/*/README.md")
foreach(Room IN LISTS Rooms)
  if(Room MATCHES "^lib/" AND NOT EXISTS "${ROOT}/${Room}/README.md")
    list(APPEND Errors "${Room} has no README.md")
  endif()
endforeach()
foreach(Readme IN LISTS Readmes)
  cmake_path(GET Readme PARENT_PATH Room)
  file(READ "${ROOT}/${Readme}" Text)
  string(REPLACE ";" "," Text "${Text}")
  string(REGEX REPLACE "\n$" "" Text "${Text}")
  string(REPLACE "\n" ";" Lines "${Text}")
  list(LENGTH Lines Count)
  list(POP_FRONT Lines First)
  if(NOT First STREQUAL "# ${Room}")
    list(APPEND Errors "${Readme} does not begin with '# ${Room}'")
  endif()
  if(Count GREATER 12)
    list(APPEND Errors "${Readme} has ${Count} lines, and 12 are the most")
  endif()
  foreach(Line IN LISTS Lines)
    if(Line MATCHES "^[ \t#]|[ \t]$| [.:,;]( |$)|\t")
      list(APPEND Errors "${Readme} is no plain text: '${Line}'")
      break()
    endif()
  endforeach()
endforeach()

if(Errors)
  list(JOIN Errors "\n  " Text)
  message(FATAL_ERROR "rooms are not as they are listed:\n  ${Text}")
endif()
