// SPDX-License-Identifier: Apache-2.0
#include "tests/describe/described_gemm.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/number.hpp"

namespace gemmery::describe::tests {
namespace {

std::pair<int, int> range_of(DType dtype) {
  switch (dtype) {
    case DType::float16:
    case DType::bfloat16:
      return {-4, 4};
    case DType::int8:
      return {-1, 1};
    case DType::uint8:
      return {0, 1};
    case DType::float8_e4m3fn:
    case DType::float8_e5m2:
      return {-2, 2};
    default:
      return {-8, 8};
  }
}

int widest(Element element) { return 16 / static_cast<int>(byte_width(storage_type(element))); }

constexpr unsigned char poison = 0xa5;

}  // namespace

Device test_device() {
  const char* const name = std::getenv("GEMMERY_TEST_DEVICE");
  return parse_device(name != nullptr ? name : "emulated:a100").value();
}

// --- operands -----------------------------------------------------------------------------------

Operand::Operand(const TensorDescription& tensor, std::int64_t rows, std::int64_t columns,
                 std::int64_t batch)
    : dtype_(storage_type(tensor.element)),
      layout_(tensor.layout),
      rows_(rows),
      columns_(columns),
      batch_(batch),
      memory_(static_cast<std::size_t>(rows * columns * batch) *
              byte_width(storage_type(tensor.element))) {}

std::int64_t Operand::offset(std::int64_t product, std::int64_t row, std::int64_t column) const {
  const std::int64_t first = product * rows_ * columns_;
  switch (layout_) {
    case Layout::RowMajor:
      return first + row * columns_ + column;
    case Layout::ColumnMajor:
      return first + column * rows_ + row;
    case Layout::ColumnMajorInterleaved32:
      return first + column / 32 * rows_ * 32 + row * 32 + column % 32;
    case Layout::RowMajorInterleaved32:
      return first + row / 32 * columns_ * 32 + column * 32 + row % 32;
    default:
      return -1;
  }
}

double Operand::at(std::int64_t product, std::int64_t row, std::int64_t column) const {
  return number::load(dtype_, memory_.data(), offset(product, row, column));
}

void Operand::set(std::int64_t product, std::int64_t row, std::int64_t column, double value) {
  number::store(dtype_, memory_.data(), offset(product, row, column), {value, 0});
}

void Operand::fill_random(std::mt19937& random, int low, int high) {
  std::uniform_int_distribution<int> values(low, high);
  for (std::int64_t i = 0; i < rows_ * columns_ * batch_; ++i)
    number::store(dtype_, memory_.data(), i, {static_cast<double>(values(random)), 0});
}

void Operand::fill_byte(unsigned char value) {
  std::ranges::fill(memory_, static_cast<std::byte>(value));
}

// --- the product --------------------------------------------------------------------------------

DescribedGemm::DescribedGemm(const GemmOperationUniversal& operation, const GemmCoord& size,
                             GemmOptions options, Device device)
    : operation_(operation), size_(size), options_(std::move(options)), device_(device) {
  const GemmDescription& it = operation.description();
  a = Operand(it.A, size.m, size.k, options_.batch);
  b = Operand(it.B, size.k, size.n, options_.batch);
  c = Operand(it.C, options_.bias ? 1 : size.m, size.n, options_.batch);
  d = Operand(it.C, size.m, size.n, options_.batch);
  fill();
}

void DescribedGemm::fill(std::uint32_t seed) {
  std::mt19937 random(seed);
  for (Operand* operand : {&a, &b, &c}) {
    const auto [low, high] = range_of(operand->dtype());
    operand->fill_random(random, low, high);
  }
}

void DescribedGemm::fill(std::uint32_t seed, int low, int high) {
  std::mt19937 random(seed);
  for (Operand* operand : {&a, &b, &c}) operand->fill_random(random, low, high);
}

Stream DescribedGemm::stream() const { return Stream::of(nullptr, device_); }

void DescribedGemm::upload() {
  memory_.clear();
  d.fill_byte(poison);
  for (Operand* operand : {&a, &b, &c, &d}) {
    memory_.emplace_back(std::max<std::size_t>(parts() * part_step(*operand), 16), stream());
    for (std::size_t part = 0; part < parts(); ++part)
      copy(part_of(memory_.back(), *operand, part), device_,
           operand->data() + part * part_bytes(*operand), Device::cpu(), part_bytes(*operand),
           stream());
  }
}

// The products of an array are separate parts in memory, the last one first; others are one part.
std::size_t DescribedGemm::parts() const {
  return options_.gemm_mode == Mode::Array ? static_cast<std::size_t>(options_.batch) : 1;
}
std::size_t DescribedGemm::part_bytes(const Operand& operand) const {
  return operand.bytes() / parts();
}
std::size_t DescribedGemm::part_step(const Operand& operand) const {
  return parts() == 1 ? operand.bytes() : (part_bytes(operand) + 511) / 256 * 256;
}
std::byte* DescribedGemm::part_of(const Buffer& memory, const Operand& operand,
                                  std::size_t part) const {
  return static_cast<std::byte*>(memory.data()) + (parts() - 1 - part) * part_step(operand);
}

GemmPointers DescribedGemm::pointers() {
  if (memory_.empty()) upload();
  GemmPointers pointers;
  for (std::size_t product = 0; product < parts(); ++product) {
    const auto of_product = [&](std::size_t operand, const Operand& host) {
      return part_of(memory_[operand], host, product);
    };
    pointers.A.push_back(of_product(0, a));
    pointers.B.push_back(of_product(1, b));
    if (!without_c) pointers.C.push_back(of_product(2, c));
    pointers.D.push_back(of_product(3, d));
  }
  return pointers;
}

GemmArguments DescribedGemm::arguments() {
  return GemmArguments(operation_, size_, pointers(), device_, options_);
}

void DescribedGemm::launch(const GemmArguments& arguments) const {
  operation_.run(arguments, stream());
  synchronize(stream());
}

void DescribedGemm::download() {
  for (std::size_t part = 0; part < parts(); ++part)
    copy(d.data() + part * part_bytes(d), Device::cpu(), part_of(memory_[3], d, part), device_,
         part_bytes(d), stream());
  synchronize(stream());
}

std::vector<std::byte> DescribedGemm::b_after() const {
  std::vector<std::byte> bytes(b.bytes());
  copy(bytes.data(), Device::cpu(), memory_[1].data(), device_, bytes.size(), stream());
  synchronize(stream());
  return bytes;
}

void DescribedGemm::run() {
  upload();
  launch(arguments());
  download();
}

double DescribedGemm::accumulated(std::int64_t product, std::int64_t row,
                                  std::int64_t column) const {
  double sum = 0;
  for (std::int64_t k = 0; k < size_.k; ++k)
    sum += a.at(product, row, k) * b.at(product, k, column);
  return sum;
}

std::string DescribedGemm::first_difference(const Finish& finish) const {
  for (std::int64_t product = 0; product < options_.batch; ++product) {
    for (std::int64_t row = 0; row < size_.m; ++row) {
      for (std::int64_t column = 0; column < size_.n; ++column) {
        const double sum = accumulated(product, row, column);
        const double source = without_c ? 0 : c.at(product, options_.bias ? 0 : row, column);
        const double wanted =
            finish ? finish(sum, source)
                   : options_.output_op.alpha * sum +
                         (options_.output_op.beta == 0 ? 0 : options_.output_op.beta * source);
        const double expected = number::rounded_to(d.dtype(), {wanted, 0});
        const double got = d.at(product, row, column);
        if (got == expected || (std::isnan(got) && std::isnan(expected))) continue;
        return fmt::format("D[{}, {}, {}] of {}x{}x{}: expected {}, got {}", product, row, column,
                           size_.m, size_.n, size_.k, expected, got);
      }
    }
  }
  return {};
}

// --- sketches -----------------------------------------------------------------------------------

GemmDescription description_of(const Sketch& sketch) {
  const Element tensors = sketch.tensors.value_or(sketch.ab);
  const std::array alignments =
      sketch.alignments.value_or(std::array{widest(tensors), widest(tensors), widest(sketch.cd)});
  const TensorDescription c{sketch.cd, sketch.layouts[2], alignments[2]};
  const std::optional<Element> compute;
  const EpilogueFunctor functor = sketch.functor.value_or(
      LinearCombination(sketch.cd, c.alignment, sketch.accumulator, compute));
  return {.compute_capability = sketch.compute_capability,
          .tile_description = {.threadblock_shape = sketch.tile,
                               .stages = sketch.stages,
                               .warp_count = sketch.warps,
                               .math_instruction = {.instruction_shape = sketch.instruction,
                                                    .element_a = sketch.ab,
                                                    .element_b = sketch.ab,
                                                    .element_accumulator = sketch.accumulator,
                                                    .opcode_class = sketch.opcode_class,
                                                    .math_operation = sketch.operation}},
          .A = {tensors, sketch.layouts[0], alignments[0]},
          .B = {tensors, sketch.layouts[1], alignments[1]},
          .C = c,
          .epilogue_functor = functor,
          .swizzling_functor = sketch.swizzle,
          .visitor = functor.kind == EpilogueFunctor::Kind::visitor};
}

GemmOperationUniversal operation_of(const Sketch& sketch) {
  return GemmOperationUniversal(description_of(sketch));
}

namespace {

Sketch sketch_of(const Combination& row) {
  const bool is_simt = row.opcode_class == OpcodeClass::Simt;
  const auto element = [](DType dtype) {
    for (int at = 0;; ++at)
      if (storage_type(static_cast<Element>(at)) == dtype) return static_cast<Element>(at);
  };
  const DType accumulator = storage_type(row.element_accumulator);
  Sketch sketch{.compute_capability = row.least_capability,
                .tile = {64, 64, is_simt ? 32 : 64 / static_cast<int>(byte_width(row.a)) * 2},
                .stages = 2,
                .instruction = row.instruction_shape,
                .ab = row.element_a,
                .tensors = element(row.a),
                .accumulator = row.element_accumulator,
                .cd = element(accumulator),
                .opcode_class = row.opcode_class,
                .operation = row.math_operation};
  return sketch;
}

}  // namespace

GemmDescription description_of_row(const Combination& row) {
  GemmDescription description = description_of(sketch_of(row));
  description.tile_description.math_instruction.element_b = row.element_b;
  for (int at = 0; at < 10; ++at)
    if (storage_type(static_cast<Element>(at)) == row.b)
      description.B.element = static_cast<Element>(at);
  return description;
}

std::vector<GemmCoord> swept_sizes(const Sketch& sketch) {
  const std::int64_t step = std::max(
      16 / static_cast<std::int64_t>(byte_width(storage_type(sketch.tensors.value_or(sketch.ab)))),
      16 / static_cast<std::int64_t>(byte_width(storage_type(sketch.cd))));
  const std::int64_t k = sketch.tile[2];
  return {{step, step, step},
          {sketch.tile[0] + 3 * step, sketch.tile[1] - 2 * step, k * sketch.stages - step},
          {step, sketch.tile[1] + step, 2 * k * sketch.stages - step}};
}

void expect_exact(const Sketch& sketch, const std::vector<GemmCoord>& sizes,
                  const GemmOptions& options, Device device) {
  const GemmOperationUniversal operation = operation_of(sketch);
  for (const GemmCoord& size : sizes) {
    DescribedGemm gemm(operation, size, options, device);
    gemm.run();
    EXPECT_EQ(gemm.first_difference(), "") << operation.name();
  }
}

}  // namespace gemmery::describe::tests
