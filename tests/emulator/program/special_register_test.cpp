// SPDX-License-Identifier: Apache-2.0
// Names of special registers.
#include <gtest/gtest.h>

#include "emulator/program/special_register.hpp"

namespace gemmery::emulator {
namespace {

TEST(SpecialRegister, vectors_have_a_dimension) {
  const auto found = find_special_register("%cluster_nctaid.z");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->which, SpecialRegister::cluster_nctaid);
  EXPECT_EQ(found->dimension, 2);
  EXPECT_EQ(find_special_register("%tid.w")->dimension, 3);
}

TEST(SpecialRegister, numbered_ones_take_any_number) {
  EXPECT_EQ(find_special_register("%envreg31")->which, SpecialRegister::envreg);
  EXPECT_EQ(find_special_register("%reserved_smem_offset_1")->which,
            SpecialRegister::reserved_smem_offset);
  EXPECT_EQ(find_special_register("%reserved_smem_offset_cap")->which,
            SpecialRegister::reserved_smem_offset_cap);
}

TEST(SpecialRegister, other_names_are_none) {
  for (const char* name : {"", "%", "tid.x", "%tid", "%tid.", "%tid.q", "%tid.xx", "%laneid.x",
                           "%envreg", "%envregx", "%Laneid", "%tid.x "})
    EXPECT_FALSE(find_special_register(name)) << name;
}

}  // namespace
}  // namespace gemmery::emulator
