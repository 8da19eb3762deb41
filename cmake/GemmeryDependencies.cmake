# SPDX-License-Identifier: Apache-2.0
# Third-party packages, all from the distribution: installed in the system, or unpacked by tools/setup.sh under .deps/. Only
# `pip install .` has a second source for the headers of the library: the package index (GemmeryIndexHeaders.cmake).
# The library uses header-only ones in its .cpp files only, so nothing here reaches a user of the installed library.

include(GemmeryIndexHeaders)

if(EXISTS "${PROJECT_SOURCE_DIR}/.deps/root/usr")
  list(APPEND CMAKE_PREFIX_PATH "${PROJECT_SOURCE_DIR}/.deps/root/usr")
endif()

# gemmery_add_header_only(TARGET HEADER PACKAGE): an INTERFACE target for a package that is nothing but headers.
function(gemmery_add_header_only TARGET HEADER PACKAGE)
  find_path(${TARGET}_INCLUDE_DIR "${HEADER}")
  mark_as_advanced(${TARGET}_INCLUDE_DIR)
  set(FAULT "")
  if(NOT ${TARGET}_INCLUDE_DIR AND SKBUILD)
    gemmery_get_index_headers(FOLDERS FAULT)
    find_path(${TARGET}_INCLUDE_DIR "${HEADER}" PATHS ${FOLDERS} NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
  endif()
  if(NOT ${TARGET}_INCLUDE_DIR)
    message(FATAL_ERROR
      "The header ${HEADER} is not here. It is in the package ${PACKAGE}: as root, `apt-get install ${PACKAGE}`; "
      "without root, `tools/setup.sh` unpacks it into .deps/.\n${FAULT}")
  endif()
  add_library(${TARGET} INTERFACE)
  target_include_directories(${TARGET} SYSTEM INTERFACE "${${TARGET}_INCLUDE_DIR}")
endfunction()

gemmery_add_header_only(gemmery_fmt fmt/core.h libfmt-dev)
# Compiled once, by cmake/fmt.cpp: what uses it links gemmery_fmt_objects, too. Before version 9 it is compiled wherever it is used.
# Its number stands in base.h since 11, in core.h before.
foreach(HEADER IN ITEMS base.h core.h)
  if(EXISTS "${gemmery_fmt_INCLUDE_DIR}/fmt/${HEADER}" AND NOT FMT_VERSION)
    file(STRINGS "${gemmery_fmt_INCLUDE_DIR}/fmt/${HEADER}" FMT_VERSION REGEX "define FMT_VERSION [0-9]+")
  endif()
endforeach()
string(REGEX MATCH "[0-9]+" FMT_VERSION "${FMT_VERSION}")
if(FMT_VERSION LESS 90000)
  target_compile_definitions(gemmery_fmt INTERFACE FMT_HEADER_ONLY)
endif()
gemmery_add_header_only(gemmery_xxhash xxhash.h libxxhash-dev)
target_compile_definitions(gemmery_xxhash INTERFACE XXH_INLINE_ALL)
# A wheel has the command line where its headers are here; the package index has no CLI11.
if(SKBUILD)
  find_path(gemmery_json_INCLUDE_DIR nlohmann/json.hpp)
  find_path(gemmery_cli11_INCLUDE_DIR CLI/CLI.hpp)
  if(gemmery_json_INCLUDE_DIR AND gemmery_cli11_INCLUDE_DIR)
    set(GEMMERY_BUILD_CLI ON)
  else()
    message(STATUS "The wheel gets no command `gemmery`: it takes the packages nlohmann-json3-dev and libcli11-dev")
  endif()
endif()
if(GEMMERY_BUILD_CLI OR GEMMERY_BUILD_BENCH)
  gemmery_add_header_only(gemmery_json nlohmann/json.hpp nlohmann-json3-dev)
endif()
if(GEMMERY_BUILD_CLI)
  gemmery_add_header_only(gemmery_cli11 CLI/CLI.hpp libcli11-dev)
endif()

add_library(gemmery_headers_of_others INTERFACE)
target_link_libraries(gemmery_headers_of_others INTERFACE gemmery_fmt gemmery_xxhash)

find_package(Threads REQUIRED)
if(GEMMERY_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()
if(GEMMERY_BUILD_BENCH)
  find_package(benchmark REQUIRED)
endif()
