# SPDX-License-Identifier: Apache-2.0
#
# graft_add_graph(<target>
#                 INPUT <file or SavedModel directory>
#                 OUTPUT <file, or the folder of a SavedModel>
#                 [REPLICAS <n>] [DEVICE_TYPE <type>] [STRATEGY <name or file>]
#                 [ARGS <graft-opt option>...])
#
# Adds the target <target>, part of `all`, which rewrites INPUT into OUTPUT with
# graft-opt. A relative INPUT, or STRATEGY with a dot or a slash, is looked up in
# the current source folder, a relative OUTPUT is made in the current binary
# folder; the property GRAFT_OUTPUT of the target holds the absolute path of the
# result.
#
# The build runs graft again when INPUT, graft itself or any other file that
# graft read (a strategy, a resource specification: they are in the depfile)
# changed. With a Ninja generator OUTPUT keeps its time stamp when the bytes are
# the same, so that nothing after it is built again either.

# CMP0116: paths in a depfile are relative to the current binary folder.
cmake_policy(PUSH)
cmake_policy(VERSION 3.20...3.25)

function(graft_add_graph Target)
  cmake_parse_arguments(PARSE_ARGV 1 Arg ""
    "INPUT;OUTPUT;REPLICAS;DEVICE_TYPE;STRATEGY" "ARGS")
  if(DEFINED Arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR
      "graft_add_graph(${Target}): unknown arguments: ${Arg_UNPARSED_ARGUMENTS}")
  endif()
  foreach(Name IN ITEMS INPUT OUTPUT)
    if(NOT Arg_${Name})
      message(FATAL_ERROR "graft_add_graph(${Target}): ${Name} is missing")
    endif()
  endforeach()

  cmake_path(ABSOLUTE_PATH Arg_INPUT
    BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE
    OUTPUT_VARIABLE Input)
  get_source_file_property(IsGenerated "${Input}" GENERATED)
  if(NOT EXISTS "${Input}" AND NOT IsGenerated)
    message(FATAL_ERROR "graft_add_graph(${Target}): INPUT '${Input}' does not "
      "exist, and no command before this one makes it; correct the name, or "
      "set the source file property GENERATED")
  endif()
  cmake_path(ABSOLUTE_PATH Arg_OUTPUT
    BASE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}" NORMALIZE
    OUTPUT_VARIABLE Output)
  cmake_path(GET Output PARENT_PATH OutputFolder)
  file(MAKE_DIRECTORY "${OutputFolder}")

  set(Options)
  if(DEFINED Arg_REPLICAS)
    list(APPEND Options "--replicas=${Arg_REPLICAS}")
  endif()
  if(DEFINED Arg_DEVICE_TYPE)
    list(APPEND Options "--device-type=${Arg_DEVICE_TYPE}")
  endif()
  if(DEFINED Arg_STRATEGY)
    # No strategy has a name with a dot or a slash.
    if(Arg_STRATEGY MATCHES "[./]")
      cmake_path(ABSOLUTE_PATH Arg_STRATEGY
        BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE)
    endif()
    list(APPEND Options "--strategy=${Arg_STRATEGY}")
  endif()
  list(APPEND Options ${Arg_ARGS})
  # Ninja remembers that the command ran although its output is unchanged; make
  # only looks at time stamps and would run it every time.
  if(CMAKE_GENERATOR MATCHES "Ninja")
    list(APPEND Options --write-if-changed)
  endif()

  # The other files of a SavedModel's folder are in the depfile. An output
  # for a folder is a folder, which is replaced.
  set(Dependency "${Input}")
  if(IS_DIRECTORY "${Input}")
    set(Dependency "${Input}/saved_model.pb")
    if(NOT EXISTS "${Dependency}")
      set(Dependency "${Input}/saved_model.pbtxt")
    endif()
    list(APPEND Options --force)
  endif()

  set(Depfile "${CMAKE_CURRENT_BINARY_DIR}/${Target}.graft.d")
  cmake_path(RELATIVE_PATH Output BASE_DIRECTORY "${CMAKE_BINARY_DIR}"
    OUTPUT_VARIABLE Shown)
  add_custom_command(
    OUTPUT "${Output}"
    COMMAND graft::graft-opt "${Input}" -o "${Output}" -d "${Depfile}"
            ${Options}
    DEPENDS "${Dependency}" graft::graft-opt
    DEPFILE "${Depfile}"
    COMMENT "Distributing graph ${Shown}"
    VERBATIM)
  add_custom_target(${Target} ALL DEPENDS "${Output}")
  set_target_properties(${Target} PROPERTIES GRAFT_OUTPUT "${Output}")
endfunction()

cmake_policy(POP)
