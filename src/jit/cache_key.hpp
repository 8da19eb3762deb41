// SPDX-License-Identifier: Apache-2.0
// The key of compiled code: everything that determines its bytes, as readable text.
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

// The version of the format. Each version uses folders of its own.
inline constexpr int cache_format_version = 1;

// The key of a request to the chosen compiler. The compiler is not opened if its file is known
// without that (see expected_nvrtc_path). The key does not depend on paths, user, time or other
// environment variables. Throws Error (unavailable) without a compiler.
CacheKey key_of(const CompileRequest& request);

// True if the key covers everything that determines the bytes. It does not if the user's own
// headers are read from files, or an option may name files.
bool is_covered_by_key(const CompileRequest& request);

// The value of a line of the conditions: "sm_90a" for "target"; empty if there is no such line.
std::string_view condition(std::string_view conditions, std::string_view name);

}  // namespace gemmery::jit
