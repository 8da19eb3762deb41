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

// Where a function that is called lies. Functions do not recurse, so everything of one has a static
// place: parameters and results among the local variables, the way back in a hidden register.
struct FunctionPlace {
  struct Block {
    std::uint32_t offset = 0;  // in local memory
    std::uint32_t bytes = 0;
  };
  std::uint32_t pc = 0;
  OperandSlot return_address;  // pcs, 32 bits a lane
  std::vector<Block> parameters;
  std::vector<Block> results;
};

// What decoders ask while an image is built. Register indices of operands are those of the function
// that is decoded; those of slots, `reads` and `writes` are the image's.
class DecodeContext {
 public:
  virtual ~DecodeContext() = default;

  // A register or immediate (of the type's width; `type` says how an immediate is laid out: 0f… as
  // f32 bits, 0d… as f64 bits, integers truncated) or a symbol's address, as a source slot appended
  // to the operation; also noted in `reads`. Returns its slot number.
  virtual std::size_t add_source(Operation& operation, const Operand& operand, ScalarType type) = 0;
  // A register, as a destination slot, noted in `writes`; the sink gets a scratch register.
  virtual std::size_t add_destination(Operation& operation, const Operand& operand,
                                      ScalarType type) = 0;
  // Neither slot nor list: for long register lists, kept in a detail.
  virtual OperandSlot source_slot(const Operand& operand, ScalarType type) = 0;
  virtual OperandSlot destination_slot(const Operand& operand, ScalarType type) = 0;
  // [base + offset]: the base as a source slot of 32 or 64 bits (by its register's width; symbols
  // become constants), the offset in `operation.immediate`. Sets `*is_64_bit`.
  virtual std::size_t add_address(Operation& operation, const Operand& operand,
                                  bool* is_64_bit) = 0;
  // Address in its own space of a variable or parameter: shared offset (with the reserved part),
  // local offset, parameter offset, or global address. `param` variables of calls, and parameters
  // and results of functions that are not entries, lie in local memory, and `*space` says so.
  virtual std::uint64_t address_of(std::string_view symbol, Space* space) = 0;
  virtual std::uint32_t label(std::string_view name) = 0;  // pc
  virtual ScalarType register_type(RegisterIndex reg) = 0;
  virtual const Function& function() const = 0;
  // For call and ret; nullptr: no function of that name has a body.
  virtual const FunctionPlace* find_function_place(std::string_view) const { return nullptr; }
  // Marks the image (see KernelImage::needs_ordered_grid).
  virtual void require_ordered_grid() = 0;
  // Throws Error (unsupported): "PTX line 88: mma.sync.aligned.m8n8k4…: <why>".
  [[noreturn]] virtual void refuse(const Instruction& instruction, std::string_view why) = 0;
};

// Fills in everything but pc, guard and text. Every modifier must be understood or refused: a form
// that is not known exactly is refused by `context.refuse`.
using Decode = void (*)(DecodeContext& context, const Instruction& instruction,
                        Operation& operation);

struct DecodeRow {
  std::string_view opcode;
  Decode decode;
};

// Each file of this folder offers its rows; decode.cpp joins them. No opcode stands in two files:
// arithmetic.cpp takes the names that integers and floats share and dispatches by type.
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
// tcgen05 and the other instructions of sm_100 get a file and a line here.

const DecodeRow* find_decoder(std::string_view opcode) noexcept;

}  // namespace gemmery::emulator
