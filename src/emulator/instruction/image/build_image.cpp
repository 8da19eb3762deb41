// SPDX-License-Identifier: Apache-2.0
// The image of an entry: its functions in sequence, each instruction as an operation.
#include "emulator/instruction/image/build_image.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include <gemmery/error.hpp>

#include "emulator/instruction/control/call_frame.hpp"
#include "emulator/instruction/decode.hpp"
#include "emulator/instruction/image/call_graph.hpp"
#include "emulator/instruction/image/constant_pool.hpp"
#include "emulator/instruction/image/function_address.hpp"
#include "emulator/instruction/image/register_layout.hpp"
#include "emulator/instruction/image/variable_layout.hpp"

namespace gemmery::emulator {
namespace {

// The instruction that follows the last one of a function.
const Instruction& end_of(const Function& function) {
  const auto make = [](const char* opcode) {
    Instruction instruction;
    instruction.opcode = opcode;
    return instruction;
  };
  static const Instruction leave = make("exit");
  static const Instruction go_back = make("ret");
  return function.is_entry ? leave : go_back;
}

// The bits of an immediate as a value of the type.
std::uint64_t immediate_bits(const Operand& operand, ScalarType type) {
  std::uint64_t bits = operand.bits;
  const int width = bits_of(type);
  if (operand.is_double_immediate && is_float(type) && width == 32)
    bits = std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
  else if (operand.is_float_immediate && !operand.is_double_immediate && type == ScalarType::f64)
    bits = std::bit_cast<std::uint64_t>(
        static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits))));
  return width == 0 || width >= 64 ? bits : bits & ((std::uint64_t{1} << width) - 1);
}

// PTX ISA, "Operand Size Exceeding Instruction-Type Size".
bool takes_wider_registers(const Instruction& instruction) noexcept {
  constexpr std::array<std::string_view, 4> opcodes{"ld", "ldu", "st", "cvt"};
  return std::ranges::find(opcodes, instruction.opcode) != opcodes.end();
}

void note(std::vector<RegisterIndex>& list, RegisterIndex reg) {
  if (std::ranges::find(list, reg) == list.end()) list.push_back(reg);
}

class ImageBuilder final : public DecodeContext {
 public:
  ImageBuilder(std::shared_ptr<const Program> program, const Function& entry,
               const ModuleVariables& variables)
      : program_(std::move(program)),
        targets_(*program_),
        graph_(call_graph(*program_, entry, targets_)),
        variables_(*program_, graph_, variables, *image_),
        registers_(graph_) {
    image_->program = program_;
    image_->entry = &entry;
    image_->name = entry.name;
    place_functions();
  }

  std::shared_ptr<const KernelImage> build() && {
    for (const Function* const function : graph_.functions) decode_function(*function);
    std::move(constants_).move_into(*image_);
    std::move(registers_).move_into(*image_);
    return std::move(image_);
  }

  // --- DecodeContext ---------------------------------------------------------------------------
  std::size_t add_source(Operation& operation, const Operand& operand, ScalarType type) override {
    const OperandSlot slot = source_slot(operand, type);
    if (slot.reg != no_register) note(operation.reads, slot.reg);
    return add_slot(operation, slot);
  }

  std::size_t add_destination(Operation& operation, const Operand& operand,
                              ScalarType type) override {
    const OperandSlot slot = destination_slot(operand, type);
    note(operation.writes, slot.reg);
    return add_slot(operation, slot);
  }

  OperandSlot source_slot(const Operand& operand, ScalarType type) override {
    switch (operand.kind) {
      case Operand::Kind::reg:
        return register_slot(operand.reg, type);
      case Operand::Kind::immediate:
        if (type == ScalarType::pred)
          return constant_slot(constants_.add_predicate(operand.bits != 0));
        return constant_slot(constants_.add(immediate_bits(operand, type), lane_bytes_of(type)));
      case Operand::Kind::symbol:
        return symbol_slot(operand.text, operand.offset, type);
      case Operand::Kind::special:
        refuse(*current_, "special registers are read by mov only");
      default:
        refuse(*current_, "this operand must be a register, an immediate or a symbol");
    }
  }

  OperandSlot destination_slot(const Operand& operand, ScalarType type) override {
    if (operand.kind == Operand::Kind::sink)
      return registers_.slot(type == ScalarType::pred ? registers_.predicate_sink()
                                                      : registers_.value_sink());
    if (operand.kind != Operand::Kind::reg) refuse(*current_, "a destination must be a register");
    return register_slot(operand.reg, type);
  }

  std::size_t add_address(Operation& operation, const Operand& operand, bool* is_64_bit) override {
    if (operand.kind != Operand::Kind::address)
      refuse(*current_, "this operand must be an address in brackets");
    operation.immediate = static_cast<std::uint64_t>(operand.offset);
    *is_64_bit = true;
    if (operand.reg != no_register) {
      const ScalarType type = register_type(operand.reg);
      *is_64_bit = bits_of(type) == 64;
      if (bits_of(type) != 32 && bits_of(type) != 64)
        refuse(*current_, "an address must be a register of 32 or 64 bits");
      Operand base = operand;
      base.kind = Operand::Kind::reg;
      return add_source(operation, base, type);
    }
    if (operand.text.empty()) return add_slot(operation, constant_slot(constants_.add(0, 8)));
    Space space{};
    address_of(operand.text, &space);
    *is_64_bit = space == Space::global || space == Space::constant || is_in_frame(operand.text);
    return add_slot(operation,
                    symbol_slot(operand.text, 0, *is_64_bit ? ScalarType::b64 : ScalarType::b32));
  }

  std::uint64_t address_of(std::string_view symbol, Space* space) override {
    const auto place = variables_.find(*function_, symbol);
    const Function* const function = place ? nullptr : program_->find_function(symbol);
    if (function != nullptr && !function->is_entry) {
      *space = Space::generic;
      return address_of_function(*program_, *function);
    }
    if (!place) refuse(*current_, std::string(symbol) + " is not a variable that has an address");
    *space = place->space;
    return place->address;
  }

  std::uint32_t label(std::string_view name) override {
    const auto found = function_->labels.find(std::string(name));
    if (found == function_->labels.end())
      refuse(*current_, std::string(name) + " is not a label of this function");
    return place_of(*function_).pc + found->second;
  }

  ScalarType register_type(RegisterIndex reg) override { return function_->registers[reg].type; }
  const Function& function() const override { return *function_; }

  const FunctionPlace* own_place() const override { return &place_of(*function_); }

  std::vector<CallTarget> call_targets(const Instruction& call) override {
    std::vector<CallTarget> found;
    for (const Function* const callee : targets_.of(*function_, call))
      found.push_back({&place_of(*callee), graph_.may_return_to(*function_, *callee)});
    return found;
  }

  void require_ordered_grid() override { image_->needs_ordered_grid = true; }
  void require_reserved_shared() override { image_->shared_begin = shared_runtime_offset; }
  void require_grid_workspace() override { image_->names_grid_workspace = true; }

  [[noreturn]] void refuse(const Instruction& instruction, std::string_view why) override {
    refuse_instruction(instruction, why);
  }

 private:
  void place_functions() {
    std::size_t pc = 0;
    for (const Function* const function : graph_.functions) {
      FunctionPlace& place = function_places_[function];
      place.pc = static_cast<std::uint32_t>(pc);
      pc += function->code.size() + 1;  // 1 for the end
      if (function->is_entry) continue;
      place.address = address_of_function(*program_, *function);
      place.return_address = registers_.slot(registers_.return_address(*function));
      for (const Variable& variable : function->parameters)
        place.parameters.push_back(variables_.local_block(*function, variable));
      for (const Variable& variable : function->results)
        place.results.push_back(variables_.local_block(*function, variable));
      if (graph_.cycle_of.contains(function)) place.frame = make_frame(*function, place);
    }
    image_->code.reserve(pc);
    image_->entry_pc = place_of(*graph_.functions.front()).pc;
  }

  std::shared_ptr<const CallFrame> make_frame(const Function& function,
                                              const FunctionPlace& place) const {
    auto frame = std::make_shared<CallFrame>();
    for (const RegisterIndex reg : registers_.registers_of(function)) {
      const ScalarType type = registers_.type(reg);
      frame->registers.push_back(
          {registers_.slot(reg), type == ScalarType::pred ? 0 : lane_bytes_of(type)});
    }
    for (const auto* list : {&place.parameters, &place.results})
      frame->blocks.insert(frame->blocks.end(), list->begin(), list->end());
    for (const Variable& variable : function.variables) {
      if (variable.space == Space::param)
        frame->blocks.push_back(variables_.local_block(function, variable));
      if (variable.space != Space::local) continue;
      frame->arrays.push_back({registers_.slot(registers_.array_address(function, variable.name)),
                               variables_.local_block(function, variable).offset});
    }
    frame->array_bytes = variables_.array_bytes(function);
    return frame;
  }

  bool is_in_frame(std::string_view symbol) const {
    return registers_.array_address(*function_, symbol) != no_register;
  }

  const FunctionPlace& place_of(const Function& function) const {
    return function_places_.at(&function);
  }

  void decode_function(const Function& function) {
    function_ = &function;
    for (const Instruction& instruction : function.code) decode_instruction(instruction);
    decode_instruction(end_of(function));
  }

  void decode_instruction(const Instruction& instruction) {
    current_ = &instruction;
    Operation& operation = image_->code.emplace_back();
    operation.pc = static_cast<std::uint32_t>(image_->code.size() - 1);
    operation.text = &instruction;
    const DecodeRow* const row = find_decoder(instruction.opcode);
    if (row == nullptr) refuse(instruction, "no such instruction is known");
    row->decode(*this, instruction, operation);
    if (instruction.guard != no_register) add_guard(operation, instruction);
  }

  void add_guard(Operation& operation, const Instruction& instruction) {
    const OperandSlot slot = register_slot(instruction.guard, ScalarType::pred);
    operation.has_guard = true;
    operation.is_guard_negated = instruction.is_guard_negated;
    operation.guard_offset = slot.offset;
    note(operation.reads, slot.reg);
  }

  std::size_t add_slot(Operation& operation, const OperandSlot& slot) {
    if (operation.slot_count == max_slots) refuse(*current_, "too many operands");
    operation.slot[operation.slot_count] = slot;
    return operation.slot_count++;
  }

  static OperandSlot constant_slot(std::uint32_t offset) {
    return {.offset = offset, .is_constant = true, .reg = no_register};
  }

  // Slots have the width of the instruction's type: a handler reads that many bytes.
  OperandSlot register_slot(RegisterIndex reg, ScalarType type) {
    const ScalarType own = register_type(reg);
    if ((own == ScalarType::pred) != (type == ScalarType::pred) && type != ScalarType::none)
      refuse(*current_, function_->registers[reg].name + " is " +
                            (own == ScalarType::pred ? "a predicate" : "not a predicate"));
    if (lane_bytes_of(own) < lane_bytes_of(type))
      refuse(*current_, function_->registers[reg].name + " has fewer bits than the instruction");
    if (lane_bytes_of(own) > lane_bytes_of(type) && type != ScalarType::none &&
        !takes_wider_registers(*current_))
      refuse(*current_, function_->registers[reg].name + " has more bits than the instruction");
    return registers_.slot(registers_.index(*function_, reg));
  }

  // The address of a local array of a function that may call itself.
  OperandSlot frame_slot(std::string_view symbol, std::int64_t offset, ScalarType type) {
    if (offset != 0 || bits_of(type) != 64)
      refuse(*current_,
             "a place in a local array of a function that may call itself: expected its "
             "address in 64 bits");
    return registers_.slot(registers_.array_address(*function_, symbol));
  }

  OperandSlot symbol_slot(std::string_view symbol, std::int64_t offset, ScalarType type) {
    if (is_in_frame(symbol)) return frame_slot(symbol, offset, type);
    Space space{};
    const std::uint64_t address = address_of(symbol, &space) + static_cast<std::uint64_t>(offset);
    const std::uint32_t lane_bytes = lane_bytes_of(type) == 4 && bits_of(type) == 32 ? 4 : 8;
    if (lane_bytes_of(type) > lane_bytes) refuse(*current_, "an address has at most 64 bits");
    if (bits_of(type) != 0 && bits_of(type) < 32)
      refuse(*current_, "an address has at least 32 bits");
    return constant_slot(space == Space::shared ? constants_.add_shared_address(address, lane_bytes)
                                                : constants_.add(address, lane_bytes));
  }

  std::shared_ptr<KernelImage> image_ = std::make_shared<KernelImage>();
  std::shared_ptr<const Program> program_;
  CallTargets targets_;
  CallGraph graph_;
  VariableLayout variables_;
  RegisterLayout registers_;
  ConstantPool constants_;
  std::map<const Function*, FunctionPlace> function_places_;
  const Function* function_ = nullptr;
  const Instruction* current_ = nullptr;
};

std::string list_entries(const Program& program) {
  std::string names;
  for (const Function& function : program.functions)
    if (function.is_entry) names.append(names.empty() ? "" : ", ").append(function.name);
  return names.empty() ? "none" : names;
}

}  // namespace

std::shared_ptr<const KernelImage> build_image(std::shared_ptr<const Program> program,
                                               std::string_view entry,
                                               const ModuleVariables& variables) {
  const Function* const function = program->find_function(entry);
  if (function == nullptr || !function->is_entry || !function->has_body)
    throw Error({.kind = ErrorKind::invalid_argument,
                 .operand = "entry",
                 .expected = "one of " + list_entries(*program),
                 .got = std::string(entry)});
  return ImageBuilder(std::move(program), *function, variables).build();
}

}  // namespace gemmery::emulator
