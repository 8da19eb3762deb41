// SPDX-License-Identifier: Apache-2.0
// Kernels written as a list of operations, for tests of the machine without parser and decoders.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "emulator/machine/kernel_image.hpp"
#include "emulator/machine/launch.hpp"
#include "emulator/machine/warp.hpp"

namespace gemmery::emulator::tests {

class HandmadeImage {
 public:
  HandmadeImage() {
    image_.name = "handmade";
    program_->text.resize(200);
    program_->files = {"", "handmade.cu"};
  }

  OperandSlot add_register(std::string name, ScalarType type = ScalarType::u32) {
    const std::uint32_t bytes = type == ScalarType::pred ? 4 : 32u * bytes_of_lane(type);
    const std::uint32_t offset = (image_.register_bytes + 63) / 64 * 64;
    image_.register_bytes = offset + bytes;
    image_.register_offset.push_back(offset);
    image_.register_type.push_back(type);
    image_.register_name.push_back(std::move(name));
    return {.offset = offset, .is_constant = false, .reg = image_.register_count++};
  }

  // An operation with its slots in the order of `writes`, then `reads`. PTX line: pc + 1.
  Operation& add(Execute execute, std::vector<OperandSlot> writes = {},
                 std::vector<OperandSlot> reads = {}, std::uint64_t immediate = 0,
                 std::string opcode = "op") {
    Operation& operation = image_.code.emplace_back();
    operation.execute = execute;
    operation.pc = static_cast<std::uint32_t>(image_.code.size() - 1);
    operation.immediate = immediate;
    for (const OperandSlot& slot : writes) {
      operation.slot[operation.slot_count++] = slot;
      operation.writes.push_back(slot.reg);
    }
    for (const OperandSlot& slot : reads) {
      operation.slot[operation.slot_count++] = slot;
      operation.reads.push_back(slot.reg);
    }
    opcodes_.push_back(std::move(opcode));
    return operation;
  }

  static void guard(Operation& operation, const OperandSlot& predicate, bool is_negated = false) {
    operation.has_guard = true;
    operation.guard_offset = predicate.offset;
    operation.is_guard_negated = is_negated;
    operation.reads.push_back(predicate.reg);
  }

  std::uint32_t next_pc() const { return static_cast<std::uint32_t>(image_.code.size()); }
  Operation& at(std::uint32_t pc) { return image_.code[pc]; }
  KernelImage& image() { return image_; }
  Function& entry() { return entry_; }

  std::shared_ptr<const KernelImage> finish() {
    program_->functions.push_back(entry_);
    Function& entry = program_->functions.back();
    entry.code.resize(image_.code.size());
    for (std::size_t pc = 0; pc < image_.code.size(); ++pc) {
      entry.code[pc].opcode = opcodes_[pc];
      entry.code[pc].ptx_line = static_cast<std::uint32_t>(pc + 1);
      entry.code[pc].source = {.file = 1, .line = static_cast<std::uint32_t>(100 + pc)};
      program_->text[pc] = "\t" + opcodes_[pc] + ";";
      image_.code[pc].text = &entry.code[pc];
    }
    image_.program = program_;
    image_.entry = &entry;
    return std::make_shared<const KernelImage>(image_);
  }

 private:
  static std::uint32_t bytes_of_lane(ScalarType type) {
    return static_cast<std::uint32_t>(std::max(4, bytes_of(type)));
  }

  std::shared_ptr<Program> program_ = std::make_shared<Program>();
  Function entry_;
  KernelImage image_;
  std::vector<std::string> opcodes_;
};

}  // namespace gemmery::emulator::tests
