# SPDX-License-Identifier: Apache-2.0
# gemmery_embed_device(TARGET): adds the text of all device code to TARGET as data; src/jit/embedded.hpp declares how it is read.
# gemmery_install_device_headers(DESTINATION folder …): the same files, for kernels of users that include them; -I of that folder finds all.

function(gemmery_embed_device TARGET)
  set(SOURCE_DIR "${PROJECT_SOURCE_DIR}/src")
  set(INCLUDE_DIR "${PROJECT_SOURCE_DIR}/include")
  file(GLOB_RECURSE HEADERS CONFIGURE_DEPENDS
    "${SOURCE_DIR}/device/*.cuh" "${SOURCE_DIR}/device/*.hpp" "${SOURCE_DIR}/device/*.def")
  file(GLOB TABLES CONFIGURE_DEPENDS "${INCLUDE_DIR}/gemmery/*.def")
  list(APPEND HEADERS ${TABLES})
  list(SORT HEADERS)
  set_property(GLOBAL PROPERTY GEMMERY_DEVICE_HEADERS ${HEADERS})

  set(LIST "${PROJECT_BINARY_DIR}/generated/embedded_headers.txt")
  set(OUTPUT "${PROJECT_BINARY_DIR}/generated/embedded_headers.cpp")
  list(JOIN HEADERS "\n" LINES)
  # Written only when it changes: a header that comes or goes makes a new list, and the list a new .cpp.
  file(CONFIGURE OUTPUT "${LIST}" CONTENT "${LINES}\n" @ONLY)
  set(WRITER "${PROJECT_SOURCE_DIR}/cmake/write_embedded_headers.cmake")
  add_custom_command(
    OUTPUT "${OUTPUT}"
    COMMAND "${CMAKE_COMMAND}" "-DLIST=${LIST}" "-DOUTPUT=${OUTPUT}" "-DSOURCE_ROOT=${SOURCE_DIR}" "-DINCLUDE_ROOT=${INCLUDE_DIR}" -P "${WRITER}"
    DEPENDS ${HEADERS} "${LIST}" "${WRITER}"
    COMMENT "Embedding device headers"
    VERBATIM)
  target_sources(${TARGET} PRIVATE "${OUTPUT}")
endfunction()

function(gemmery_install_device_headers)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/src/device" ${ARGN} FILES_MATCHING PATTERN "*.cuh" PATTERN "*.hpp" PATTERN "*.def")
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/gemmery" ${ARGN} FILES_MATCHING PATTERN "*.def")
endfunction()
