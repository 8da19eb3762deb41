// SPDX-License-Identifier: Apache-2.0
// GEMMERY_API marks what the shared library exports; everything without it stays hidden.

#pragma once

#if defined(__cplusplus) && __cplusplus < 202002L
#error "gemmery: expected C++20 or later, got an older standard; compile with -std=c++20"
#include <stopped_by_the_error_above>  // a missing file ends the compilation here
#endif

#if defined(GEMMERY_STATIC) || !defined(__GNUC__)
#define GEMMERY_API
#else
#define GEMMERY_API __attribute__((visibility("default")))
#endif
