# SPDX-License-Identifier: Apache-2.0
# Libraries that stand for NVIDIA's: they lie in a folder of their own, under the names of NVIDIA's, and export nothing else.

set(GEMMERY_DROP_IN_FOLDER "gemmery/emulated")

# gemmery_set_up_drop_in(TARGET): compiles it as the rooms are compiled.
function(gemmery_set_up_drop_in TARGET)
  set_target_properties(${TARGET} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(${TARGET} PRIVATE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")
  target_compile_definitions(${TARGET} PRIVATE GEMMERY_STATIC)
  target_link_libraries(${TARGET} PRIVATE gemmery_compile_options gemmery_hardening gemmery_headers_of_others)
endfunction()

# gemmery_install_drop_in(TARGET NAME VERSION [SUFFIX]): builds and installs lib/gemmery/emulated/libNAME.so.VERSION. It exports what
# the linker's script exported_namesSUFFIX.map of the room says; per_thread_namesSUFFIX.ld adds names for streams per thread.
function(gemmery_install_drop_in TARGET NAME VERSION)
  set(MAP "${CMAKE_CURRENT_SOURCE_DIR}/exported_names${ARGV3}.map")
  set(PER_THREAD "${CMAKE_CURRENT_SOURCE_DIR}/per_thread_names${ARGV3}.ld")
  set_target_properties(${TARGET} PROPERTIES
    OUTPUT_NAME ${NAME} PREFIX lib SUFFIX ".so.${VERSION}"
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib/${GEMMERY_DROP_IN_FOLDER}"
    BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "\$ORIGIN"
    LINK_DEPENDS "${MAP};${PER_THREAD}")
  target_link_options(${TARGET} PRIVATE
    "-Wl,--version-script=${MAP}" "${PER_THREAD}" "-Wl,-soname,lib${NAME}.so.${VERSION}" -Wl,-Bsymbolic)
  install(TARGETS ${TARGET} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/${GEMMERY_DROP_IN_FOLDER}")
endfunction()
