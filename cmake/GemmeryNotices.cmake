# SPDX-License-Identifier: Apache-2.0
# gemmery_write_notices(OUTPUT HEADER…): the notices that a wheel owes to those whose code is inside it, as they stand in their own
# files: the comment that begins each header, and nanobind's licence. A header that only names its licence has the same terms as one
# before it.

# gemmery_notice_of(HEADER RESULT): the comment that begins a header.
function(gemmery_notice_of HEADER RESULT)
  file(READ "${HEADER}" TEXT LIMIT 16384)
  if(TEXT MATCHES "^[ \n]*/\\*")
    string(FIND "${TEXT}" "*/" END)
    string(SUBSTRING "${TEXT}" 0 ${END} TEXT)
    string(APPEND TEXT "*/\n")
  else()
    string(REGEX MATCH "^(//[^\n]*\n)+" TEXT "${TEXT}")
    string(REGEX MATCH "Copyright.*License-Identifier: (MIT|BSD-3-Clause)" FOUND "${TEXT}")
  endif()
  if(CMAKE_MATCH_1 STREQUAL "MIT")
    string(APPEND TEXT "// The terms are those of fmt above, without its exception, under this notice.\n")
  elseif(CMAKE_MATCH_1 STREQUAL "BSD-3-Clause")
    string(APPEND TEXT "// The terms are those of nanobind above, under this notice.\n")
  elseif(NOT TEXT MATCHES "\\*/\n$")
    message(FATAL_ERROR "${HEADER}: does not begin with a comment that holds its licence, or names it")
  endif()
  set(${RESULT} "${TEXT}" PARENT_SCOPE)
endfunction()

function(gemmery_write_notices OUTPUT)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c "from importlib.metadata import distribution as found
print(next(file for file in found('nanobind').files if file.name == 'LICENSE').read_text())"
    OUTPUT_VARIABLE NOTICES OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(NOTICES "The module _core holds code of these projects.\n\n--- nanobind\n\n${NOTICES}\n")
  foreach(HEADER IN LISTS ARGN)
    gemmery_notice_of("${HEADER}" TEXT)
    cmake_path(GET HEADER FILENAME NAME)
    string(APPEND NOTICES "\n--- ${NAME}\n\n${TEXT}")
  endforeach()
  file(WRITE "${OUTPUT}" "${NOTICES}")
endfunction()
