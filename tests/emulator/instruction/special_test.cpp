// SPDX-License-Identifier: Apache-2.0
// Special registers in kernels.
#include <gtest/gtest.h>

#include <gemmery/error.hpp>

#include "tests/emulator/instruction/ptx_runner.hpp"

namespace gemmery::emulator {
namespace {

struct Shape {
  std::array<std::uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
};

// Thread t of CTA c (both linear) stores its value at out[c * threads + t].
std::vector<std::uint64_t> values_of(const std::string& special, const Shape& shape,
                                     const std::string& type = "u32") {
  std::string text =
      ".version 9.0\n.target sm_90a\n.address_size 64\n.extern .shared .align 16 .b8 "
      "raw[];\n.visible .entry run(.param .u64 out) {\n.reg .b32 %r<40>; .reg .b64 "
      "%rd<9>; .reg .b" +
      type.substr(1) + " value;\n.shared .align 1 .b8 own[100];\n";
  text += "mov.u32 %r1, own; mov.u32 %r1, raw;\n";  // so that they are allocated
  text +=
      "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z;\n"
      "mov.u32 %r4, %nctaid.x; mov.u32 %r5, %nctaid.y;\n"
      "mad.lo.u32 %r6, %r3, %r5, %r2; mad.lo.u32 %r6, %r6, %r4, %r1;\n"
      "mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z;\n"
      "mov.u32 %r4, %ntid.x; mov.u32 %r5, %ntid.y; mov.u32 %r7, %ntid.z;\n"
      "mad.lo.u32 %r8, %r3, %r5, %r2; mad.lo.u32 %r8, %r8, %r4, %r1;\n"
      "mul.lo.u32 %r9, %r4, %r5; mul.lo.u32 %r9, %r9, %r7; mad.lo.u32 %r8, %r6, %r9, %r8;\n"
      "ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r8, 8; add.s64 %rd1, %rd1, %rd2;\n"
      "mov." +
      type + " value, " + special + ";\n";
  text += type == "u64" ? "st.global.u64 [%rd1], value;\n"
                        : "cvt.u64." + type + " %rd3, value; st.global.u64 [%rd1], %rd3;\n";
  text += "}\n";
  PtxRunner runner(text);
  runner.request.grid = shape.grid;
  runner.request.block = shape.block;
  runner.request.cluster = shape.cluster;
  runner.request.dynamic_shared_bytes = 300;
  const auto count = [](const std::array<std::uint32_t, 3>& of) { return of[0] * of[1] * of[2]; };
  const std::size_t total = std::size_t{count(shape.grid)} * count(shape.block);
  const std::uint64_t out = runner.reserve(total * 8);
  const auto fault = runner.launch({out});
  EXPECT_FALSE(fault) << fault->report();
  return runner.get<std::uint64_t>(out, total);
}

constexpr Shape shape{.grid = {4, 6, 2}, .block = {5, 3, 4}, .cluster = {2, 3, 1}};
constexpr std::uint32_t threads = 60;

struct Row {
  const char* name;
  std::uint64_t (*expected)(std::uint32_t cta, std::uint32_t thread);
};

TEST(Special, positions_and_extents) {
  for (const Row& row : {
           Row{"%tid.x", [](auto, auto t) -> std::uint64_t { return t % 5; }},
           Row{"%tid.y", [](auto, auto t) -> std::uint64_t { return t / 5 % 3; }},
           Row{"%tid.z", [](auto, auto t) -> std::uint64_t { return t / 15; }},
           Row{"%tid.w", [](auto, auto) -> std::uint64_t { return 0; }},
           Row{"%ntid.z", [](auto, auto) -> std::uint64_t { return 4; }},
           Row{"%ctaid.x", [](auto c, auto) -> std::uint64_t { return c % 4; }},
           Row{"%ctaid.y", [](auto c, auto) -> std::uint64_t { return c / 4 % 6; }},
           Row{"%ctaid.z", [](auto c, auto) -> std::uint64_t { return c / 24; }},
           Row{"%nctaid.y", [](auto, auto) -> std::uint64_t { return 6; }},
           Row{"%laneid", [](auto, auto t) -> std::uint64_t { return t % 32; }},
           Row{"%warpid", [](auto, auto t) -> std::uint64_t { return t / 32; }},
           Row{"%clusterid.x", [](auto c, auto) -> std::uint64_t { return c % 4 / 2; }},
           Row{"%clusterid.y", [](auto c, auto) -> std::uint64_t { return c / 4 % 6 / 3; }},
           Row{"%nclusterid.x", [](auto, auto) -> std::uint64_t { return 2; }},
           Row{"%nclusterid.z", [](auto, auto) -> std::uint64_t { return 2; }},
           Row{"%cluster_ctaid.y", [](auto c, auto) -> std::uint64_t { return c / 4 % 3; }},
           Row{"%cluster_nctaid.y", [](auto, auto) -> std::uint64_t { return 3; }},
           Row{"%cluster_ctarank",
               [](auto c, auto) -> std::uint64_t { return c / 4 % 3 * 2 + c % 2; }},
           Row{"%cluster_nctarank", [](auto, auto) -> std::uint64_t { return 6; }},
           Row{"%lanemask_eq", [](auto, auto t) -> std::uint64_t { return 1u << (t % 32); }},
           Row{"%lanemask_lt", [](auto, auto t) -> std::uint64_t { return (1u << (t % 32)) - 1; }},
           Row{"%lanemask_le",
               [](auto, auto t) -> std::uint64_t { return (std::uint64_t{2} << (t % 32)) - 1; }},
           Row{"%lanemask_ge",
               [](auto, auto t) -> std::uint64_t { return ~0u & ~((1u << (t % 32)) - 1); }},
           Row{"%lanemask_gt",
               [](auto,
                  auto t) -> std::uint64_t { return ~0u & ~((std::uint64_t{2} << (t % 32)) - 1); }},
           // 100 static bytes, aligned to 16 for 300 dynamic ones
           Row{"%dynamic_smem_size", [](auto, auto) -> std::uint64_t { return 300; }},
           Row{"%total_smem_size", [](auto, auto) -> std::uint64_t { return 512; }},
           Row{"%aggr_smem_size", [](auto, auto) -> std::uint64_t { return 1536; }},
           Row{"%nsmid", [](auto, auto) -> std::uint64_t { return 132; }},
           Row{"%envreg3", [](auto, auto) -> std::uint64_t { return 0; }},
       }) {
    const std::vector<std::uint64_t> values = values_of(row.name, shape);
    for (std::uint32_t at = 0; at < values.size(); ++at)
      ASSERT_EQ(values[at], row.expected(at / threads, at % threads)) << row.name << " at " << at;
  }
}

TEST(Special, moves_of_16_and_64_bits) {
  EXPECT_EQ(values_of("%tid.x", {.block = {33, 1, 1}}, "u16").at(32), 32u);
  EXPECT_EQ(values_of("%current_graph_exec", {}, "u64").at(0), 0u);
}

TEST(Special, clocks_run) {
  const std::uint64_t clock = values_of("%clock64", {}, "u64").at(0);
  EXPECT_GT(clock, 0u);
  EXPECT_LT(clock, 1000u);
}

TEST(Special, only_mov_reads_them) {
  EXPECT_THROW(PtxRunner(".version 9.0\n.target sm_90a\n.entry run() { .reg .b32 %r<2>; add.u32 "
                         "%r1, %tid.x, 1; }"),
               Error);
}

}  // namespace
}  // namespace gemmery::emulator
