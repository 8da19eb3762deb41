# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where: the library, its public and its device headers, a CMake package, a pkg-config file, pages and examples.

include(CMakePackageConfigHelpers)

install(TARGETS gemmery EXPORT gemmery-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILE_SET tables DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

# Device headers for kernels of users: a folder of its own, so that -I of it brings nothing else.
set(GEMMERY_DEVICE_INCLUDEDIR "${CMAKE_INSTALL_INCLUDEDIR}/gemmery-device")
gemmery_install_device_headers(DESTINATION "${GEMMERY_DEVICE_INCLUDEDIR}")
add_library(gemmery_device_headers INTERFACE)
set_target_properties(gemmery_device_headers PROPERTIES EXPORT_NAME device)
target_include_directories(gemmery_device_headers SYSTEM INTERFACE "$<INSTALL_INTERFACE:${GEMMERY_DEVICE_INCLUDEDIR}>")
install(TARGETS gemmery_device_headers EXPORT gemmery-targets)

set(PACKAGE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/gemmery")
install(EXPORT gemmery-targets NAMESPACE gemmery:: DESTINATION "${PACKAGE_DIR}")
configure_package_config_file(cmake/gemmery-config.cmake.in "${PROJECT_BINARY_DIR}/generated/gemmery-config.cmake"
  INSTALL_DESTINATION "${PACKAGE_DIR}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/generated/gemmery-config-version.cmake" COMPATIBILITY SameMajorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/generated/gemmery-config.cmake" "${PROJECT_BINARY_DIR}/generated/gemmery-config-version.cmake"
  DESTINATION "${PACKAGE_DIR}")

# The prefix is found from where gemmery.pc lies, so that an install tree may be moved.
set(PKGCONFIG_DIR "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
file(RELATIVE_PATH PREFIX_FROM_PKGCONFIG "/${PKGCONFIG_DIR}" "/")
string(REGEX REPLACE "/$" "" PREFIX_FROM_PKGCONFIG "${PREFIX_FROM_PKGCONFIG}")
configure_file(cmake/gemmery.pc.in "${PROJECT_BINARY_DIR}/generated/gemmery.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/generated/gemmery.pc" DESTINATION "${PKGCONFIG_DIR}")

# Pages with what they link to: examples, tutorials, records of speed. Links to headers lead through two symbolic links to the installed ones.
install(FILES LICENSE README.md CHANGELOG.md layers.txt DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY docs examples tutorials DESTINATION "${CMAKE_INSTALL_DOCDIR}" PATTERN __pycache__ EXCLUDE)
install(DIRECTORY bench/results bench/problems DESTINATION "${CMAKE_INSTALL_DOCDIR}/bench")
file(RELATIVE_PATH HEADERS_FROM_DOC "/${CMAKE_INSTALL_DOCDIR}/include" "/${CMAKE_INSTALL_INCLUDEDIR}/gemmery")
file(RELATIVE_PATH DEVICE_FROM_DOC "/${CMAKE_INSTALL_DOCDIR}/src" "/${GEMMERY_DEVICE_INCLUDEDIR}/device")
install(CODE "
  set(FOLDER \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DOCDIR}\")
  file(MAKE_DIRECTORY \"\${FOLDER}/include\" \"\${FOLDER}/src\")
  file(CREATE_LINK \"${HEADERS_FROM_DOC}\" \"\${FOLDER}/include/gemmery\" SYMBOLIC)
  file(CREATE_LINK \"${DEVICE_FROM_DOC}\" \"\${FOLDER}/src/device\" SYMBOLIC)
")
