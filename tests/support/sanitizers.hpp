// SPDX-License-Identifier: Apache-2.0
// Whether this program is built with a sanitizer. Its code is then many times slower, and freed
// memory is kept for a while, so speed and memory cannot be tested.
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
