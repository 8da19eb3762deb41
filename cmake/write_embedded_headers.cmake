# SPDX-License-Identifier: Apache-2.0
# Script (cmake -P): writes OUTPUT, a C++ file that holds every header named in LIST under its path relative to SOURCE_ROOT or INCLUDE_ROOT.

file(STRINGS "${LIST}" HEADERS)
set(ENTRIES "")
set(DIGESTED "")
set(COUNT 0)
foreach(HEADER IN LISTS HEADERS)
  foreach(ROOT IN ITEMS "${SOURCE_ROOT}" "${INCLUDE_ROOT}")
    string(FIND "${HEADER}" "${ROOT}/" POSITION)
    if(POSITION EQUAL 0)
      file(RELATIVE_PATH NAME "${ROOT}" "${HEADER}")
    endif()
  endforeach()
  file(READ "${HEADER}" TEXT)
  if(TEXT MATCHES "\\)gemmery_text\"")
    message(FATAL_ERROR "${HEADER}: holds the delimiter )gemmery_text\" of the embedding")
  endif()
  file(SHA256 "${HEADER}" HASH)
  string(APPEND DIGESTED "${NAME} ${HASH}\n")
  string(APPEND ENTRIES "    entry(\"${NAME}\", R\"gemmery_text(${TEXT})gemmery_text\"),\n")
  math(EXPR COUNT "${COUNT} + 1")
endforeach()
string(SHA256 DIGEST "${DIGESTED}")

file(WRITE "${OUTPUT}.new" "// Written by cmake/write_embedded_headers.cmake: the text of the device headers. Not to be edited.

#include \"jit/embedded.hpp\"

#include <array>

namespace gemmery::jit {
namespace {

template <std::size_t length>
constexpr EmbeddedHeader entry(const char* name, const char (&text)[length]) {
    return {name, text, length - 1};
}

constexpr std::array<EmbeddedHeader, ${COUNT}> headers{{
${ENTRIES}}};

}  // namespace

std::span<const EmbeddedHeader> embedded_headers() { return headers; }

std::string_view embedded_digest() { return \"${DIGEST}\"; }

}  // namespace gemmery::jit
")
file(RENAME "${OUTPUT}.new" "${OUTPUT}")
