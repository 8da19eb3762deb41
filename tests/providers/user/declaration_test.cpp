// SPDX-License-Identifier: Apache-2.0
// Errors of register_kernel, which name the kernel and the field, and the syntax of grids and
// bytes.
#include <gemmery/discovery.hpp>
#include <gemmery/error.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "providers/user/factors.hpp"
#include "tests/providers/user/tiled_kernel.hpp"

namespace gemmery {
namespace {

using tests::tiled_kernel;

struct BadDeclaration {
  const char* what;
  std::function<void(UserKernel&)> change;
  const char* words;  // part of the error, besides the kernel's name
};

const BadDeclaration bad_declarations[] = {
    {"no name", [](UserKernel& k) { k.name.clear(); }, "a word of lower-case letters"},
    {"a name with a dash", [](UserKernel& k) { k.name = "a-b"; }, "\"a-b\""},
    {"version 0", [](UserKernel& k) { k.version = 0; }, "version"},
    {"an alignment of 12", [](UserKernel& k) { k.operands.a.alignment = 12; }, "alignments"},
    {"a multiple of 0", [](UserKernel& k) { k.multiples.k = 0; }, "multiples"},
    {"no code", [](UserKernel& k) { k.code = UserSource{}; },
     "source with the __global__ function tiled"},
    {"no images", [](UserKernel& k) { k.code = UserImages{}; }, "an image at least"},
    {"an empty image",
     [](UserKernel& k) {
       k.code = UserImages{{.target = {90, 0}}};
     },
     "a cubin or PTX"},
    {"no function", [](UserKernel& k) { k.code = UserCallable{}; }, "a function to call"},
    {"the CPU for source", [](UserKernel& k) { k.targets = {Target::cpu()}; }, "targets"},
    {"no entry", [](UserKernel& k) { k.launch.entry.clear(); }, "launch.entry"},
    {"an unknown word", [](UserKernel& k) { k.launch.parameters[4] = "rows"; }, "\"rows\""},
    {"an unknown stride", [](UserKernel& k) { k.launch.parameters[7] = "A.pitch"; }, "\"pitch\""},
    {"an unknown type", [](UserKernel& k) { k.launch.parameters[4] = "m:i16"; }, "\"i16\""},
    {"an extent as a float", [](UserKernel& k) { k.launch.parameters[4] = "m:f32"; },
     "an integer type"},
    {"alpha as an integer", [](UserKernel& k) { k.launch.parameters[15] = "alpha:i32"; },
     "f32 or f64"},
    {"a constant that does not fit", [](UserKernel& k) { k.launch.parameters[15] = "=-1:u32"; },
     "a number that its type holds"},
    {"an address with a type", [](UserKernel& k) { k.launch.parameters[0] = "A:i64"; }, "no type"},
    {"no address of B", [](UserKernel& k) { k.launch.parameters[1] = "A"; },
     "the address or a map of B"},
    {"no k", [](UserKernel& k) { k.launch.parameters[6] = "=64"; }, "k, or a function"},
    {"any layout without strides",
     [](UserKernel& k) {
       k.operands.a.layout = LayoutRule::any;
       k.launch.parameters[7] = "A.row_stride";
     },
     "A.row_stride and A.column_stride"},
    {"a leading stride of any layout", [](UserKernel& k) { k.operands.a.layout = LayoutRule::any; },
     "declared row or column major"},
    {"a map of what is not aligned", [](UserKernel& k) { k.launch.parameters[0] = "A.map=16x16"; },
     "aligned to 16 bytes"},
    {"a map that its swizzle does not hold",
     [](UserKernel& k) {
       k.operands.a.alignment = 16;
       k.launch.parameters[0] = "A.map=16x64/128";
     },
     "at most the swizzle"},
    {"a box of one extent",
     [](UserKernel& k) {
       k.operands.a.alignment = 16;
       k.launch.parameters[0] = "A.map=16";
     },
     "two or three extents"},
    {"a workspace of no size", [](UserKernel& k) { k.launch.parameters.push_back("workspace"); },
     "a size for the parameter"},
    {"a workspace that is not passed", [](UserKernel& k) { k.workspace_bytes = "64"; },
     "the parameter \"workspace\""},
    {"1025 threads",
     [](UserKernel& k) {
       k.launch.block = {41, 25, 1};
     },
     "1 to 1024 threads"},
    {"no threads",
     [](UserKernel& k) {
       k.launch.block = {0, 1, 1};
     },
     "1 to 1024 threads"},
    {"a cluster of 16",
     [](UserKernel& k) {
       k.launch.cluster = {16, 1, 1};
     },
     "1 to 8 blocks"},
    {"a grid of words", [](UserKernel& k) { k.launch.grid[0] = "n/tile"; }, "\"n/tile\""},
    {"a grid over nothing", [](UserKernel& k) { k.launch.grid[0] = "n/0"; }, "\"n/0\""},
    {"a program with C beside it",
     [](UserKernel& k) {
       k.epilogue = EpilogueRules{epilogue::Program("D = relu(accum)"), {}};
     },
     "no C among the operands"},
};

TEST(DeclarationsOfUsers, are_refused_by_kernel_and_field) {
  for (const BadDeclaration& bad : bad_declarations) {
    UserKernel kernel = tiled_kernel("declared");
    bad.change(kernel);
    const std::string name = kernel.name;
    try {
      withdraw_kernel(register_kernel(std::move(kernel)));
      ADD_FAILURE() << bad.what << ": was accepted";
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find(bad.words), std::string::npos) << bad.what << ": " << text;
      EXPECT_NE(text.find(name), std::string::npos) << bad.what << ": " << text;
    }
  }
}

TEST(DeclarationsOfUsers, are_refused_where_the_name_is_taken) {
  const Kernel first = register_kernel(tiled_kernel("taken"));
  UserKernel second = tiled_kernel("taken");
  second.version = 2;
  try {
    (void)register_kernel(std::move(second));
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("\"taken\""), std::string::npos) << error.what();
  }
  withdraw_kernel(first);
}

TEST(DeclarationsOfUsers, raise_alignments_to_an_element) {
  const Kernel kernel = register_kernel(tiled_kernel("aligned"));
  EXPECT_EQ(kernel.operands().a.alignment, 4);
  withdraw_kernel(kernel);
}

TEST(Factors, are_multiplied_and_rounded_up) {
  GemmProblem problem;
  problem.m = 100;
  problem.n = 64;
  problem.k = 0;
  problem.l = 3;
  const auto value = [&](const char* text) {
    return user::Factors(text, "grid").evaluate({problem, 132});
  };
  EXPECT_EQ(value("1"), 1);
  EXPECT_EQ(value("m/64"), 2);
  EXPECT_EQ(value("m/64 * n/64 * l"), 6);
  EXPECT_EQ(value("multiprocessors*2"), 264);
  EXPECT_EQ(value("k/32"), 0);
  EXPECT_EQ(value("4*m*n"), 25600);
  EXPECT_EQ(value("9223372036854775807*2"), std::nullopt);
  for (const char* const bad : {"", "*", "m*", "m//2", "m/n", "-1", "m+1", "2.5", "M"})
    EXPECT_THROW(user::Factors(bad, "grid"), Error) << bad;
}

}  // namespace
}  // namespace gemmery
