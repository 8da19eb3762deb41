# SPDX-License-Identifier: Apache-2.0
# gemmery_add_benchmark(NAME room_bench SOURCES a.cpp … [LIBRARIES benchmark::benchmark …]): a program that `make bench` builds and runs.
# Like the tests it links the static library, so that it can also time what is not public.

function(gemmery_add_benchmark)
  cmake_parse_arguments(PARSE_ARGV 0 BENCH "" "NAME" "SOURCES;LIBRARIES")
  if(BENCH_UNPARSED_ARGUMENTS OR NOT BENCH_NAME OR NOT BENCH_SOURCES)
    message(FATAL_ERROR "gemmery_add_benchmark(NAME … SOURCES … [LIBRARIES …]): got ${ARGV}")
  endif()
  add_executable(${BENCH_NAME} ${BENCH_SOURCES})
  set_target_properties(${BENCH_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bench/bin")
  target_link_libraries(${BENCH_NAME} PRIVATE gemmery_static ${BENCH_LIBRARIES})
endfunction()
