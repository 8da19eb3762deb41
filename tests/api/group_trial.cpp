// SPDX-License-Identifier: Apache-2.0
#include "tests/api/group_trial.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/number.hpp"

namespace gemmery::tests {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::byte poison{0x5a};

struct Slice {
  std::int64_t begin, end;
};

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

std::vector<Slice> slices_of(const GroupCase& groups) {
  std::vector<Slice> slices;
  std::int64_t begin = 0;
  for (const std::int32_t count : groups.counts) {
    if (groups.form == GroupSizes::masked) begin = 0;
    slices.push_back({begin, begin + count});
    begin = round_up(begin + count, groups.alignment);
  }
  return slices;
}

// The numbers of a stack of matrices as in memory. A single matrix is a stack of one.
class StoredStack {
 public:
  StoredStack(DType dtype, std::vector<std::int64_t> shape, const Placement& placement)
      : dtype_(dtype), shape_(std::move(shape)), offset_(placement.offset_bytes) {
    const std::int64_t rows = shape_[shape_.size() - 2], columns = shape_.back();
    const std::int64_t line = (placement.is_column_major ? rows : columns) + placement.padding;
    row_stride_ = placement.is_column_major ? 1 : line;
    column_stride_ = placement.is_column_major ? line : 1;
    batch_stride_ = line * (placement.is_column_major ? columns : rows);
    const std::int64_t batches = shape_.size() == 3 ? shape_[0] : 1;
    bytes_.assign(
        offset_ + static_cast<std::size_t>(std::max<std::int64_t>(batches * batch_stride_, 1)) *
                      byte_width(dtype),
        poison);
  }
  template <class Value>
  void fill(const Value& value) {
    for_each([&](std::int64_t batch, std::int64_t row, std::int64_t column) {
      set(batch, row, column, value(batch, row, column));
    });
  }
  template <class Visit>
  void for_each(const Visit& visit) const {
    const std::int64_t batches = shape_.size() == 3 ? shape_[0] : 1;
    for (std::int64_t batch = 0; batch < batches; ++batch)
      for (std::int64_t row = 0; row < shape_[shape_.size() - 2]; ++row)
        for (std::int64_t column = 0; column < shape_.back(); ++column) visit(batch, row, column);
  }
  void set(std::int64_t batch, std::int64_t row, std::int64_t column, double value) {
    number::store(dtype_, bytes_.data() + offset_, index(batch, row, column), {value, 0});
  }
  double at(std::int64_t batch, std::int64_t row, std::int64_t column) const {
    return number::load(dtype_, bytes_.data() + offset_, index(batch, row, column));
  }
  bool is_stack() const { return shape_.size() == 3; }
  std::vector<std::byte>& bytes() { return bytes_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }
  Tensor view(const Buffer& memory) const {
    std::vector<std::int64_t> strides{row_stride_, column_stride_};
    if (shape_.size() == 3) strides.insert(strides.begin(), batch_stride_);
    return Tensor(static_cast<std::byte*>(memory.data()) + offset_, dtype_, shape_, strides,
                  memory.device());
  }

 private:
  std::int64_t index(std::int64_t batch, std::int64_t row, std::int64_t column) const {
    return batch * batch_stride_ + row * row_stride_ + column * column_stride_;
  }

  DType dtype_;
  std::vector<std::int64_t> shape_;
  std::size_t offset_;
  std::int64_t row_stride_, column_stride_, batch_stride_;
  std::vector<std::byte> bytes_;
};

// -1, 0 or 1; each line has a different sequence.
double digit(std::int64_t batch, std::int64_t row, std::int64_t column, int salt) {
  const std::int64_t mixed = batch * 7919 + row * 104729 + column * 1299709 + salt * 15485863;
  return static_cast<double>((mixed ^ (mixed >> 7)) % 3) - 1;
}

// The elements along the extent that differs, and their groups.
class RaggedDimension {
 public:
  explicit RaggedDimension(const GroupCase& groups)
      : is_masked_(groups.form == GroupSizes::masked), slices_(slices_of(groups)) {
    const std::int64_t end = slices_.empty() ? 0 : round_up(slices_.back().end, groups.alignment);
    const std::int64_t own = groups.ragged == Ragged::m   ? groups.m
                             : groups.ragged == Ragged::n ? groups.n
                                                          : groups.k;
    total_ = is_masked_ ? own : end + groups.tail;
  }
  std::int64_t total() const { return total_; }
  const std::vector<Slice>& slices() const { return slices_; }
  // For the batch-th matrix, if each group has one.
  bool is_used(std::int64_t batch, std::int64_t element) const {
    const auto has = [&](const Slice& slice) {
      return element >= slice.begin && element < slice.end;
    };
    return is_masked_ ? has(slices_[static_cast<std::size_t>(batch)])
                      : std::ranges::any_of(slices_, has);
  }

 private:
  bool is_masked_;
  std::vector<Slice> slices_;
  std::int64_t total_ = 0;
};

// The operands of a case in host memory, and the expected out.
class GroupOperands {
 public:
  explicit GroupOperands(const GroupCase& groups)
      : groups_(groups),
        ragged_(groups),
        m_(groups.ragged == Ragged::m ? ragged_.total() : groups.m),
        n_(groups.ragged == Ragged::n ? ragged_.total() : groups.n),
        k_(groups.ragged == Ragged::k ? ragged_.total() : groups.k),
        a(groups.dtype, shape_of(Ragged::n, m_, k_), groups.a),
        b(groups.dtype, shape_of(Ragged::m, k_, n_), groups.b),
        out(groups.out_dtype, shape_of(Ragged::k, m_, n_), groups.out),
        bias(DType::float32, {count(), 1, n_}, {}),
        peaks(DType::float32, {count(), 1, n_}, {}),
        factor(DType::float32, {m_, 1}, {}) {
    a.fill([&](std::int64_t batch, std::int64_t row, std::int64_t column) {
      const std::int64_t along = groups_.ragged == Ragged::m ? row : column;
      const bool is_used = groups_.ragged == Ragged::n || ragged_.is_used(batch, along);
      return is_used ? digit(batch, row, column, 1) : nan;
    });
    b.fill([&](std::int64_t batch, std::int64_t row, std::int64_t column) {
      const std::int64_t along = groups_.ragged == Ragged::n ? column : row;
      const bool is_used = groups_.ragged == Ragged::m || ragged_.is_used(batch, along);
      return is_used ? digit(batch, row, column, 2) : nan;
    });
    if (groups_.beta != 0)
      out.fill([](std::int64_t batch, std::int64_t row, std::int64_t column) {
        return digit(batch, row, column, 3);
      });
    bias.fill([](std::int64_t batch, std::int64_t row, std::int64_t column) {
      return 8 * digit(batch, row, column, 4);
    });
    factor.fill([](std::int64_t batch, std::int64_t row, std::int64_t column) {
      return 1 + digit(batch, row, column, 5) / 2;
    });
  }

  // Compares out's memory after a kernel with the expected contents.
  std::string find_failure(std::vector<std::byte> memory) const {
    StoredStack got = out, expected = out;
    got.bytes() = std::move(memory);
    std::string failure;
    for_each_result([&](std::int64_t batch, std::int64_t row, std::int64_t column, double value) {
      const double stored = number::rounded_to(groups_.out_dtype, {value, 0});
      if (got.at(batch, row, column) != stored && failure.empty())
        failure = fmt::format("out[{}, {}, {}]: expected {}, got {}", batch, row, column, stored,
                              got.at(batch, row, column));
      expected.set(batch, row, column, got.at(batch, row, column));
    });
    if (!failure.empty() || got.bytes() == expected.bytes()) return failure;
    return "what is of no group was written";
  }

  // The same for the largest values of each group's columns.
  std::string find_wrong_peak(std::vector<std::byte> memory) const {
    StoredStack got = peaks, expected = peaks;
    got.bytes() = std::move(memory);
    expected.fill([](std::int64_t, std::int64_t, std::int64_t) { return -infinity; });
    for_each_of_group([&](std::int64_t group, std::int64_t, std::int64_t column, double value) {
      if (value > expected.at(group, 0, column)) expected.set(group, 0, column, value);
    });
    std::string failure;
    expected.for_each([&](std::int64_t group, std::int64_t, std::int64_t column) {
      if (got.at(group, 0, column) != expected.at(group, 0, column) && failure.empty())
        failure = fmt::format("peak[{}, 0, {}]: expected {}, got {}", group, column,
                              expected.at(group, 0, column), got.at(group, 0, column));
    });
    return failure;
  }

  // Sizes in the form of the case.
  std::vector<std::int64_t> sizes() const {
    std::vector<std::int64_t> sizes;
    if (groups_.form == GroupSizes::prefix) sizes.push_back(0);
    if (groups_.form == GroupSizes::labels)
      sizes.assign(static_cast<std::size_t>(ragged_.total()), -1);
    std::int64_t group = 0;
    for (const Slice& slice : ragged_.slices()) {
      if (groups_.form == GroupSizes::labels)
        std::fill(sizes.begin() + slice.begin, sizes.begin() + slice.end, group++);
      else if (groups_.form == GroupSizes::counts || groups_.form == GroupSizes::masked)
        sizes.push_back(slice.end - slice.begin);
      else
        sizes.push_back(slice.end);
    }
    return sizes;
  }

 private:
  std::int64_t count() const { return static_cast<std::int64_t>(groups_.counts.size()); }
  // An operand is a stack if the extent that differs is not its own.
  std::vector<std::int64_t> shape_of(Ragged absent, std::int64_t rows, std::int64_t columns) const {
    const bool is_stack = groups_.form == GroupSizes::masked || groups_.ragged == absent;
    return is_stack ? std::vector{count(), rows, columns} : std::vector{rows, columns};
  }
  template <class Visit>
  void for_each_result(const Visit& visit) const {
    for_each_of_group([&](std::int64_t group, std::int64_t row, std::int64_t column, double value) {
      visit(out.is_stack() ? group : 0, row, column, value);
    });
  }
  template <class Visit>
  void for_each_of_group(const Visit& visit) const {
    std::int64_t group = 0;
    for (const Slice& own : ragged_.slices()) {
      const auto slice_of = [&](Ragged dimension, std::int64_t extent) {
        return groups_.ragged == dimension ? own : Slice{0, extent};
      };
      const Slice rows = slice_of(Ragged::m, m_), columns = slice_of(Ragged::n, n_);
      for (std::int64_t row = rows.begin; row < rows.end; ++row)
        for (std::int64_t column = columns.begin; column < columns.end; ++column)
          visit(group, row, column, result_of(group, row, column, slice_of(Ragged::k, k_)));
      ++group;
    }
  }
  double result_of(std::int64_t group, std::int64_t row, std::int64_t column,
                   const Slice& depth) const {
    const std::int64_t of_a = a.is_stack() ? group : 0, of_b = b.is_stack() ? group : 0;
    double sum = 0;
    for (std::int64_t k = depth.begin; k < depth.end; ++k)
      sum += a.at(of_a, row, k) * b.at(of_b, k, column);
    if (groups_.beta != 0) sum += groups_.beta * out.at(out.is_stack() ? group : 0, row, column);
    if (groups_.has_program)
      sum = std::max(sum + bias.at(group, 0, column), 0.0) * factor.at(0, row, 0);
    return sum;
  }

  const GroupCase& groups_;
  RaggedDimension ragged_;
  std::int64_t m_, n_, k_;

 public:
  StoredStack a, b, out, bias, peaks, factor;
};

// A copy of host bytes in a device's memory.
class OnDevice {
 public:
  OnDevice(const void* bytes, std::size_t count, Stream stream)
      : stream_(stream), memory_(std::max<std::size_t>(count, 1), stream), count_(count) {
    write(bytes);
  }
  OnDevice(const StoredStack& stack, Stream stream)
      : OnDevice(stack.bytes().data(), stack.bytes().size(), stream) {}
  void write(const void* bytes) const {
    copy(memory_.data(), memory_.device(), bytes, Device::cpu(), count_, stream_);
    synchronize(stream_);
  }
  std::vector<std::byte> read() const {
    std::vector<std::byte> bytes(count_);
    copy(bytes.data(), Device::cpu(), memory_.data(), memory_.device(), count_, stream_);
    synchronize(stream_);
    return bytes;
  }
  const Buffer& buffer() const { return memory_; }

 private:
  Stream stream_;
  Buffer memory_;
  std::size_t count_;
};

// The sizes, of 32 or 64 bits, in host memory and on the device, where they are poisoned until a
// kernel is about to run.
class StoredSizes {
 public:
  StoredSizes(const std::vector<std::int64_t>& sizes, int bits, SizesIn where, Stream stream)
      : wide_(sizes), narrow_(sizes.begin(), sizes.end()), bits_(bits), where_(where) {
    const std::vector<std::byte> nothing(bytes(), std::byte{0xff});
    memory_.emplace(nothing.data(), nothing.size(), stream);
  }
  GroupIndices indices() const {
    if (where_ == SizesIn::host_memory)
      return bits_ == 64 ? GroupIndices(std::span(wide_)) : GroupIndices(std::span(narrow_));
    const Buffer& buffer = memory_->buffer();
    const auto count = static_cast<std::int64_t>(wide_.size());
    return bits_ == 64 ? GroupIndices(static_cast<const std::int64_t*>(buffer.data()), count,
                                      buffer.device())
                       : GroupIndices(static_cast<const std::int32_t*>(buffer.data()), count,
                                      buffer.device());
  }
  void put() const {
    memory_->write(bits_ == 64 ? static_cast<const void*>(wide_.data()) : narrow_.data());
  }

 private:
  std::size_t bytes() const { return wide_.size() * static_cast<std::size_t>(bits_ / 8); }

  std::vector<std::int64_t> wide_;
  std::vector<std::int32_t> narrow_;
  int bits_;
  SizesIn where_;
  std::optional<OnDevice> memory_ = std::nullopt;
};

GemmOptions options_of(const GroupCase& groups, const std::string& family, const Tensor& out,
                       const Tensor& bias, const Tensor& factor, const Tensor& peak) {
  GemmOptions options;
  // On tensor cores float32 is multiplied as tf32, in which these operands are exact.
  if (groups.dtype == DType::float32 && family.starts_with("sm")) options.math = Math::tf32;
  if (groups.beta != 0) {
    options.c = out;
    options.beta = groups.beta;
  }
  if (groups.has_program)
    options.epilogue = EpilogueArguments("D = relu(accum + bias) * factor; peak = max(D)",
                                         {{"bias", bias}, {"factor", factor}, {"peak", peak}});
  return options;
}

std::string refusal_of(const GemmArguments& arguments, const std::string& family) {
  for (const Reason& reason : explain(arguments).reasons)
    if (reason.family == family && !reason.failed.empty()) return reason.failed;
  return {};
}

// The best kernel of each schedule.
std::vector<Kernel> best_kernels(const GemmArguments& arguments, const std::string& family) {
  std::set<std::string, std::less<>> seen;
  std::vector<Kernel> kernels;
  for (const Kernel& kernel : get_kernels(arguments))
    if (kernel.family().name() == family &&
        seen.emplace(kernel.metadata().design_value("schedule")).second)
      kernels.push_back(kernel);
  return kernels;
}

}  // namespace

std::string to_string(const GroupCase& groups) {
  return fmt::format("{} ragged={} {}x{}x{} groups of {} {}", name(groups.dtype),
                     name(groups.ragged), groups.m, groups.n, groups.k,
                     fmt::join(groups.counts, ","), name(groups.form));
}

GroupTrialResult try_groups(const GroupCase& groups, const std::string& family, Device device,
                            SizesIn where) {
  const OwnedStream own(device);
  const Stream stream = own.get();
  const GroupOperands host(groups);
  const OnDevice a(host.a, stream), b(host.b, stream), out(host.out, stream),
      bias(host.bias, stream), factor(host.factor, stream), peaks(host.peaks, stream);
  const StoredSizes sizes(host.sizes(), groups.bits, where, stream);
  const Tensor result = host.out.view(out.buffer());
  const GroupedGemmArguments arguments(
      host.a.view(a.buffer()), host.b.view(b.buffer()), result, DType::float32,
      {.sizes = sizes.indices(),
       .form = groups.form,
       .ragged = groups.ragged,
       .alignment = groups.alignment,
       .expected = groups.expected},
      options_of(groups, family, result, host.bias.view(bias.buffer()),
                 host.factor.view(factor.buffer()), host.peaks.view(peaks.buffer())));
  const std::vector<Kernel> kernels = best_kernels(arguments, family);
  if (kernels.empty()) return {.refusal = refusal_of(arguments, family)};
  sizes.put();
  for (const Kernel& kernel : kernels) {
    out.write(host.out.bytes().data());
    peaks.write(host.peaks.bytes().data());
    kernel.run(arguments, {.stream = stream});
    std::string failure = host.find_failure(out.read());
    if (failure.empty() && groups.has_program) failure = host.find_wrong_peak(peaks.read());
    if (!failure.empty()) return {.kernels = 1, .failure = kernel.name() + ": " + failure};
  }
  return {.kernels = static_cast<int>(kernels.size())};
}

}  // namespace gemmery::tests
