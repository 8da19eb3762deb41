// SPDX-License-Identifier: Apache-2.0
// libFuzzer's entry for fuzz_parse_epilogue.
#include "tests/fuzz/targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  gemmery::fuzz::fuzz_parse_epilogue({data, size});
  return 0;
}
