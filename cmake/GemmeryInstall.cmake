# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where: the library, its public headers, a CMake package and a pkg-config file.

include(CMakePackageConfigHelpers)

install(TARGETS gemmery EXPORT gemmery-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILE_SET tables DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

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
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
