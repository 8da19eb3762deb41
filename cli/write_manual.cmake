# SPDX-License-Identifier: Apache-2.0
# Script (cmake -P): writes OUTPUT, a C++ file that holds the text of MANUAL for cli/manual.hpp.

file(READ "${MANUAL}" TEXT)
if(TEXT MATCHES "\\)gemmery_manual\"")
  message(FATAL_ERROR "${MANUAL}: holds the delimiter )gemmery_manual\" of the embedding")
endif()
file(WRITE "${OUTPUT}" "// Written by cli/write_manual.cmake from docs/cli.md. Not to be edited.

#include \"cli/manual.hpp\"

namespace gemmery::cli {

std::string_view manual() { return R\"gemmery_manual(${TEXT})gemmery_manual\"; }

}  // namespace gemmery::cli
")
