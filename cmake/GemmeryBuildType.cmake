# SPDX-License-Identifier: Apache-2.0
# Defaults of a build that was configured without a preset, and properties that all our targets share.

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
endif()

set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
# A build tree that was copied to another machine must still find its own library there.
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
# Each public header must compile alone, seeing nothing but include/. Checked by the target all_verify_interface_header_sets.
set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ${PROJECT_IS_TOP_LEVEL})
