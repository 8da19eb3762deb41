# SPDX-License-Identifier: Apache-2.0
# The library's header-only packages from the package index, pinned and hash-checked, for `pip install .` on a machine that has none.
# Builds without pip take them from the distribution (tools/setup.sh).

# gemmery_get_index_headers(FOLDERS FAULT): downloads and unpacks them into the build folder, where later builds find them. FOLDERS gets
# what to search for headers; where there is nothing, FAULT gets what pip said.
function(gemmery_get_index_headers FOLDERS FAULT)
  set(ROOT "${PROJECT_BINARY_DIR}/index_headers")
  if(NOT EXISTS "${ROOT}/complete")
    message(STATUS "fmt or xxHash is not here: getting both from the package index")
    execute_process(
      COMMAND "${Python_EXECUTABLE}" -m pip download --quiet --disable-pip-version-check --no-input --no-deps --require-hashes
        --only-binary cmeel-fmt --no-binary xxhash --dest "${ROOT}/archives"
        --requirement "${PROJECT_SOURCE_DIR}/cmake/header-requirements.txt"
      ERROR_VARIABLE WORDS RESULT_VARIABLE STATUS)
    if(NOT STATUS EQUAL 0)
      set(${FOLDERS} "" PARENT_SCOPE)
      set(${FAULT} "${WORDS}" PARENT_SCOPE)
      return()
    endif()
    file(GLOB ARCHIVES "${ROOT}/archives/*")
    foreach(ARCHIVE IN LISTS ARCHIVES)
      file(ARCHIVE_EXTRACT INPUT "${ARCHIVE}" DESTINATION "${ROOT}" PATTERNS "*.h")
    endforeach()
    file(TOUCH "${ROOT}/complete")
  endif()
  file(GLOB FOUND "${ROOT}/*/include" "${ROOT}/*/deps/xxhash")
  set(${FOLDERS} "${FOUND}" PARENT_SCOPE)
  set(${FAULT} "" PARENT_SCOPE)
endfunction()
