// SPDX-License-Identifier: Apache-2.0
// The folder of the disk cache and its limits, from the environment.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "platform/trusted_folder.hpp"

namespace gemmery::jit {

struct CacheSettings {
  std::optional<platform::FolderPlace> own;  // none: nothing is kept
  std::string why_none;                      // the reason, if there is none
  std::vector<std::string> shared;           // searched after `own`, never written
  std::int64_t most_bytes = 0;
  bool is_read_only = false;  // `own` is only searched, too
  // The longest wait for another process that compiles the same code.
  std::chrono::milliseconds patience = std::chrono::seconds(60);
  std::chrono::milliseconds until_told = std::chrono::seconds(5);  // before it is logged
};

inline constexpr std::int64_t usual_cache_bytes = std::int64_t{2} << 30;

// GEMMERY_CACHE_DIR, else gemmery in XDG_CACHE_HOME if that is absolute, else .cache/gemmery in
// HOME, which must exist; GEMMERY_CACHE_SHARED, GEMMERY_CACHE_MAX_BYTES (0 turns the cache off),
// GEMMERY_CACHE_READONLY. Throws Error (invalid_argument), which names the variable, for a value
// that cannot be parsed.
CacheSettings read_cache_settings();

}  // namespace gemmery::jit
