# SPDX-License-Identifier: Apache-2.0
#
# Installs graft, then builds a small project with it, once against the
# installed package and once against the build tree, and checks when graft runs:
# when its input changed, and only then.
#
#   cmake -DBUILD=<build tree> -DWORK=<scratch> -DGENERATOR=<generator>
#         -P package-test.cmake

cmake_minimum_required(VERSION 3.25)

function(run Result)
  execute_process(COMMAND ${ARGN}
    RESULT_VARIABLE Status OUTPUT_VARIABLE Out ERROR_VARIABLE Err)
  if(NOT Status EQUAL 0)
    list(JOIN ARGN " " Command)
    message(FATAL_ERROR "${Command}: exit status ${Status}\n${Out}${Err}")
  endif()
  set(${Result} "${Out}${Err}" PARENT_SCOPE)
endfunction()

# build(<tree> <expected runs of graft> <why>)
function(build Tree Expected Why)
  run(Log "${CMAKE_COMMAND}" --build "${Tree}")
  string(REGEX MATCHALL "Distributing graph" Runs "${Log}")
  list(LENGTH Runs Count)
  if(NOT Count EQUAL Expected)
    message(FATAL_ERROR
      "${Why}: graft ran ${Count} times instead of ${Expected}\n${Log}")
  endif()
  message(STATUS "${Why}: graft ran ${Count} times")
endfunction()

function(expect_equal Left Right What)
  if(NOT Left STREQUAL Right)
    message(FATAL_ERROR "${What}: '${Left}' is not '${Right}'")
  endif()
endfunction()

function(check Package PackageDir)
  set(Source "${WORK}/${Package}-source")
  set(Tree "${WORK}/${Package}-build")
  set(Input "${Source}/linear.pbtxt")
  set(Output "${Tree}/graphs/linear.x2.pbtxt")
  set(Same "${Tree}/graphs/same.pbtxt")
  file(COPY "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/project/"
    DESTINATION "${Source}")
  configure_file(
    "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../lit/functions/Inputs/model.pbtxt"
    "${Source}/model/saved_model.pbtxt" COPYONLY)
  file(WRITE "${Source}/model/variables/variables.index" "some")

  run(Log "${CMAKE_COMMAND}" -S "${Source}" -B "${Tree}" -G "${GENERATOR}"
    "-Dgraft_DIR=${PackageDir}")
  # An input that does not exist is an error at once, not in the build.
  set(Lacking "${WORK}/${Package}-lacking")
  file(WRITE "${Lacking}/CMakeLists.txt" "cmake_minimum_required(VERSION 3.20)
project(lacking LANGUAGES NONE)
find_package(graft REQUIRED)
graft_add_graph(x2 INPUT no.meta OUTPUT x2.meta REPLICAS 2)
")
  execute_process(COMMAND "${CMAKE_COMMAND}" -S "${Lacking}"
      -B "${Lacking}/build" -G "${GENERATOR}" "-Dgraft_DIR=${PackageDir}"
    RESULT_VARIABLE Status OUTPUT_VARIABLE Out ERROR_VARIABLE Err)
  # CMake breaks the lines of a message.
  string(REGEX REPLACE "[ \n]+" " " Said "${Err}")
  if(Status EQUAL 0 OR NOT Said MATCHES "no.meta' does not exist")
    message(FATAL_ERROR "${Package}: a missing INPUT is no error: ${Out}${Err}")
  endif()
  build("${Tree}" 4 "${Package}, first build")
  build("${Tree}" 0 "${Package}, nothing changed")
  if(NOT EXISTS "${Tree}/graphs/model.x2/variables/variables.index")
    message(FATAL_ERROR "the folder of a SavedModel lacks a file")
  endif()
  file(WRITE "${Source}/model/variables/variables.index" "others")
  build("${Tree}" 1 "${Package}, variables changed")
  build("${Tree}" 0 "${Package}, nothing changed since")
  file(READ "${Tree}/graphs/model.x2/variables/variables.index" Variables)
  expect_equal("${Variables}" "others" "variables that changed")
  file(SHA256 "${Output}" First)
  file(TIMESTAMP "${Output}" FirstTime "%s%f")

  # Touched: graft runs, and keeps the file that it would write again.
  file(TOUCH "${Input}")
  build("${Tree}" 3 "${Package}, input touched")
  build("${Tree}" 0 "${Package}, nothing changed since")
  file(SHA256 "${Output}" Touched)
  expect_equal("${Touched}" "${First}" "output of the same input")
  if(GENERATOR MATCHES "Ninja")
    file(TIMESTAMP "${Output}" TouchedTime "%s%f")
    expect_equal("${TouchedTime}" "${FirstTime}" "time of the same output")
  endif()

  # Changed: another constant, another output.
  file(READ "${Input}" Text)
  string(REPLACE "float_val: 0.01" "float_val: 0.25" Changed "${Text}")
  file(WRITE "${Input}" "${Changed}")
  build("${Tree}" 3 "${Package}, input changed")
  build("${Tree}" 0 "${Package}, nothing changed since")
  file(READ "${Output}" After)
  if(NOT After MATCHES "float_val: 0\\.25")
    message(FATAL_ERROR "the output does not have the changed constant")
  endif()
  file(SHA256 "${Same}" SameBefore)

  # Another strategy: one graph is made of it.
  file(APPEND "${Source}/strategies/ps.pbtxt" "# the same\n")
  build("${Tree}" 1 "${Package}, strategy file changed")

  # Broken: the build fails and leaves the last good output alone.
  file(APPEND "${Input}" "node {\n")
  execute_process(COMMAND "${CMAKE_COMMAND}" --build "${Tree}"
    RESULT_VARIABLE Status OUTPUT_QUIET ERROR_QUIET)
  if(Status EQUAL 0)
    message(FATAL_ERROR "a broken input built")
  endif()
  file(SHA256 "${Same}" SameAfter)
  expect_equal("${SameAfter}" "${SameBefore}" "output after a failed run")
  file(WRITE "${Input}" "${Changed}")
  build("${Tree}" 3 "${Package}, input repaired")
endfunction()

file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")
run(Log "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${WORK}/prefix")
file(GLOB_RECURSE Config "${WORK}/prefix/*/graftConfig.cmake")
cmake_path(GET Config PARENT_PATH InstalledPackage)
run(Log "${WORK}/prefix/bin/graft-launch" --version)
check(installed "${InstalledPackage}")
check(build-tree "${BUILD}")
