# SPDX-License-Identifier: Apache-2.0
# gemmery_write_notices(OUTPUT HEADER…): the notices that a wheel owes to those whose code is inside it, as they stand in their own
# files: the comment that begins each header, and nanobind's licence.

function(gemmery_write_notices OUTPUT)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c "from importlib.metadata import distribution as found
print(next(file for file in found('nanobind').files if file.name == 'LICENSE').read_text())"
    OUTPUT_VARIABLE NOTICES OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(NOTICES "The module _core holds code of these projects.\n\n--- nanobind\n\n${NOTICES}\n")
  foreach(HEADER IN LISTS ARGN)
    file(READ "${HEADER}" TEXT)
    if(NOT TEXT MATCHES "^[ \n]*/\\*")
      message(FATAL_ERROR "${HEADER}: does not begin with a comment that holds its licence")
    endif()
    string(FIND "${TEXT}" "*/" END)
    string(SUBSTRING "${TEXT}" 0 ${END} TEXT)
    cmake_path(GET HEADER FILENAME NAME)
    string(APPEND NOTICES "\n--- ${NAME}\n\n${TEXT}*/\n")
  endforeach()
  file(WRITE "${OUTPUT}" "${NOTICES}")
endfunction()
