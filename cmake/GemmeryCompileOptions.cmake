# SPDX-License-Identifier: Apache-2.0
# gemmery_compile_options: how our own code is compiled. Warnings become errors in our presets (CMAKE_COMPILE_WARNING_AS_ERROR).
# gemmery_hardening: what users get is guarded against the use of our own mistakes (tests/security/program_test.py looks at the result).

add_library(gemmery_compile_options INTERFACE)
target_compile_features(gemmery_compile_options INTERFACE cxx_std_20)
target_compile_options(gemmery_compile_options INTERFACE -Wall -Wextra -Wconversion -Wshadow)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # False alarms of g++ 12 in every `"text" + std::string` that it inlines (GCC bug 105651, mended in 13).
  target_compile_options(gemmery_compile_options INTERFACE -Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
  # The same alarms under other names, where <string> comes out of a precompiled header; dev and asan have none and keep these warnings.
  target_compile_options(gemmery_compile_options INTERFACE -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds)
endif()

if(GEMMERY_SANITIZE)
  target_compile_options(gemmery_compile_options INTERFACE
    -fsanitize=${GEMMERY_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Instrumented code makes g++ see uninitialised members inside std::function and std::regex.
    target_compile_options(gemmery_compile_options INTERFACE -Wno-maybe-uninitialized)
  endif()
  target_link_options(gemmery_compile_options INTERFACE -fsanitize=${GEMMERY_SANITIZE})
endif()

include(CheckCXXCompilerFlag)
check_cxx_compiler_flag(-fstack-protector-strong GEMMERY_HAS_STACK_PROTECTOR)
add_library(gemmery_hardening INTERFACE)
if(GEMMERY_HAS_STACK_PROTECTOR)
  # An overflow of an array on the stack ends the program before the function returns.
  target_compile_options(gemmery_hardening INTERFACE -fstack-protector-strong)
endif()
# Tables of addresses are read-only once the program runs.
target_link_options(gemmery_hardening INTERFACE -Wl,-z,relro,-z,now)
