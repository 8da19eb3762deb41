// SPDX-License-Identifier: Apache-2.0
// The text of all device headers, put into the library at build time so that a compiler can be
// given it from memory.

#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace gemmery::jit {

/// One header. `name` is what an #include names ("device/gemm/simt.cuh", "gemmery/dtype.def");
/// `text` ends with a zero byte that `size` does not count.
struct EmbeddedHeader {
  const char* name;
  const char* text;
  std::size_t size;
};

/// Every embedded header. Valid as long as the library is loaded.
std::span<const EmbeddedHeader> embedded_headers();

/// 64 hexadecimal digits (SHA-256) over the names and contents of all embedded headers: changes
/// whenever one of them does.
std::string_view embedded_digest();

}  // namespace gemmery::jit
