// SPDX-License-Identifier: Apache-2.0
// The limits of oneDNN in this process: not in a forked child, and not where its results are wrong.
#include "providers/host/onednn.hpp"

#include <pthread.h>
#include <cstddef>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <vector>

#include <gemmery/error.hpp>

#include "providers/host/onednn_convolution.hpp"
#include "providers/host/onednn_library.hpp"
#include "providers/host/onednn_matmul.hpp"
#include "providers/host/onednn_primitive_cache.hpp"

namespace gemmery::host::onednn {
namespace {

// --- fork ---

std::atomic<bool> was_used{false};
std::atomic<bool> was_used_by_parent{false};
std::atomic<int> calls_in_flight{0};

// A call of another thread may hold locks, ours or oneDNN's, that nobody releases in the child.
void note_fork_in_child() {
  if (was_used || calls_in_flight > 0) was_used_by_parent = true;
}

// Held during every call of oneDNN.
class CallInFlight {
 public:
  CallInFlight() {
    static const int registered = pthread_atfork(nullptr, nullptr, note_fork_in_child);
    static_cast<void>(registered);
    ++calls_in_flight;
  }
  ~CallInFlight() { --calls_in_flight; }
  CallInFlight(const CallInFlight&) = delete;
  CallInFlight& operator=(const CallInFlight&) = delete;
};

constexpr const char* forked_reason =
    "unavailable: forked child of a process that used oneDNN, whose threads do not survive fork";

const Library& library() {
  if (const gemmery::Status status = availability(); !status)
    throw Error({.kind = ErrorKind::unavailable,
                 .operand = "oneDNN",
                 .expected = {},
                 .got = status.error(),
                 .hint = {},
                 .cause = {}});
  return *found_library().library;
}

PrimitiveCache<Matmul, MatmulShape>& cache() {
  static auto* const all = new PrimitiveCache<Matmul, MatmulShape>;
  return *all;
}

PrimitiveCache<ConvolutionPrimitive, ConvolutionShape>& convolutions() {
  static auto* const all = new PrimitiveCache<ConvolutionPrimitive, ConvolutionShape>;
  return *all;
}

// --- what it can ---

OperandShape packed(DataType type, std::int64_t rows, std::int64_t columns) {
  return {.type = type, .extents = {1, rows, columns}, .strides = {rows * columns, columns, 1}};
}

bool is_integer(DataType type) { return type == DataType::s8 || type == DataType::u8; }

// The largest products of one sign: pairs of them exceed 16 bits.
bool sums_are_exact(const MatmulShape& shape) {
  constexpr std::size_t side = 64;
  const auto extreme = [](DataType type) {
    return type == DataType::u8 ? std::uint8_t{255} : std::uint8_t{127};
  };
  const std::vector<std::uint8_t> source(side * side, extreme(shape.source.type));
  const std::vector<std::uint8_t> weights(side * side, extreme(shape.weights.type));
  std::vector<std::int32_t> sums(side * side);
  multiply(shape, source.data(), weights.data(), sums.data());
  const int expected =
      static_cast<int>(side) * extreme(shape.source.type) * extreme(shape.weights.type);
  for (const std::int32_t sum : sums)
    if (sum != expected) return false;
  return true;
}

// Tests rows of odd length that are followed by NaN: instructions that multiply groups along k must
// not read beyond the row.
bool ignores_what_lies_behind_rows() {
  constexpr std::int64_t side = 32, depth = 38, step = 64;
  constexpr std::uint16_t one = 0x3f80, nan = 0x7fc0;
  std::vector<std::uint16_t> source(side * step, nan);
  for (std::int64_t row = 0; row < side; ++row)
    std::fill_n(source.begin() + row * step, depth, one);
  const std::vector<std::uint16_t> weights(depth * side, one);
  std::vector<float> sums(side * side);
  MatmulShape shape{packed(DataType::bf16, side, depth), packed(DataType::bf16, depth, side),
                    packed(DataType::f32, side, side)};
  shape.source.strides = {side * step, step, 1};
  multiply(shape, source.data(), weights.data(), sums.data());
  return std::ranges::all_of(sums, [](float sum) { return sum == depth; });
}

bool try_types(DataType source, DataType weights, DataType destination) {
  const MatmulShape shape{packed(source, 64, 64), packed(weights, 64, 64),
                          packed(destination, 64, 64)};
  try {
    cache().get(library(), shape);
    if (is_integer(source)) return sums_are_exact(shape);
    return source != DataType::bf16 || ignores_what_lies_behind_rows();
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

gemmery::Status availability() {
  if (was_used_by_parent.load(std::memory_order_relaxed))
    return gemmery::Status::fail(forked_reason);
  return found_library().library ? gemmery::Status::success()
                                 : gemmery::Status::fail(found_library().reason);
}

std::string version_text() {
  return found_library().library ? found_library().library->text() : std::string();
}

bool multiplies(DataType source, DataType weights, DataType destination) {
  if (!availability()) return false;
  const CallInFlight call;
  static auto* const mutex = new std::mutex;
  static auto* const known = new std::map<std::array<DataType, 3>, bool>;
  const std::array<DataType, 3> types{source, weights, destination};
  const std::scoped_lock lock(*mutex);
  const auto entry = known->find(types);
  if (entry != known->end()) return entry->second;
  return known->emplace(types, try_types(source, weights, destination)).first->second;
}

namespace {

// oneDNN 2.6.3 (brg:avx512_core) divides k among threads if it is longer than 1024 and there are
// fewer batches than threads. It then reads a transposed float32 source wrongly in every case of
// two or more batches: measured with 4 and with 16 threads, k from 2048 to 20000, 13x16 to 700x300.
// One batch is right, and so is every k up to 1025 that was tried.
constexpr std::int64_t longest_right_depth = 1024;

bool must_be_one_batch_each(const MatmulShape& shape) {
  const OperandShape& source = shape.source;
  const bool is_transposed = source.strides[2] != 1;
  return source.type == DataType::f32 && is_transposed && shape.destination.extents[0] > 1 &&
         source.extents[2] > longest_right_depth;
}

OperandShape one_batch_of(OperandShape shape) {
  shape.extents[0] = 1;
  return shape;
}

// The offset of a batch; 0 for a broadcast operand.
std::ptrdiff_t batch_offset(const OperandShape& shape, std::int64_t batch) {
  const std::int64_t element_bytes = shape.type == DataType::f32 ? 4 : 2;
  return shape.extents[0] == 1 ? 0 : batch * shape.strides[0] * element_bytes;
}

void multiply_batch_by_batch(const Matmul& matmul, const MatmulShape& shape, const void* source,
                             const void* weights, void* destination) {
  for (std::int64_t batch = 0; batch < shape.destination.extents[0]; ++batch)
    matmul.execute(static_cast<const std::byte*>(source) + batch_offset(shape.source, batch),
                   static_cast<const std::byte*>(weights) + batch_offset(shape.weights, batch),
                   static_cast<std::byte*>(destination) + batch_offset(shape.destination, batch));
}

}  // namespace

void multiply(const MatmulShape& shape, const void* source, const void* weights,
              void* destination) {
  const Library& opened = library();
  const CallInFlight call;
  was_used = true;
  if (!must_be_one_batch_each(shape))
    return cache().get(opened, shape)->execute(source, weights, destination);
  const MatmulShape one{one_batch_of(shape.source), one_batch_of(shape.weights),
                        one_batch_of(shape.destination)};
  multiply_batch_by_batch(*cache().get(opened, one), shape, source, weights, destination);
}

std::string implementation_name(const MatmulShape& shape) {
  const Library& opened = library();
  const CallInFlight call;
  return cache().get(opened, shape)->implementation_name();
}

// --- convolutions -------------------------------------------------------------------------------

void convolve(const ConvolutionShape& shape, const ConvolutionMemory& memory) {
  const Library& opened = library();
  const CallInFlight call;
  was_used = true;
  convolutions().get(opened, shape)->execute(memory);
}

std::string implementation_name(const ConvolutionShape& shape) {
  const Library& opened = library();
  const CallInFlight call;
  return convolutions().get(opened, shape)->implementation_name();
}

namespace {

// Tests a filter of 3x3 with the largest products of one sign.
bool try_convolution(DataType images) {
  constexpr std::int64_t side = 8, channels = 64;
  constexpr ConvolutionShape::Numbers square{1, side, side}, inner{1, side - 2, side - 2};
  constexpr ConvolutionShape::Numbers ones{1, 1, 1}, taps{1, 3, 3};
  const ConvolutionShape shape{.images = images,
                               .filters = DataType::s8,
                               .outputs = DataType::s32,
                               .image_count = 1,
                               .channels = channels,
                               .filter_count = channels,
                               .image = square,
                               .filter = taps,
                               .output = inner,
                               .stride = ones,
                               .dilation = ones};
  const std::uint8_t largest = images == DataType::u8 ? 255 : 127;
  const std::vector<std::uint8_t> x(side * side * channels, largest);
  const std::vector<std::uint8_t> w(9 * channels * channels, 127);
  std::vector<std::int32_t> y((side - 2) * (side - 2) * channels);
  try {
    convolve(shape, {x.data(), w.data(), y.data()});
  } catch (const Error&) {
    return false;
  }
  return std::ranges::all_of(
      y, [&](std::int32_t sum) { return sum == 9 * static_cast<int>(channels) * largest * 127; });
}

}  // namespace

bool convolves_exactly(DataType images) {
  if (!availability()) return false;
  static const bool of_s8 = try_convolution(DataType::s8);
  static const bool of_u8 = try_convolution(DataType::u8);
  return images == DataType::u8 ? of_u8 : of_s8;
}

}  // namespace gemmery::host::onednn
