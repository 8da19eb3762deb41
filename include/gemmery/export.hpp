// SPDX-License-Identifier: Apache-2.0
// GEMMERY_API marks what the shared library exports; everything without it stays hidden.

#pragma once

#if defined(GEMMERY_STATIC) || !defined(__GNUC__)
#define GEMMERY_API
#else
#define GEMMERY_API __attribute__((visibility("default")))
#endif
