// SPDX-License-Identifier: Apache-2.0
// Products of codes with scales and zero points, and of 16-bit floats, by one kernel on an emulated
// device and by one of the host: numbers whose sums are exact, so results are equal.
#pragma once

#include <gtest/gtest.h>
#include <gemmery/gemmery.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/number.hpp"
#include "tests/providers/templates/every_code.hpp"
#include "tests/support/random_seed.hpp"
#include "tests/support/with_nvrtc.hpp"

namespace gemmery::tests {

// Cases that are drawn from the seed of a run.
class RandomCases : public WithNvrtc {
 protected:
  int draw(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  template <class T>
  T one_of(std::initializer_list<T> all) {
    return *(all.begin() + draw(0, static_cast<int>(all.size()) - 1));
  }
  std::mt19937_64 random_{random_seed()};
};

// A tensor in host memory and its copy on a device.
struct OnBoth {
  DType dtype;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  std::vector<std::uint8_t> bytes;
  Buffer buffer;

  OnBoth(DType type, std::vector<std::int64_t> extents, std::vector<std::int64_t> steps,
         std::int64_t elements)
      : dtype(type),
        shape(std::move(extents)),
        strides(std::move(steps)),
        bytes(static_cast<std::size_t>(storage_bytes(type, elements) + 16)) {}
  void set(std::int64_t index, double value) {
    number::store(dtype, bytes.data(), index, {value, 0});
  }
  double get(std::int64_t index) const { return number::load(dtype, bytes.data(), index); }
  void upload(Stream stream) { buffer = on_device(bytes, stream); }
  Tensor here() const { return Tensor(bytes.data(), dtype, shape, strides); }
  Tensor there(Device device) const { return Tensor(buffer.data(), dtype, shape, strides, device); }
};

struct ScaledCase {
  DType code;
  DType half;
  bool is_a = false;       // the codes
  std::int64_t lines = 1;  // rows of A, columns of B, that are decoded
  std::int64_t others = 1;
  std::int64_t k = 1;
  ScaleBlock block;
  DType scale = DType::bfloat16;
  ScaleLayout layout = ScaleLayout::strided;
  std::optional<DType> zero = std::nullopt;
  std::vector<double> zeros = {};  // drawn from these
  bool has_second = false;
  bool has_table = false;
};

// Multiplies them by kernels of one family on an emulated device, and on the host.
class ScaledCases : public RandomCases {
 protected:
  explicit ScaledCases(std::string family) : family_(std::move(family)) {}

  // The rows of docs/scaled-rows.md that every family which decodes has. A group of 0 is all of k.
  ScaledCase int4_in_groups(std::int32_t group, bool has_zero) {
    const bool is_signed = draw(0, 1) == 0;
    ScaledCase row{.code = is_signed ? DType::int4 : DType::uint4,
                   .half = one_of({DType::bfloat16, DType::float16}),
                   .is_a = draw(0, 1) == 0,
                   .lines = 72,
                   .others = draw(1, 40),
                   .k = group == 0 ? 100 : one_of({160, 257, 384}),
                   .block = {1, group},
                   .scale = one_of({DType::bfloat16, DType::float16, DType::float32})};
    if (!has_zero) return row;
    row.zero =
        is_signed ? one_of({DType::int4, DType::int8}) : one_of({DType::uint4, DType::uint8});
    row.zeros = is_signed ? std::vector{0.0, -8.0, 7.0} : std::vector{0.0, 15.0, 8.0};
    return row;
  }
  static ScaledCase int8_by_channel(std::int64_t others) {
    return {.code = DType::int8,
            .half = DType::bfloat16,
            .lines = 40,
            .others = others,
            .k = 96,
            .block = scale_block::row};
  }
  static ScaledCase uint8_with_zero_128(std::int64_t others, DType half) {
    return {.code = DType::uint8,
            .half = half,
            .lines = 40,
            .others = others,
            .k = 96,
            .block = {1, 32},
            .zero = DType::uint8,
            .zeros = {128, 0, 255}};
  }
  ScaledCase mxfp4(DType half, ScaleLayout layout) {
    return {.code = DType::float4_e2m1fn,
            .half = half,
            .is_a = draw(0, 1) == 0,
            .lines = 137,
            .others = 33,
            .k = 160,
            .block = scale_block::mx,
            .scale = DType::float8_e8m0fnu,
            .layout = layout};
  }
  ScaledCase nvfp4(DType half, ScaleLayout layout) {
    return {.code = DType::float4_e2m1fn,
            .half = half,
            .is_a = draw(0, 1) == 0,
            .lines = 137,
            .others = 33,
            .k = one_of({48, 160, 200}),
            .block = scale_block::nvfp4,
            .scale = DType::float8_e4m3fn,
            .layout = layout};
  }

  std::int64_t blocks(std::int64_t extent, std::int32_t block) const {
    return block == 0 ? 1 : (extent + block - 1) / block;
  }
  // Codes of small whole numbers, and numbers that keep sums exact in float32.
  double number_of(DType dtype) {
    const bool is_unsigned = facts(dtype).kind == DTypeKind::unsigned_integer;
    if (dtype == DType::float4_e2m1fn)
      return number::decode(dtype, static_cast<std::uint32_t>(draw(0, 15)));
    return is_unsigned ? draw(0, bit_width(dtype) == 4 ? 15 : 255)
                       : draw(bit_width(dtype) == 4 ? -8 : -16, bit_width(dtype) == 4 ? 7 : 16);
  }
  OnBoth operand(DType dtype, std::int64_t lines, std::int64_t k, bool is_a) {
    const std::int64_t pitch = (k + 31) / 32 * 32;
    OnBoth made(dtype, is_a ? std::vector{lines, k} : std::vector{k, lines},
                is_a ? std::vector{pitch, std::int64_t{1}} : std::vector{std::int64_t{1}, pitch},
                lines * pitch);
    for (std::int64_t line = 0; line < lines; ++line)
      for (std::int64_t at = 0; at < k; ++at)
        made.set(line * pitch + at, bit_width(dtype) == 16 ? draw(-2, 2) : number_of(dtype));
    return made;
  }
  // Values of blocks; strides are those of (k blocks, rows) in memory, in either order.
  OnBoth companion(DType dtype, const ScaledCase& row, const std::function<double()>& value) {
    const std::int64_t of_lines = blocks(row.lines, row.block.rows);
    const std::int64_t of_k = blocks(row.k, row.block.k);
    const bool is_k_first = is_packed(dtype) || draw(0, 1) == 0;
    const std::int64_t whole = whole_elements(dtype);
    const std::int64_t pitch = ((is_k_first ? of_lines : of_k) + whole - 1) / whole * whole;
    const std::int64_t line_stride = is_k_first ? 1 : pitch;
    const std::int64_t k_stride = is_k_first ? pitch : 1;
    const std::int64_t count = pitch * (is_k_first ? of_k : of_lines);
    OnBoth made(dtype, row.is_a ? std::vector{of_lines, of_k} : std::vector{of_k, of_lines},
                row.is_a ? std::vector{line_stride, k_stride} : std::vector{k_stride, line_stride},
                count);
    for (std::int64_t at = 0; at < count; ++at) made.set(at, value());
    return made;
  }
  OnBoth scale_of(const ScaledCase& row) {
    const auto power = [&] {
      const double size = std::ldexp(1.0, draw(-3, 3));
      return row.scale == DType::float8_e8m0fnu || draw(0, 1) == 0 ? size : -size;
    };
    if (row.layout == ScaleLayout::strided) return companion(row.scale, row, power);
    const std::int64_t count = swizzled_scale_count(row.lines, row.k, row.block);
    OnBoth made(row.scale, {count}, {1}, count);
    for (std::int64_t at = 0; at < count; ++at) made.set(at, power());
    return made;
  }

  void expect_as_on_the_host(const ScaledCase& row, const std::string& design,
                             const char* device_name, const std::string& split = "_none_") {
    const Device device = parse_device(device_name).value();
    const OwnedStream stream{device};
    OnBoth codes = operand(row.code, row.lines, row.k, row.is_a);
    OnBoth numbers = operand(row.half, row.others, row.k, !row.is_a);
    OnBoth scale = scale_of(row);
    OnBoth second = companion(DType::float32, row, [&] { return std::ldexp(1.0, draw(-1, 1)); });
    const DType zero_type = row.zero.value_or(DType::int8);
    OnBoth zero = companion(zero_type, row, [&] {
      return row.zeros.empty() ? 0.0
                               : row.zeros[static_cast<std::size_t>(
                                     draw(0, static_cast<int>(row.zeros.size()) - 1))];
    });
    std::optional<CodeTable> table;  // of numbers that keep sums exact
    if (row.has_table)
      for (float& number : table.emplace().values) number = static_cast<float>(draw(-31, 31)) / 4;
    for (OnBoth* const one : {&codes, &numbers, &scale, &second, &zero}) one->upload(stream);
    const std::int64_t m = row.is_a ? row.lines : row.others;
    const std::int64_t n = row.is_a ? row.others : row.lines;
    std::vector<float> expected(static_cast<std::size_t>(m * n));
    std::vector<float> got(expected.size());
    Buffer out(got.size() * 4, stream);
    const auto arguments = [&](const auto& view, const Tensor& result) {
      std::vector<Companion> scales{{view(scale), row.block, row.layout}};
      if (row.has_second) scales.push_back({view(second), row.block, ScaleLayout::strided});
      std::optional<Companion> zeros;
      if (row.zero) zeros.emplace(view(zero), row.block, ScaleLayout::strided);
      ScaledOperand coded(view(codes), std::move(scales), std::move(zeros));
      coded.table = table;
      const ScaledOperand plain(view(numbers));
      return GemmArguments(row.is_a ? coded : plain, row.is_a ? plain : coded, result);
    };
    const GemmArguments on_host = arguments([](const OnBoth& one) { return one.here(); },
                                            Tensor(expected.data(), DType::float32, {m, n}));
    const GemmArguments on_gpu = arguments([&](const OnBoth& one) { return one.there(device); },
                                           Tensor(out.data(), DType::float32, {m, n}, device));
    get_kernels(on_host).front().run(on_host, {.stream = Stream::cpu()});
    const Kernel kernel = kernel_of(on_gpu, design, split);
    ASSERT_EQ(find_kernel(kernel.name()), kernel) << kernel.name();
    kernel.run(on_gpu, {.stream = stream});
    copy(got.data(), Device::cpu(), out.data(), device, got.size() * 4, stream);
    synchronize(stream);
    for (std::size_t at = 0; at < got.size(); ++at)
      ASSERT_EQ(got[at], expected[at]) << to_string(on_gpu.problem()) << " " << kernel.name()
                                       << " element " << at << " of " << m << "x" << n;
  }

 private:
  // The first kernel of the family whose name has both words, or the first one at least.
  Kernel kernel_of(const GemmArguments& arguments, const std::string& design,
                   const std::string& split) const {
    const std::vector<RankedKernel> all = get_kernels(arguments);
    const auto find = [&](bool names_split) {
      return std::ranges::find_if(all, [&](const Kernel& kernel) {
        const std::string name = kernel.name();
        return kernel.family().name() == family_ && name.find(design) != std::string::npos &&
               (!names_split || name.find(split) != std::string::npos);
      });
    };
    auto found = find(true);
    if (found == all.end()) found = find(false);
    if (found != all.end()) return *found;
    ADD_FAILURE() << "no kernel " << family_ << " " << design << " for "
                  << to_string(arguments.problem());
    return all.front();
  }

  std::string family_;
};

}  // namespace gemmery::tests
