# SPDX-License-Identifier: Apache-2.0
#
# A room of the source tree includes only itself and the rooms above it.
#
#   cmake -DROOT=<repository> -P check-rooms.cmake

cmake_minimum_required(VERSION 3.25)

# In the order of the libraries in CMakeLists.txt.
set(Rooms lib/support lib/ops lib/graph lib/io)

set(Errors)
set(Allowed)
foreach(Room IN LISTS Rooms)
  list(APPEND Allowed "${Room}")
  file(GLOB_RECURSE Files RELATIVE "${ROOT}"
    "${ROOT}/${Room}/*.cpp" "${ROOT}/${Room}/*.h" "${ROOT}/${Room}/*.def")
  foreach(File IN LISTS Files)
    file(STRINGS "${ROOT}/${File}" Includes
      REGEX "^[ \t]*#[ \t]*include[ \t]+\"(lib/|passes/|tools/|test/)")
    foreach(Include IN LISTS Includes)
      string(REGEX REPLACE "^[^\"]*\"(.*)/[^/]*\".*$" "\\1" Folder "${Include}")
      set(Known FALSE)
      foreach(Above IN LISTS Allowed)
        if(Folder STREQUAL Above OR Folder MATCHES "^${Above}/")
          set(Known TRUE)
        endif()
      endforeach()
      if(NOT Known)
        list(APPEND Errors "${File}: ${Include}")
      endif()
    endforeach()
  endforeach()
endforeach()

if(Errors)
  list(JOIN Errors "\n  " Text)
  message(FATAL_ERROR "a room includes a room below it:\n  ${Text}")
endif()
