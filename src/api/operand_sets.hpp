// SPDX-License-Identifier: Apache-2.0
// Sets of operands through which a measurement rotates, filled with random numbers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <gemmery/arguments.hpp>
#include <gemmery/buffer.hpp>
#include <gemmery/problem.hpp>
#include <gemmery/stream.hpp>

#include "api/bound_problem.hpp"
#include "api/companion_operands.hpp"
#include "api/conv_operands.hpp"
#include "api/drawn_groups.hpp"
#include "api/epilogue_operands.hpp"
#include "api/guarded_operand.hpp"
#include "operation/groups.hpp"
#include "operation/matrix.hpp"

namespace gemmery::api {

inline constexpr std::size_t pattern_bytes =
    8u << 20;  // random numbers, generated once; operands hold shifted copies of them

// Random numbers of one type in host memory, and their copy on the device.
class NumberPattern {
 public:
  NumberPattern(DType dtype, std::uint64_t seed, std::size_t bytes, Stream stream) : dtype_(dtype) {
    const auto elements = static_cast<std::int64_t>(bytes * 8) / bit_width(dtype) /
                          whole_elements(dtype) * whole_elements(dtype);
    GuardedOperand numbers({.type = {.dtype = dtype, .row_stride = 0, .column_stride = 1},
                            .extents = {1, 1, elements},
                            .guard_bands = false});
    numbers.fill({.fill = Fill::normal,
                  .seed = seed,
                  .least = is_signed(dtype) ? (is_packed(dtype) ? -7 : -127) : 0,
                  .most = is_packed(dtype) ? 7 : 127,
                  .is_integer = is_integer(dtype)});
    bytes_ = static_cast<std::size_t>(storage_bytes(dtype, elements));
    buffer_ = Buffer(std::max<std::size_t>(bytes_, 1), stream);
    copy(buffer_.data(), stream.device(), numbers.here().data(), Device::cpu(), bytes_, stream);
    synchronize(stream);
  }

  DType dtype() const { return dtype_; }

  // Fills `bytes` at `destination`, starting `shift` bytes into the pattern.
  void spread(void* destination, std::size_t bytes, std::size_t shift, Stream stream) const {
    const Device device = stream.device();
    shift = bytes_ == 0 ? 0 : shift % bytes_ / 16 * 16;
    for (std::size_t done = 0; done < bytes;) {
      const std::size_t piece = std::min(bytes - done, bytes_ - shift);
      copy(static_cast<std::byte*>(destination) + done, device,
           static_cast<const std::byte*>(buffer_.data()) + shift, device, piece, stream);
      done += piece;
      shift = 0;
    }
  }

 private:
  static bool is_signed(DType dtype) { return facts(dtype).kind != DTypeKind::unsigned_integer; }

  DType dtype_;
  std::size_t bytes_ = 0;
  Buffer buffer_;
};

// An operand's place in memory of its own: the bytes, and the offset of its element 0.
struct Placement {
  MatrixType type;
  Extents3 extents;
  MatrixStarts starts;
  std::size_t bytes = 0;  // of the elements, which may be any numbers
  std::size_t origin = 0;
  std::size_t array = 0;  // the offset of the pointers, after the elements

  Placement(const MatrixType& matrix, const Extents3& sizes)
      : type(matrix), extents(sizes), starts(matrix, sizes) {
    // A multiple of the stated alignment and of no larger one.
    const std::size_t alignment = type.alignment;
    const auto least = static_cast<std::size_t>(storage_bytes(type.dtype, starts.below()));
    origin = (least + 255) / 256 * 256 + (alignment < 16 ? alignment : 0);
    bytes = origin + static_cast<std::size_t>(
                         storage_bytes(type.dtype, std::max<std::int64_t>(starts.above() + 1, 1)));
    array = (bytes + 255) / 256 * 256;
  }

  std::size_t all_bytes() const {
    if (!starts.is_pointed()) return bytes;
    return array + static_cast<std::size_t>(extents.batch) * sizeof(void*);
  }

  // Writes the pointers of an operand that has them.
  void put_pointers(void* base, Stream stream) const {
    const auto pointers = starts.pointers(static_cast<const std::byte*>(base) + origin);
    if (pointers.empty()) return;
    copy(static_cast<std::byte*>(base) + array, stream.device(), pointers.data(), Device::cpu(),
         pointers.size() * sizeof(void*), stream);
    synchronize(stream);
  }

  Tensor view(const void* base, Device device) const {
    const auto* const data =
        static_cast<const std::byte*>(base) + (starts.is_pointed() ? array : origin);
    return operation::make_view(data, type, {extents.batch, extents.rows, extents.columns}, device);
  }
};

inline Extents3 extents3(const operation::MatrixExtents& extents) {
  return {extents.batch, extents.rows, extents.columns};
}

struct Placements {
  Placement a, b, out;
  std::optional<Placement> c;
  std::vector<Placement> epilogue, companions;

  explicit Placements(const GemmProblem& p)
      : a(memory_of_a(p).type, memory_of_a(p).extents),
        b(memory_of_b(p).type, memory_of_b(p).extents),
        out(p.out, extents3(operation::product_extents(p).out)) {
    if (p.c) c.emplace(*p.c, extents3(operation::addend_extents(p, *p.c)));
    for (const EpilogueTensor& tensor : epilogue_tensors(p))
      epilogue.emplace_back(tensor.type, tensor.extents);
    for (const CompanionTensor& companion : companion_tensors(p))
      companions.emplace_back(companion.type.values, companion.extents);
  }
  std::size_t bytes() const {
    std::size_t sum = a.all_bytes() + b.all_bytes() + out.all_bytes() + (c ? c->all_bytes() : 0);
    for (const Placement& place : epilogue) sum += place.all_bytes();
    for (const Placement& place : companions) sum += place.all_bytes();
    return sum;
  }
};

// One set of operands.
struct OperandSet {
  Buffer a, b, out, c;
  std::vector<Buffer> epilogue, companions;

  OperandSet(const Placements& places, Stream stream)
      : a(places.a.all_bytes(), stream),
        b(places.b.all_bytes(), stream),
        out(places.out.all_bytes(), stream),
        c(places.c ? Buffer(places.c->all_bytes(), stream) : Buffer()) {
    for (const Placement& place : places.epilogue) epilogue.emplace_back(place.all_bytes(), stream);
    for (const Placement& place : places.companions)
      companions.emplace_back(place.all_bytes(), stream);
    put_pointers(places, stream);
  }

 private:
  void put_pointers(const Placements& places, Stream stream) {
    places.a.put_pointers(a.data(), stream);
    places.b.put_pointers(b.data(), stream);
    places.out.put_pointers(out.data(), stream);
    if (places.c) places.c->put_pointers(c.data(), stream);
    for (std::size_t i = 0; i < epilogue.size(); ++i)
      places.epilogue[i].put_pointers(epilogue[i].data(), stream);
  }
};

class OperandSets {
 public:
  OperandSets(const ProblemLine& line, int count, std::uint64_t seed, Stream stream)
      : line_(line), places_(line.problem), stream_(stream) {
    const GemmProblem& p = line.problem;
    const NumberPattern& a = pattern(p.a.dtype, seed);
    const NumberPattern& b = pattern(p.b.dtype, seed);
    const NumberPattern* const c = p.c ? &pattern(p.c->dtype, seed) : nullptr;
    std::uint64_t next = 0;
    for (int index = 0; index < count; ++index) {
      OperandSet& set = sets_.emplace_back(places_, stream);
      a.spread(set.a.data(), places_.a.bytes, random_bits(seed, next++), stream);
      b.spread(set.b.data(), places_.b.bytes, random_bits(seed, next++), stream);
      if (c != nullptr)
        c->spread(set.c.data(), places_.c->bytes, random_bits(seed, next++), stream);
      for (std::size_t i = 0; i < set.epilogue.size(); ++i)
        pattern(places_.epilogue[i].type.dtype, seed)
            .spread(set.epilogue[i].data(), places_.epilogue[i].bytes, random_bits(seed, next++),
                    stream);
      for (std::size_t i = 0; i < set.companions.size(); ++i)
        pattern(places_.companions[i].type.dtype, seed)
            .spread(set.companions[i].data(), places_.companions[i].bytes,
                    random_bits(seed, next++), stream);
    }
    put_groups();
    synchronize(stream);
    for (const OperandSet& set : sets_) arguments_.push_back(make_arguments(set));
  }

  const std::vector<GemmArguments>& arguments() const { return arguments_; }

 private:
  const NumberPattern& pattern(DType dtype, std::uint64_t seed) {
    for (const auto& known : patterns_)
      if (known->dtype() == dtype) return *known;
    const std::size_t bytes = std::min(pattern_bytes, std::max(places_.bytes(), std::size_t{4096}));
    patterns_.push_back(
        std::make_unique<NumberPattern>(dtype, seed + patterns_.size(), bytes, stream_));
    return *patterns_.back();
  }

  GemmArguments make_arguments(const OperandSet& set) const {
    const Device device = stream_.device();
    std::optional<Tensor> c;
    if (places_.c) c = places_.c->view(set.c.data(), device);
    std::vector<Tensor> epilogue;
    for (std::size_t i = 0; i < set.epilogue.size(); ++i)
      epilogue.push_back(places_.epilogue[i].view(set.epilogue[i].data(), device));
    std::vector<Tensor> companions;
    for (std::size_t i = 0; i < set.companions.size(); ++i)
      companions.push_back(places_.companions[i].view(set.companions[i].data(), device));
    return bind_problem(
        line_,
        {places_.a.view(set.a.data(), device), places_.b.view(set.b.data(), device),
         places_.out.view(set.out.data(), device), c, epilogue, companions},
        groups_ ? BoundGroups{&*groups_, bound_sizes(), gather_.data(), scatter_.data(), stream_}
                : BoundGroups{});
  }

  GroupIndices bound_sizes() const {
    if (line_.problem.groups->are_on_host) return groups_->here();
    return groups_->at(sizes_.data(), stream_.device());
  }

  // Groups of equal sizes, once for all sets.
  void put_groups() {
    if (!line_.problem.groups) return;
    groups_ = DrawnGroups::even(line_.problem);
    sizes_ = put(groups_->bytes());
    gather_ = put(groups_->gather_bytes());
    scatter_ = put(groups_->scatter_bytes());
  }
  Buffer put(std::span<const std::byte> bytes) const {
    if (bytes.empty()) return {};
    Buffer buffer(bytes.size(), stream_);
    copy(buffer.data(), stream_.device(), bytes.data(), Device::cpu(), bytes.size(), stream_);
    return buffer;
  }

  const ProblemLine& line_;
  Placements places_;
  Stream stream_;
  std::vector<std::unique_ptr<NumberPattern>> patterns_;
  std::vector<OperandSet> sets_;
  std::optional<DrawnGroups> groups_;
  Buffer sizes_, gather_, scatter_;
  std::vector<GemmArguments> arguments_;
};

}  // namespace gemmery::api
