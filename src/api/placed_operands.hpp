// SPDX-License-Identifier: Apache-2.0
// A trial's operands, sizes of groups and workspace in the memory of the kernel's device.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include <gemmery/buffer.hpp>
#include <gemmery/stream.hpp>

#include "api/bound_problem.hpp"
#include "api/trial.hpp"
#include "emulator/device.hpp"

namespace gemmery::api {

// An image in the device's memory: a copy of it, or the image itself on the CPU.
class PlacedOperand {
 public:
  PlacedOperand(GuardedOperand& operand, Stream stream)
      : operand_(&operand), stream_(stream), before_(operand.snapshot()) {
    if (!stream.device().is_cpu()) {
      copy_ = Buffer(operand.bytes().size(), stream);
      expected_ = operand.pointers_at(copy_.data());
    } else {
      expected_ = operand.pointers_at(operand.bytes().data());
    }
    if (!expected_.empty() && !stream.device().is_cpu())
      pointers_ = Buffer(expected_.size() * sizeof(void*), stream);
    put();
  }

  Tensor view() const {
    if (stream_.device().is_cpu()) return operand_->here();
    return operand_->at(copy_.data(), pointers_.data(), stream_.device());
  }
  // Copies the initial image to the device.
  void put() {
    if (stream_.device().is_cpu()) {
      std::memcpy(operand_->bytes().data(), before_.data(), before_.size());
    } else {
      copy(copy_.data(), stream_.device(), before_.data(), Device::cpu(), before_.size(), stream_);
      if (!expected_.empty())
        copy(pointers_.data(), stream_.device(), expected_.data(), Device::cpu(),
             expected_.size() * sizeof(void*), stream_);
    }
  }
  void fetch() {
    if (stream_.device().is_cpu()) return;
    copy(operand_->bytes().data(), Device::cpu(), copy_.data(), stream_.device(), before_.size(),
         stream_);
  }
  // Bytes of the copy whose value was never computed, such as the content of an unwritten register.
  // Known only on emulated devices.
  std::int64_t unwritten() const {
    if (stream_.device().type != DeviceType::emulated) return 0;
    emulator::EmulatedDevice& device = emulator::device_at(stream_.device().index);
    const std::lock_guard lock(device.executing);
    return static_cast<std::int64_t>(device.memory.count_unwritten(
        reinterpret_cast<std::uintptr_t>(copy_.data()), before_.size()));
  }
  std::int64_t changes() const { return operand_->count_changes(before_) + pointer_changes(); }
  std::int64_t changes_outside() const {
    return operand_->count_changes_outside(before_) + pointer_changes();
  }

 private:
  // The number of bytes of pointers that have changed; a pointer counts as a whole.
  std::int64_t pointer_changes() const {
    if (expected_.empty()) return 0;
    std::vector<const void*> now(operand_->pointers().begin(), operand_->pointers().end());
    if (!stream_.device().is_cpu()) {
      copy(now.data(), Device::cpu(), pointers_.data(), stream_.device(),
           now.size() * sizeof(void*), stream_);
      synchronize(stream_);
    }
    std::int64_t changes = 0;
    for (std::size_t i = 0; i < now.size(); ++i)
      changes += now[i] == expected_[i] ? 0 : static_cast<std::int64_t>(sizeof(void*));
    return changes;
  }

  GuardedOperand* operand_;
  Stream stream_;
  std::vector<std::byte> before_;
  Buffer copy_;
  std::vector<const void*> expected_;  // the addresses of the copy's matrices, if it has pointers
  Buffer pointers_;                    // the same in the device's memory
};

// Scratch memory filled with NaN, followed by canaries.
class GuardedWorkspace {
 public:
  GuardedWorkspace(std::size_t bytes, Stream stream) : bytes_(bytes), stream_(stream) {
    if (bytes == 0) return;
    buffer_ = Buffer(bytes + guard_bytes, stream);
    gemmery::fill(buffer_.data(), 0xff, bytes, stream);
    gemmery::fill(static_cast<std::byte*>(buffer_.data()) + bytes, canary, guard_bytes, stream);
  }
  Workspace lend() const { return {buffer_.data(), bytes_}; }
  std::int64_t changes() const {
    if (bytes_ == 0) return 0;
    std::vector<std::uint8_t> guard(guard_bytes);
    copy(guard.data(), Device::cpu(), static_cast<const std::byte*>(buffer_.data()) + bytes_,
         stream_.device(), guard_bytes, stream_);
    synchronize(stream_);
    return static_cast<std::int64_t>(guard_bytes) - std::ranges::count(guard, canary);
  }

 private:
  static constexpr std::size_t guard_bytes = 4096;
  static constexpr std::uint8_t canary = 0xc3;
  std::size_t bytes_;
  Stream stream_;
  Buffer buffer_;
};

// Sizes or indices in the kernel's memory. They are written only by `put`, so that a read before
// the work runs is noticed.
class PlacedIndices {
 public:
  PlacedIndices(std::span<const std::byte> drawn, Stream stream) : drawn_(drawn), stream_(stream) {
    if (drawn_.empty()) return;
    copy_ = Buffer(drawn_.size(), stream);
    gemmery::fill(copy_.data(), 0x7f, drawn_.size(), stream);
  }
  const void* data() const { return copy_.data(); }
  void put() {
    if (!drawn_.empty())
      copy(copy_.data(), stream_.device(), drawn_.data(), Device::cpu(), drawn_.size(), stream_);
  }
  std::int64_t changes() const {
    if (drawn_.empty()) return 0;
    std::vector<std::byte> now(drawn_.size());
    copy(now.data(), Device::cpu(), copy_.data(), stream_.device(), now.size(), stream_);
    synchronize(stream_);
    return std::ranges::equal(now, drawn_) ? 0 : static_cast<std::int64_t>(now.size());
  }

 private:
  std::span<const std::byte> drawn_;
  Stream stream_;
  Buffer copy_;
};

class PlacedGroups {
 public:
  PlacedGroups(const TrialOperands& operands, Stream stream)
      : drawn_(operands.groups ? &*operands.groups : nullptr), stream_(stream) {
    if (drawn_ == nullptr) return;
    for (const std::span<const std::byte> bytes :
         {drawn_->bytes(), drawn_->gather_bytes(), drawn_->scatter_bytes()})
      arrays_.emplace_back(bytes, stream);
  }
  BoundGroups bound(const Groups& groups) const {
    return {drawn_,
            groups.are_on_host ? drawn_->here() : drawn_->at(arrays_[0].data(), stream_.device()),
            arrays_[1].data(), arrays_[2].data(), stream_};
  }
  void put() {
    for (PlacedIndices& array : arrays_) array.put();
  }
  std::int64_t changes() const {
    std::int64_t count = 0;
    for (const PlacedIndices& array : arrays_) count += array.changes();
    return count;
  }

 private:
  const DrawnGroups* drawn_;
  Stream stream_;
  std::vector<PlacedIndices> arrays_;  // sizes, gather, scatter
};

// The operands in the kernel's memory.
struct PlacedOperands {
  PlacedOperand a, b, out;
  std::optional<PlacedOperand> c;
  std::vector<PlacedOperand> epilogue_inputs, epilogue_results, companions;
  PlacedGroups groups;

  PlacedOperands(TrialOperands& operands, const GemmProblem& problem, Stream stream)
      : a(operands.a, stream),
        b(operands.b, stream),
        out(operands.out, stream),
        groups(operands, stream) {
    if (operands.c) c.emplace(*operands.c, stream);
    for (GuardedOperand& companion : operands.companions)
      companions.emplace_back(companion, stream);
    const std::vector<EpilogueTensor> tensors = epilogue_tensors(problem);
    for (std::size_t i = 0; i < tensors.size(); ++i)
      (tensors[i].is_result ? epilogue_results : epilogue_inputs)
          .emplace_back(operands.epilogue[i], stream);
  }
  GemmArguments arguments(const ProblemLine& line) const {
    std::optional<Tensor> addend;
    if (line.problem.c) addend = c ? c->view() : out.view();
    std::vector<Tensor> epilogue;
    for (const auto* const some : {&epilogue_inputs, &epilogue_results})
      for (const PlacedOperand& operand : *some) epilogue.push_back(operand.view());
    std::vector<Tensor> scales;
    for (const PlacedOperand& companion : companions) scales.push_back(companion.view());
    return bind_problem(line, {a.view(), b.view(), out.view(), addend, epilogue, scales},
                        line.problem.groups ? groups.bound(*line.problem.groups) : BoundGroups{});
  }
  void fetch() {
    a.fetch();
    b.fetch();
    out.fetch();
    if (c) c->fetch();
    for (PlacedOperand& operand : companions) operand.fetch();
    for (PlacedOperand& operand : epilogue_inputs) operand.fetch();
    for (PlacedOperand& operand : epilogue_results) operand.fetch();
  }
  std::int64_t violations() const {
    std::int64_t count = a.changes() + b.changes() + out.changes_outside() +
                         (c ? c->changes() : 0) + groups.changes();
    for (const PlacedOperand& operand : companions) count += operand.changes();
    for (const PlacedOperand& operand : epilogue_inputs) count += operand.changes();
    for (const PlacedOperand& operand : epilogue_results) count += operand.changes_outside();
    return count;
  }
};

}  // namespace gemmery::api
