// SPDX-License-Identifier: Apache-2.0
// From an instruction's text to an Operation: a table from opcode to decoder.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "emulator/machine/kernel_image.hpp"
#include "emulator/machine/operation.hpp"

namespace gemmery::emulator {

struct CallFrame;  // control/call_frame.hpp

// Where the variables of a function lie. Every variable has a static place: parameters and results
// in local memory, the return address in a hidden register.
struct FunctionPlace {
  struct Block {
    std::uint32_t offset = 0;  // in local memory
    std::uint32_t bytes = 0;
  };
  std::uint32_t pc = 0;
  OperandSlot return_address;  // pcs, 32 bits a lane
  std::vector<Block> parameters;
  std::vector<Block> results;
  std::uint64_t address = 0;               // for calls through a register
  std::shared_ptr<const CallFrame> frame;  // of functions that may call themselves
};

// What decoders need while an image is built. The register indices of operands count within the
// function being decoded; those of slots, `reads` and `writes` count within the image.
class DecodeContext {
 public:
  virtual ~DecodeContext() = default;

  // Appends a register, immediate or address of a symbol to the operation as a source slot, adds it
  // to `reads`, and returns its slot number. An immediate has the width of `type`, which says how
  // it is encoded: 0f… as f32 bits, 0d… as f64 bits, integers truncated.
  virtual std::size_t add_source(Operation& operation, const Operand& operand, ScalarType type) = 0;
  // Appends a register as a destination slot and adds it to `writes`; the sink `_` gets a scratch
  // register.
  virtual std::size_t add_destination(Operation& operation, const Operand& operand,
                                      ScalarType type) = 0;
  // A slot that is neither appended nor listed: for long register lists, which a detail keeps.
  virtual OperandSlot source_slot(const Operand& operand, ScalarType type) = 0;
  virtual OperandSlot destination_slot(const Operand& operand, ScalarType type) = 0;
  // Appends the base of [base + offset] as a source slot of 32 or 64 bits (the width of its
  // register; symbols become constants) and puts the offset in `operation.immediate`. Sets
  // `*is_64_bit`.
  virtual std::size_t add_address(Operation& operation, const Operand& operand,
                                  bool* is_64_bit) = 0;
  // Address of a variable or parameter in its own space: shared offset (including the reserved
  // part), local offset, parameter offset, or global address. `param` variables of calls, and
  // parameters and results of functions that are not entries, lie in local memory; `*space` is then
  // set to it.
  virtual std::uint64_t address_of(std::string_view symbol, Space* space) = 0;
  virtual std::uint32_t label(std::string_view name) = 0;  // pc
  virtual ScalarType register_type(RegisterIndex reg) = 0;
  virtual const Function& function() const = 0;
  // For ret: the place of `function()`, which is not an entry.
  virtual const FunctionPlace* own_place() const { return nullptr; }
  // The functions that a call may enter; `leads_back`: from which it may enter `function()` again.
  struct CallTarget {
    const FunctionPlace* place = nullptr;
    bool leads_back = false;
  };
  virtual std::vector<CallTarget> call_targets(const Instruction&) { return {}; }
  // Marks the image (see KernelImage::needs_ordered_grid).
  virtual void require_ordered_grid() = 0;
  // Lets the kernel use the shared memory from shared_runtime_offset on.
  virtual void require_reserved_shared() {}
  virtual void require_grid_workspace() {}
  // Throws Error (unsupported): "PTX line 88: mma.sync.aligned.m8n8k4…: <why>".
  [[noreturn]] virtual void refuse(const Instruction& instruction, std::string_view why) = 0;
};

// Fills in everything but pc, guard and text. A decoder must understand every modifier;
// `context.refuse` refuses forms that are not known exactly.
using Decode = void (*)(DecodeContext& context, const Instruction& instruction,
                        Operation& operation);

struct DecodeRow {
  std::string_view opcode;
  Decode decode;
};

// Each file of this folder has a table of rows; decode.cpp joins them. No opcode is in two tables:
// arithmetic.cpp has those that integers and floats share, and dispatches by type.
using DecodeRows = std::span<const DecodeRow>;
DecodeRows
arithmetic_rows();  // add sub mul mad fma div rem abs neg min max sqrt … and all bit operations
DecodeRows convert_rows();  // cvt mov selp slct set setp prmt szext … (mov of special registers:
                            // special.cpp, by is_special)
DecodeRows control_rows();  // bra brx call ret exit trap brkpt nanosleep pmevent
DecodeRows memory_rows();   // ld ldu st prefetch prefetchu cvta isspacep mapa getctarank
                            // createpolicy applypriority discard
DecodeRows atomic_rows();   // atom red
DecodeRows copy_rows();     // cp
DecodeRows barrier_rows();  // bar barrier fence membar mbarrier griddepcontrol setmaxnreg
DecodeRows warp_rows();     // shfl vote match redux activemask elect
DecodeRows matrix_rows();   // ldmatrix stmatrix movmatrix mma
DecodeRows wgmma_rows();    // wgmma
DecodeRows wmma_rows();     // wmma
// The instructions of sm_100, such as tcgen05, get a file and a line here.

const DecodeRow* find_decoder(std::string_view opcode) noexcept;

}  // namespace gemmery::emulator
