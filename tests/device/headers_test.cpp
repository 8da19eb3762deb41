// SPDX-License-Identifier: Apache-2.0
// Every device header compiles alone, from memory, for the oldest and the newest kind of target.
#include <gtest/gtest.h>

#include <string>

#include "jit/compiler.hpp"
#include "jit/embedded.hpp"
#include "jit/nvrtc.hpp"

namespace gemmery::jit {
namespace {

TEST(DeviceHeaders, each_compiles_alone) {
  const CompilerStatus status = compiler_status();
  if (!status.found) GTEST_SKIP() << status.searched;
  int count = 0;
  for (const EmbeddedHeader& header : embedded_headers()) {
    const std::string name = header.name;
    if (!name.starts_with("device/")) continue;
    ++count;
    for (const Target target : {Target{80, 0}, Target{120, 0}}) {
      if (!find_nvrtc().knows(target)) continue;
      EXPECT_NO_THROW(compile(
          {.source = "#include <" + name + ">\nextern \"C\" __global__ void entry(int) {}\n",
           .entry = "entry",
           .target = target,
           .extra_options = {}}))
          << name << " for " << to_string(target);
    }
  }
  EXPECT_GE(count, 10);
}

}  // namespace
}  // namespace gemmery::jit
