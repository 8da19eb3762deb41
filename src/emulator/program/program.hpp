// SPDX-License-Identifier: Apache-2.0
// A PTX module as data: variables, functions and instructions as written. The parser resolves names
// and locations; emulator/instruction knows what an instruction does.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/program/scalar_type.hpp"

namespace gemmery::emulator {

// PTX state spaces of variables and accesses. `shared` is shared::cta.
enum class Space : std::uint8_t { generic, global, constant, shared, shared_cluster, local, param };

// The source line of an instruction: the `.loc` in force; with inlining, the innermost one.
struct SourceLine {
  std::uint32_t file = 0;  // index into Program::files; 0 = unknown
  std::uint32_t line = 0;
};

using RegisterIndex = std::uint32_t;  // into Function::registers
inline constexpr RegisterIndex no_register = ~RegisterIndex{0};

struct RegisterDeclaration {
  std::string name;  // "%r17"
  ScalarType type = ScalarType::none;
};

// A variable of the module or of a function.
struct Variable {
  std::string name;
  Space space = Space::global;
  ScalarType type = ScalarType::none;  // the type of its elements
  std::uint32_t alignment = 1;
  std::uint64_t bytes = 0;  // 0 for an extern array without a size (dynamic shared memory)
  bool is_extern = false;
  bool is_managed = false;         // the host accesses it at the same address
  std::vector<std::byte> initial;  // the first bytes; the others are zero (module variables) or
                                   // unwritten (a function's variables)
  // Offsets in `initial` that hold the address of another variable (8 bytes each).
  struct AddressOf {
    std::uint64_t at = 0;
    std::string variable;
    std::int64_t offset = 0;
  };
  std::vector<AddressOf> addresses;
};

struct Operand {
  enum class Kind : std::uint8_t {
    reg,      // %r1            (index in `reg`; `is_negated` for !%p1; `part` for %r1.x of a vector
              // register is not used by NVRTC)
    special,  // %tid.x         (name in `text`)
    immediate,  // 12, 0f3F800000 (`bits`; `is_float_immediate` tells that it was written as a
                // float: 0f = 32 bits, 0d = 64 bits)
    symbol,     // a variable's or parameter's address, or a label or function (name in `text`, +
                // `offset`)
    address,  // [base + offset], base a register (`reg`) or a symbol (`text`) or nothing (absolute)
    list,     // {a, b, c}      (`items`)
    tensor,   // [map, {c0, c1}] or [map, {c0, c1}, ...] (items[0] = the map's address operand,
              // items[1] = coordinate list, any further lists follow)
    predicate_pair,  // p|q        (items[0], items[1]; either may be sink)
    sink,            // _
  };
  Kind kind = Kind::sink;
  RegisterIndex reg = no_register;
  bool is_negated = false;
  bool is_float_immediate = false;
  bool is_double_immediate = false;  // a float of 64 bits: 0d… or 1.5
  std::uint64_t bits =
      0;  // of an immediate; integers sign-extended to 64 bits, 0f… as 32 bits, 0d… as 64 bits
  std::int64_t offset = 0;
  std::string text;
  std::vector<Operand> items;
};

struct Instruction {
  std::string opcode;  // "add", "cp", "wgmma", "mbarrier": the first word
  std::vector<std::string>
      modifiers;                  // the others in order, without dots: "rn", "f32", "shared::cta"
  std::vector<Operand> operands;  // in the order written; of `call`: see parser.hpp
  RegisterIndex guard = no_register;  // @%p1
  bool is_guard_negated = false;      // @!%p1
  std::uint32_t ptx_line = 0;         // first line of the text is 1
  SourceLine source;                  // its source line, possibly in an inlined function
  SourceLine call_site;  // the call of the outermost inlined function; file 0: nothing is inlined

  bool has(std::string_view modifier) const noexcept;
  // As written, without operands: "add.rn.f32".
  std::string full_opcode() const;
};

struct Function {
  std::string name;
  bool is_entry = false;
  bool has_body = false;             // false: an .extern or forward declaration
  std::vector<Variable> parameters;  // of space param, in order
  std::vector<Variable> results;     // for a .func
  std::vector<RegisterDeclaration> registers;
  std::vector<Variable> variables;  // its own: local, shared, param of calls
  std::vector<Instruction> code;
  std::map<std::string, std::uint32_t> labels;  // index into `code`; may be code.size()
  std::map<std::string, std::vector<std::string>> branch_targets;  // for brx.idx: tables of labels
  std::array<std::uint32_t, 3> max_threads{0, 0, 0};               // .maxntid, 0 = not given
  std::array<std::uint32_t, 3> required_threads{0, 0, 0};          // .reqntid
  std::array<std::uint32_t, 3> required_cluster{0, 0, 0};          // .reqnctapercluster
  std::uint32_t max_registers = 0;                                 // .maxnreg
};

struct Program {
  std::string version;             // "9.0"
  std::string target;              // "sm_90a"
  std::vector<std::string> files;  // by .file index; files[0] is empty
  std::vector<Variable> variables;
  std::vector<Function> functions;
  std::vector<std::string> text;  // the lines, for reports: text[ptx_line - 1]
  // Of the text; the addresses of functions contain it, so that other modules have others.
  std::uint16_t identity = 0;

  const Function* find_function(std::string_view name) const noexcept;
};

}  // namespace gemmery::emulator
