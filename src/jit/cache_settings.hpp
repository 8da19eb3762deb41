// SPDX-License-Identifier: Apache-2.0
// Where the cache on disk is and what it may do, by the environment.
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
  std::string why_none;                      // then
  std::vector<std::string> shared;           // searched after it, never written
  std::int64_t most_bytes = 0;
  bool is_read_only = false;  // the own one is only searched, too
  // Longest wait for another process that makes the same code.
  std::chrono::milliseconds patience = std::chrono::seconds(60);
  std::chrono::milliseconds until_told = std::chrono::seconds(5);  // before it is logged
};

inline constexpr std::int64_t usual_cache_bytes = std::int64_t{2} << 30;

// GEMMERY_CACHE_DIR, else gemmery under XDG_CACHE_HOME where that is absolute, else .cache/gemmery
// under HOME, which has to be there; GEMMERY_CACHE_SHARED, GEMMERY_CACHE_MAX_BYTES (0 switches the
// cache off), GEMMERY_CACHE_READONLY. Throws Error (invalid_argument) naming a variable that cannot
// be read.
CacheSettings read_cache_settings();

}  // namespace gemmery::jit
