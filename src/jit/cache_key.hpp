// SPDX-License-Identifier: Apache-2.0
// The name under which compiled code is kept: everything that shapes its bytes, as readable text.
#pragma once

#include <string>
#include <string_view>

#include "jit/compiler.hpp"

namespace gemmery::jit {

struct CacheKey {
  std::string conditions;  // library, compiler, target, form, options, headers, entry: a line each
  std::string source;

  std::string text() const { return conditions + source; }

  friend bool operator==(const CacheKey&, const CacheKey&) = default;
};

// The version of what is kept, and of how: other versions keep to folders of their own.
inline constexpr int cache_format_version = 1;

// Of a request to the chosen compiler, which is not opened for it where its file can be told
// without (see expected_nvrtc_path). Nothing in it depends on paths, user, time or other variables
// of the environment. Throws Error (unavailable) without a compiler.
CacheKey key_of(const CompileRequest& request);

// Whether the key covers all that shapes the bytes. Not so where headers of the user's own are read
// from files, or an option may name files.
bool is_covered_by_key(const CompileRequest& request);

// The value of a line of the conditions: "sm_90a" of "target"; empty where there is none.
std::string_view condition(std::string_view conditions, std::string_view name);

}  // namespace gemmery::jit
