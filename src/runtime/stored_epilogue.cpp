// SPDX-License-Identifier: Apache-2.0
// Epilogues of files.
#include "runtime/stored_epilogue.hpp"

#include <gemmery/error.hpp>

#include <fmt/format.h>

namespace gemmery::runtime {

std::vector<StoredOperand> stored_operands(EpilogueId epilogue) {
  if (epilogue == default_epilogue) return {};
  throw Error({.kind = ErrorKind::unsupported,
               .operand = "artifact file",
               .expected = "kernels of the epilogue " + std::string(text(default_epilogue)),
               .got = std::string(text(epilogue))});
}

EpilogueId intern_stored(const StoredKernel& stored, const std::string& path) {
  const bool is_default =
      stored.epilogue == text(default_epilogue) && stored.epilogue_operands.empty();
  if (is_default) return default_epilogue;
  throw Error({.kind = ErrorKind::unsupported,
               .operand = fmt::format("{}, {}", path, stored.kernel_name),
               .expected = "the epilogue " + std::string(text(default_epilogue)),
               .got = stored.epilogue});
}

}  // namespace gemmery::runtime
