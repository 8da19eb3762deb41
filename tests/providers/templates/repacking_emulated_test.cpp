// SPDX-License-Identifier: Apache-2.0
// The copy kernel alone on an emulated H200, bit for bit: every element width, all kinds of
// alignments and strides, zeros after the ends of lines, and no writes after these.
#include <gtest/gtest.h>
#include <gemmery/gemmery.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "driver/code.hpp"
#include "driver/driver.hpp"
#include "driver/launch.hpp"
#include "jit/compiler.hpp"
#include "providers/templates/repacking.hpp"
#include "tests/providers/templates/on_emulated_h200.hpp"

namespace gemmery {
namespace {

using templates::ProductOperand;

constexpr unsigned char poison = 0xa5;

// The offset of an element of an operand, in elements from the one with index 0.
std::int64_t place(const MatrixType& matrix, std::int64_t batch, std::int64_t row,
                   std::int64_t column) {
  return batch * matrix.batch_stride + row * matrix.row_stride + column * matrix.column_stride;
}

class RepackKernel : public tests::OnEmulatedH200 {
 protected:
  // Random bytes in which the element with index 0 is `shift` elements after an address of the
  // widest alignment.
  struct Source {
    std::vector<unsigned char> bytes;
    Buffer buffer;
    std::int64_t origin = 0;  // in elements
  };

  Source make_source(const ProductOperand& operand, std::int64_t shift) {
    const MatrixType& matrix = operand.source;
    std::int64_t below = 0;
    std::int64_t above = 0;
    const auto reach = [&](std::int64_t extent, std::int64_t stride) {
      (stride < 0 ? below : above) += (extent - 1) * stride;
    };
    reach(operand.batches, matrix.batch_stride);
    reach(operand.rows, matrix.row_stride);
    reach(operand.columns, matrix.column_stride);
    const auto width = static_cast<std::int64_t>(byte_width(matrix.dtype));
    Source source;
    source.origin = (-below + 15) / 16 * 16 + shift;
    source.bytes.resize(static_cast<std::size_t>((source.origin + above + 1) * width));
    for (unsigned char& byte : source.bytes) byte = static_cast<unsigned char>(random_());
    source.buffer = Buffer(source.bytes.size(), stream());
    copy(source.buffer.data(), h200_, source.bytes.data(), Device::cpu(), source.bytes.size(),
         stream());
    return source;
  }

  Stream stream() const { return owned_; }

  // Runs the kernel on a poisoned workspace and returns the workspace.
  std::vector<unsigned char> run(const ProductOperand& operand, const Source& source,
                                 bool has_any_strides) {
    const auto width = static_cast<std::int64_t>(byte_width(operand.source.dtype));
    const ProductOperand none{.name = "B",
                              .rule = {},
                              .source = {},
                              .matrix = {},
                              .rows = 0,
                              .columns = 0,
                              .batches = 0,
                              .is_copy = false};
    runtime::LaunchPlan plan;
    const auto* const first =
        static_cast<const char*>(source.buffer.data()) + source.origin * width;
    templates::prepare_copies({templates::OperandData{operand, first}, {none, nullptr}}, {0, 0},
                              plan);
    const std::size_t bytes = operand.copied_bytes() + 256;
    const Buffer workspace(bytes, stream());
    fill(workspace.data(), poison, bytes, stream());
    void* const address = workspace.data();
    std::memcpy(plan.preparation.parameter_bytes + plan.preparation.workspace_slot, &address,
                sizeof address);
    launch(static_cast<int>(width), has_any_strides, plan.preparation);
    std::vector<unsigned char> left(bytes);
    copy(left.data(), Device::cpu(), workspace.data(), h200_, bytes, stream());
    synchronize(stream());
    return left;
  }

  void launch(int element_bytes, bool has_any_strides, runtime::Preparation& preparation) {
    const jit::CompiledCode code = jit::compile(
        {.source = fmt::format("#include <device/copy/repack.cuh>\n"
                               "using namespace gemmery::abi;\n"
                               "constexpr RepackDesign design{{.element_bytes = {}, "
                               ".has_any_strides = {}}};\n"
                               "extern \"C\" __global__ void __launch_bounds__(repack_threads)\n"
                               "repack(const __grid_constant__ RepackParams params) {{\n"
                               "    gemmery::device::repack<design>(params);\n"
                               "}}\n",
                               element_bytes, has_any_strides),
         .entry = "repack",
         .target = {90, 'a'},
         .form = CodeForm::ptx,
         .extra_options = {}});
    const driver::GpuDevice& gpu = driver::open_device(h200_);
    const auto loaded = driver::LoadedCode::load(
        gpu.driver(), std::as_bytes(std::span(code.ptx.c_str(), code.ptx.size() + 1)), "repack");
    const driver::cuda::Function function = loaded->prepare(gpu, 0);
    const driver::ScopedContext current(gpu);
    ASSERT_EQ(driver::launch(gpu.api(), function, preparation.shape, stream(),
                             preparation.parameter_bytes),
              driver::cuda::Result::success);
    synchronize(stream());
  }

  // Checks every byte of a copy and after it.
  void check(const std::string& words, LayoutRule layout, std::int64_t shift) {
    if (!rows_.takes_next()) return;
    const GemmProblem problem = parse_problem("gemm " + words).problem;
    OperandRules rules;
    rules.a = rules.b = templates::repacked_rule(problem.a.dtype, layout);
    const ProductOperand operand = templates::product_a(rules, problem);
    const Source source = make_source(operand, shift);
    const std::vector<unsigned char> left = run(operand, source, layout == LayoutRule::any);
    const templates::TmaView view = operand.view();
    const auto width = static_cast<std::int64_t>(byte_width(problem.a.dtype));
    std::vector<unsigned char> expected(left.size(), poison);
    const bool is_row = operand.rule.layout == LayoutRule::row;
    for (std::int64_t batch = 0; batch < view.batches; ++batch) {
      for (std::int64_t line = 0; line < view.other; ++line) {
        unsigned char* const to =
            expected.data() + batch * view.batch_stride_bytes + line * view.stride_bytes;
        std::fill_n(to, (view.adjacent * width + 15) / 16 * 16, 0);
        for (std::int64_t element = 0; element < view.adjacent; ++element) {
          const std::int64_t at =
              source.origin +
              place(operand.source, batch, is_row ? line : element, is_row ? element : line);
          std::memcpy(to + element * width, source.bytes.data() + at * width,
                      static_cast<std::size_t>(width));
        }
      }
    }
    const auto [got, wanted] = std::ranges::mismatch(left, expected);
    EXPECT_EQ(got, left.end()) << words << ", byte " << got - left.begin() << " of " << view.batches
                               << "x" << view.other << "x" << view.stride_bytes;
  }

 private:
  const OwnedStream owned_{h200_};
};

// Lines of one unit to several tiles, ends within a unit, overlapping and reversed lines.
TEST_F(RepackKernel, copies_lines_at_any_alignment) {
  for (const char* type : {"int8", "bf16", "f32"}) {
    for (const char* words :
         {"1x8x1", "3x8x7", "5x8x16", "70x8x33/ld=41", "7x8x1203/ld=1203", "9x8x2100/ld=2101",
          "40x8x65x3/ld=67/batch=3001", "40x8x65x3/ld=67/batch=0", "20x8x50/strides=-51,1",
          "20x8x50/strides=0,1"}) {
      const std::string text = words;
      const std::size_t slash = std::min(text.find('/'), text.size());
      check(text.substr(0, slash) + " a=" + type + text.substr(slash), LayoutRule::row,
            static_cast<std::int64_t>(random_() % 16));
    }
  }
}

TEST_F(RepackKernel, copies_columns_at_any_alignment) {
  for (const char* type : {"int8", "bf16", "f32"}) {
    for (const char* words : {"1x8x5", "33x8x7/ld=35", "1203x8x5/ld=1209"}) {
      const std::string text = words;
      const std::size_t slash = std::min(text.find('/'), text.size());
      check(text.substr(0, slash) + " a=" + type + ":c" + text.substr(slash), LayoutRule::column,
            static_cast<std::int64_t>(random_() % 16));
    }
  }
}

// Transposed if lines are closer together than the elements of a line, contiguous or not.
TEST_F(RepackKernel, copies_any_strides) {
  for (const char* type : {"int8", "bf16", "f32"}) {
    for (const char* words :
         {"20x8x50/strides=101,2", "20x8x50/strides=2,41", "20x8x50/strides=1,41",
          "150x8x130/strides=1,151", "150x8x70x2/strides=1,160/batch=20001",
          "129x8x257/strides=-1,-131", "33x8x200/strides=3,0", "1x8x40/strides=7,3",
          "40x8x1/strides=3,1", "65x8x66/strides=0,5", "260x8x140/strides=1,260"}) {
      const std::string text = words;
      const std::size_t slash = std::min(text.find('/'), text.size());
      check(text.substr(0, slash) + " a=" + type + text.substr(slash), LayoutRule::any,
            static_cast<std::int64_t>(random_() % 16));
    }
  }
}

}  // namespace
}  // namespace gemmery
