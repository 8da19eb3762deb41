// SPDX-License-Identifier: Apache-2.0
// Sample keys and code. Each code is derived from its number, so that a wrong one is detected.
#pragma once

#include <gemmery/cache.hpp>

#include <filesystem>
#include <string>
#include <vector>

#include "jit/disk_cache.hpp"

namespace gemmery::tests {

inline jit::CacheKey sample_key(int number) {
  return {.conditions = "gemmery test\ntarget sm_90a\nform cubin\nentry 6 kernel\n",
          .source = "// kernel " + std::to_string(number) + "\n"};
}

inline jit::CompiledCode sample_code(int number, std::size_t bytes = 3000) {
  jit::CompiledCode code;
  code.cubin.resize(bytes);
  std::uint32_t state = 2654435761U * static_cast<std::uint32_t>(number + 1);
  for (std::byte& one : code.cubin) {
    state = state * 1664525U + 1013904223U;
    one = static_cast<std::byte>(state >> 24);
  }
  code.log = "log of " + std::to_string(number);
  code.usage = {.registers = number + 1,
                .static_shared_bytes = 2,
                .spill_store_bytes = 0,
                .spill_load_bytes = 0,
                .stack_bytes = 8};
  return code;
}

inline bool is_sample(const jit::CompiledCode& code, int number, std::size_t bytes = 3000) {
  const jit::CompiledCode expected = sample_code(number, bytes);
  return code.cubin == expected.cubin && code.log == expected.log && code.usage == expected.usage;
}

inline jit::CacheSettings settings_at(const std::string& folder) {
  jit::CacheSettings settings;
  settings.own = {.path = folder};
  settings.most_bytes = 1 << 30;
  settings.patience = std::chrono::seconds(20);
  return settings;
}

// The path of a key's entry in the cache's folder.
inline std::filesystem::path entry_path(const std::string& folder, const jit::CacheKey& key) {
  const std::string name = jit::entry_name(key);
  return std::filesystem::path(folder) / "v1" / name.substr(0, 2) / name.substr(2, 2) /
         name.substr(4);
}

// Obtains the code of a number: finds it, or makes and keeps it. Returns whether it is the right
// code.
inline bool obtain(jit::CodeCache& cache, int number, int* compiled = nullptr) {
  jit::CodeCache::Found found = cache.find(sample_key(number));
  if (found.code) return is_sample(*found.code, number);
  if (compiled != nullptr) ++*compiled;
  cache.keep(sample_key(number), sample_code(number));
  return true;
}

}  // namespace gemmery::tests
