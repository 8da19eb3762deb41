// SPDX-License-Identifier: Apache-2.0
#include "tests/describe/described_conv.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "core/number.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::describe::tests {
namespace {

using gemmery::tests::Draw;
using gemmery::tests::naive_sum;

int widest(Element element) { return 16 / static_cast<int>(byte_width(storage_type(element))); }

int limit_of(DType dtype) {
  if (dtype == DType::int8 || dtype == DType::uint8) return 1;
  return dtype == DType::float16 || dtype == DType::bfloat16 ? 4 : 7;
}

HeldTensor drawn(DType dtype, const Extents& shape, Draw& draw) {
  HeldTensor tensor(dtype, shape);
  tensor.fill([&] { return draw(dtype); });
  return tensor;
}

// The offset of an element of a packed tensor of 8-bit elements in an interleaved layout.
std::size_t interleaved_offset(Layout layout, const Extents& shape, const Extents& index) {
  const std::int64_t block = index[3] / 32;
  const std::int64_t inner = index[1] * shape[2] + index[2];
  const std::int64_t pixels = shape[1] * shape[2];
  const std::int64_t in_block =
      layout == Layout::TensorNC32HW32
          ? index[0] * pixels * shape[3] + block * pixels * 32 + inner * 32
          : (block * pixels + inner) * shape[0] * 32 + index[0] * 32;
  return static_cast<std::size_t>(in_block + index[3] % 32);
}

// Converts the bytes of a tensor from NHWC to a layout, or back.
std::vector<std::uint8_t> reordered(const std::vector<std::uint8_t>& from, const Extents& shape,
                                    Layout layout, bool into_layout) {
  if (layout == Layout::TensorNHWC) return from;
  std::vector<std::uint8_t> bytes(from.size());
  std::size_t packed = 0;
  Extents at(4);
  for (at[0] = 0; at[0] < shape[0]; ++at[0])
    for (at[1] = 0; at[1] < shape[1]; ++at[1])
      for (at[2] = 0; at[2] < shape[2]; ++at[2])
        for (at[3] = 0; at[3] < shape[3]; ++at[3], ++packed) {
          const std::size_t other = interleaved_offset(layout, shape, at);
          (into_layout ? bytes[other] : bytes[packed]) = into_layout ? from[packed] : from[other];
        }
  return bytes;
}

}  // namespace

ConvCase read_case(std::string_view text) { return gemmery::tests::read_row(text).conv; }

Conv2dProblemSize size_of(const ConvCase& conv) {
  return {.N = conv.images,
          .H = conv.image[0],
          .W = conv.image[1],
          .C = conv.channels,
          .K = conv.filters,
          .R = conv.filter[0],
          .S = conv.filter[1],
          .padding = {conv.lower[0], conv.upper[0], conv.lower[1], conv.upper[1]},
          .stride = {conv.stride[0], conv.stride[1]},
          .dilation = {conv.dilation[0], conv.dilation[1]},
          .mode = conv.mode,
          .groups = conv.groups};
}

Conv2dDescription description_of(const ConvSketch& sketch) {
  const auto alignments = sketch.alignments.value_or(
      std::array{widest(sketch.ab), widest(sketch.ab), widest(sketch.cd)});
  const Layout image = sketch.is_interleaved ? Layout::TensorNC32HW32 : Layout::TensorNHWC;
  const Layout filter = sketch.is_interleaved ? Layout::TensorC32RSK32 : Layout::TensorNHWC;
  return {.conv_kind = sketch.kind,
          .iterator_algorithm = sketch.algorithm,
          .compute_capability = 80,
          .tile_description = {.threadblock_shape = sketch.tile,
                               .stages = sketch.stages,
                               .warp_count = sketch.warps,
                               .math_instruction = {.instruction_shape = sketch.instruction,
                                                    .element_a = sketch.ab,
                                                    .element_b = sketch.ab,
                                                    .element_accumulator = sketch.accumulator,
                                                    .opcode_class = sketch.opcode_class}},
          .A = {sketch.ab, image, alignments[0]},
          .B = {sketch.ab, filter, alignments[1]},
          .C = {sketch.cd, image, alignments[2]},
          .stride_support = sketch.support,
          .epilogue_functor = sketch.functor.value_or(
              LinearCombination(sketch.cd, alignments[2], sketch.accumulator)),
          .swizzling_functor = sketch.swizzle};
}

ConvSketch simt_sketch(ConvKind kind) {
  return {.kind = kind,
          .tile = {32, 32, 8},
          .stages = 2,
          .warps = {1, 1, 1},
          .instruction = {1, 1, 1},
          .ab = Element::float32,
          .opcode_class = OpcodeClass::Simt,
          .alignments = std::array{1, 1, 1}};
}

// --- a convolution in memory --------------------------------------------------------------------

DescribedConv::DescribedConv(const ConvSketch& sketch, const ConvCase& conv, Conv2dOptions options,
                             std::optional<std::array<std::int64_t, 2>> output)
    : operation_(description_of(sketch)),
      conv_(conv),
      size_(size_of(conv)),
      options_(std::move(options)),
      device_(test_device()),
      a_(DType::int8, {}),
      b_(DType::int8, {}),
      c_(DType::int8, {}),
      d_(DType::int8, {}) {
  if (output) conv_.output = {(*output)[0], (*output)[1]};
  size_.output = output;
  Draw draw(gemmery::tests::random_seed(), limit_of(storage_type(sketch.ab)));
  const auto [a, b, d] = gemmery::tests::shapes_of(conv_, sketch.kind);
  const DType operands = storage_type(sketch.ab);
  const DType out = storage_type(sketch.cd);
  a_ = drawn(operands, a, draw);
  b_ = drawn(operands, b, draw);
  c_ = drawn(out, options_.bias ? Extents{d[3]} : d, draw);
  d_ = HeldTensor(out, d);
}

void DescribedConv::upload(std::size_t operand, const HeldTensor& tensor, Layout layout) {
  sent_.push_back(layout == Layout::TensorNHWC || tensor.shape().size() != 4
                      ? tensor.bytes()
                      : reordered(tensor.bytes(), tensor.shape(), layout, true));
  Buffer& buffer = memory_.emplace_back(sent_[operand].size() + 16, stream());
  copy(buffer.data(), device_, sent_[operand].data(), Device::cpu(), sent_[operand].size(),
       stream());
}

Conv2dArguments DescribedConv::arguments() {
  memory_.clear();
  sent_.clear();
  const Conv2dDescription& it = operation_.description();
  upload(0, a_, it.A.layout);
  upload(1, b_, it.B.layout);
  upload(2, c_, it.C.layout);
  d_.poison();
  upload(3, d_, it.C.layout);
  return Conv2dArguments(
      operation_, size_,
      {memory_[0].data(), memory_[1].data(),
       options_.output_op.beta == 0 ? nullptr : memory_[2].data(), memory_[3].data()},
      device_, options_);
}

void DescribedConv::run() {
  const Conv2dArguments given = arguments();
  operation_.run(given, stream());
  download();
}

void DescribedConv::download() {
  std::vector<std::uint8_t> bytes(sent_[3].size());
  copy(bytes.data(), Device::cpu(), memory_[3].data(), device_, bytes.size(), stream());
  synchronize(stream());
  bytes = reordered(bytes, d_.shape(), operation_.description().C.layout, false);
  for (std::int64_t element = 0; element < d_.count(); ++element)
    d_.set(d_.index_of(element), number::load(d_.dtype(), bytes.data(), element));
}

bool DescribedConv::kept_inputs() const {
  for (const std::size_t operand : {0, 1}) {
    std::vector<std::uint8_t> bytes(sent_[operand].size());
    copy(bytes.data(), Device::cpu(), memory_[operand].data(), device_, bytes.size(), stream());
    synchronize(stream());
    if (bytes != sent_[operand]) return false;
  }
  return true;
}

std::string DescribedConv::first_difference(const Finish& finish) const {
  const auto& [alpha, beta, args, operands] = options_.output_op;
  for (std::int64_t element = 0; element < d_.count(); ++element) {
    const Extents index = d_.index_of(element);
    const double sum = naive_sum(conv_, operation_.description().conv_kind, a_, b_, index).value;
    const double c = beta == 0 ? 0 : c_[options_.bias ? Extents{index[3]} : index];
    const double wanted = finish ? finish(sum, c) : alpha * sum + beta * c;
    const double expected = number::rounded_to(d_.dtype(), {wanted, 0});
    if (d_[index] == expected) continue;
    return fmt::format("D[{}]: expected {}, got {}", element, expected, d_[index]);
  }
  return {};
}

void expect_exact(const ConvSketch& sketch, const std::vector<std::string_view>& cases,
                  const Conv2dOptions& options) {
  for (const std::string_view text : cases) {
    DescribedConv conv(sketch, read_case(text), options);
    conv.run();
    EXPECT_EQ(conv.first_difference(), "") << text << " by " << conv.operation().name();
  }
}

}  // namespace gemmery::describe::tests
