# SPDX-License-Identifier: Apache-2.0
# How tests are declared. Each is registered with CTest and with tests.json in the build folder, which tools/run_tests.py reads, so
# that a build folder can be run by itself on a machine without CMake. Tests run in the repository's root.
#
# gemmery_add_test(NAME room_test SOURCES a_test.cpp … [LABELS cpu] [ARGS …] [LIBRARIES …])
#     A GoogleTest program; LABELS say what it needs (cpu, nvrtc, gpu) and `soak` that it has a longer form under GEMMERY_SOAK=1.
# gemmery_add_script_test(NAME name COMMAND program … [LABELS cpu])
#     Anything else: passes when it exits with 0, is skipped when it exits with 77.
# gemmery_add_pytest(NAME name FOLDER folder [LABELS cpu] [ARGS …])
#     The tests of a folder that pytest collects, with the package as it was built.

function(gemmery_add_test)
  cmake_parse_arguments(PARSE_ARGV 0 TEST "" "NAME" "SOURCES;LABELS;ARGS;LIBRARIES")
  if(TEST_UNPARSED_ARGUMENTS OR NOT TEST_NAME OR NOT TEST_SOURCES)
    message(FATAL_ERROR "gemmery_add_test(NAME … SOURCES … [LABELS …] [ARGS …] [LIBRARIES …]): got ${ARGV}")
  endif()
  add_executable(${TEST_NAME} ${TEST_SOURCES})
  set_target_properties(${TEST_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/bin")
  target_include_directories(${TEST_NAME} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${TEST_NAME} PRIVATE gemmery_static ${TEST_LIBRARIES} GTest::gtest GTest::gtest_main)
  target_precompile_headers(${TEST_NAME} REUSE_FROM gemmery_test_headers)
  gemmery_register_test(gtest ${TEST_NAME} "${TEST_LABELS}" "tests/bin/${TEST_NAME};${TEST_ARGS}")
  add_test(NAME ${TEST_NAME} COMMAND ${TEST_NAME} ${TEST_ARGS} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  gemmery_describe_test(${TEST_NAME} "${TEST_LABELS}")
endfunction()

function(gemmery_add_script_test)
  cmake_parse_arguments(PARSE_ARGV 0 TEST "" "NAME" "COMMAND;LABELS")
  if(TEST_UNPARSED_ARGUMENTS OR NOT TEST_NAME OR NOT TEST_COMMAND)
    message(FATAL_ERROR "gemmery_add_script_test(NAME … COMMAND … [LABELS …]): got ${ARGV}")
  endif()
  gemmery_register_test(script ${TEST_NAME} "${TEST_LABELS}" "${TEST_COMMAND}")
  add_test(NAME ${TEST_NAME} COMMAND ${TEST_COMMAND} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  gemmery_describe_test(${TEST_NAME} "${TEST_LABELS}")
endfunction()

function(gemmery_add_pytest)
  cmake_parse_arguments(PARSE_ARGV 0 TEST "" "NAME;FOLDER" "LABELS;ARGS")
  if(TEST_UNPARSED_ARGUMENTS OR NOT TEST_NAME OR NOT TEST_FOLDER)
    message(FATAL_ERROR "gemmery_add_pytest(NAME … FOLDER … [LABELS …] [ARGS …]): got ${ARGV}")
  endif()
  gemmery_register_test(pytest ${TEST_NAME} "${TEST_LABELS}" "${TEST_FOLDER};${TEST_ARGS}")
  add_test(NAME ${TEST_NAME}
    COMMAND "${Python_EXECUTABLE}" -m pytest -q -p no:cacheprovider "${TEST_FOLDER}" ${TEST_ARGS} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  gemmery_describe_test(${TEST_NAME} "${TEST_LABELS}")
  set_tests_properties(${TEST_NAME} PROPERTIES ENVIRONMENT "PYTHONPATH=${PROJECT_BINARY_DIR}/python")
endfunction()

function(gemmery_describe_test NAME LABELS)
  if(NOT LABELS)
    set(LABELS cpu)
  endif()
  set_tests_properties(${NAME} PROPERTIES LABELS "${LABELS}" SKIP_RETURN_CODE 77 TIMEOUT 1200)
endfunction()

# One row of tests.json.
function(gemmery_register_test KIND NAME LABELS COMMAND)
  if(NOT LABELS)
    set(LABELS cpu)
  endif()
  list(JOIN LABELS "\", \"" LABELS)
  list(REMOVE_ITEM COMMAND "")
  list(JOIN COMMAND "\", \"" COMMAND)
  set_property(GLOBAL APPEND PROPERTY GEMMERY_TEST_ROWS
    "{\"name\": \"${NAME}\", \"kind\": \"${KIND}\", \"labels\": [\"${LABELS}\"], \"command\": [\"${COMMAND}\"]}")
endfunction()

# Writes tests.json; called once, after the last test is declared.
function(gemmery_write_test_list)
  get_property(ROWS GLOBAL PROPERTY GEMMERY_TEST_ROWS)
  list(JOIN ROWS ",\n  " ROWS)
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/tests.json" CONTENT "[\n  ${ROWS}\n]\n" @ONLY)
endfunction()
