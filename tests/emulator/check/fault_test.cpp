// SPDX-License-Identifier: Apache-2.0
// The text of a fault's report.
#include "emulator/check/fault.hpp"

#include <gtest/gtest.h>

#include <set>

namespace gemmery::emulator {
namespace {

TEST(Fault, reports_what_where_and_the_other_side) {
  Fault fault(FaultKind::race, "a read is not ordered after a write");
  FaultPlace& place = fault.place;
  place.kernel = "gemm";
  place.cta = {1, 0, 2};
  place.warp = 3;
  place.lane = 5;
  place.ptx_line = 412;
  place.ptx_text = "\tld.shared.b32 %r1, [%r2]; ";
  place.source_file = "kernel.cu";
  place.source_line = 37;
  fault.other_side = "with warp 1\nwith warp 2";
  EXPECT_EQ(fault.report(),
            "race: a read is not ordered after a write\n"
            "  at kernel gemm, CTA (1,0,2), warp 3, lane 5, PTX line 412: ld.shared.b32 %r1, "
            "[%r2]; kernel.cu:37\n"
            "  with warp 1\n"
            "  with warp 2");
  EXPECT_STREQ(fault.what(), fault.message.c_str());
}

TEST(Fault, leaves_out_what_is_not_known) {
  EXPECT_EQ(Fault(FaultKind::timeout, "no end").report(), "time out: no end");
}

TEST(Fault, every_kind_has_a_name_of_its_own) {
  std::set<std::string> names;
  const int count = static_cast<int>(FaultKind::trap) + 1;
  for (int kind = 0; kind < count; ++kind) names.insert(name(static_cast<FaultKind>(kind)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(count));
}

}  // namespace
}  // namespace gemmery::emulator
