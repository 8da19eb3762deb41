// SPDX-License-Identifier: Apache-2.0
#include "drop_in/fatbin/decompress.hpp"

#include <limits>
#include <vector>

#include <gemmery/error.hpp>

#include "platform/library.hpp"

namespace gemmery::drop_in {
namespace {

// As the manuals of the two libraries declare them.
using Lz4Decompress = int(const char* from, char* to, int from_bytes, int to_bytes);
using ZstdDecompress = std::size_t(void* to, std::size_t to_bytes, const void* from,
                                   std::size_t from_bytes);

template <class Function>
Function* open_function(const char* soname, const char* name, const char* package) {
  const std::vector<std::string> candidates{soname};
  const platform::LibrarySearch search = platform::LibrarySearch::open_first(candidates);
  Function* const function =
      search.library ? search.library->find_function<Function>(name) : nullptr;
  if (function != nullptr) return function;
  throw Error({.kind = ErrorKind::unavailable,
               .operand = "compressed device code",
               .expected = std::string(soname) + ", of Debian's package " + package,
               .got = search.report(),
               .hint = "or compile the program with nvcc's --compress-mode=none"});
}

bool read_lz4(std::span<const std::byte> data, std::string& text) {
  static auto* const function =
      open_function<Lz4Decompress>("liblz4.so.1", "LZ4_decompress_safe", "liblz4-1");
  constexpr auto most = static_cast<std::size_t>(std::numeric_limits<int>::max());
  if (data.size() > most || text.size() > most) return false;
  const int count = function(reinterpret_cast<const char*>(data.data()), text.data(),
                             static_cast<int>(data.size()), static_cast<int>(text.size()));
  return count >= 0 && static_cast<std::size_t>(count) == text.size();
}

// Errors are numbers above every size.
bool read_zstd(std::span<const std::byte> data, std::string& text) {
  static auto* const function =
      open_function<ZstdDecompress>("libzstd.so.1", "ZSTD_decompress", "libzstd1");
  return function(text.data(), text.size(), data.data(), data.size()) == text.size();
}

bool read(Compression compression, std::span<const std::byte> data, std::string& text) {
  if (compression == Compression::lz4) return read_lz4(data, text);
  if (compression == Compression::zstd) return read_zstd(data, text);
  if (data.size() < text.size()) return false;
  text.assign(reinterpret_cast<const char*>(data.data()), text.size());
  return true;
}

}  // namespace

std::string decompress(Compression compression, std::span<const std::byte> data,
                       std::size_t bytes) {
  constexpr std::size_t most_bytes = std::size_t{1} << 32;
  std::string text(bytes > most_bytes ? 0 : bytes, '\0');
  if (text.size() == bytes && read(compression, data, text)) return text;
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "compressed device code",
               .expected = std::to_string(bytes) + " bytes of content",
               .got = "damaged data"});
}

}  // namespace gemmery::drop_in
