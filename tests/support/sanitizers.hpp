// SPDX-License-Identifier: Apache-2.0
// Whether this program is built with a sanitizer: its code is many times slower, and what is freed
// is kept for a while. Figures of speed and memory then say nothing of the library.
#pragma once

namespace gemmery::tests {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool is_sanitized = true;
#elif defined(__has_feature)
inline constexpr bool is_sanitized =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool is_sanitized = false;
#endif

}  // namespace gemmery::tests
