// SPDX-License-Identifier: Apache-2.0
// The opcodes that integers and floats share. The instruction's type decides whether integer.cpp or
// float.cpp decodes it.
#include <vector>

#include "emulator/instruction/arithmetic/arithmetic_compare.hpp"
#include "emulator/instruction/arithmetic/float.hpp"
#include "emulator/instruction/arithmetic/integer.hpp"

namespace gemmery::emulator {
namespace {

using DecodeTyped = void (*)(Form& form, ScalarType type);

template <DecodeTyped integers, DecodeTyped floats>
void decode_by_type(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  const bool carries = form.take("cc");
  const ScalarType type = form.take_type();
  if (carries)
    decode_carrying(form, type);
  else
    (is_float(type) ? floats : integers)(form, type);
}

void decode_remainder(DecodeContext& context, const Instruction& instruction,
                      Operation& operation) {
  Form form(context, instruction, operation);
  decode_integer_divide(form, form.take_type());
}

void append(std::vector<DecodeRow>& all, DecodeRows rows) {
  all.insert(all.end(), rows.begin(), rows.end());
}

constexpr DecodeRow shared_rows[] = {
    {"add", decode_by_type<decode_integer_add, decode_float_sum>},
    {"sub", decode_by_type<decode_integer_add, decode_float_sum>},
    {"mul", decode_by_type<decode_integer_multiply, decode_float_multiply>},
    {"mad", decode_by_type<decode_integer_multiply_add, decode_float_fma>},
    {"div", decode_by_type<decode_integer_divide, decode_float_divide>},
    {"rem", decode_remainder},
    {"abs", decode_by_type<decode_integer_sign, decode_float_sign>},
    {"neg", decode_by_type<decode_integer_sign, decode_float_sign>},
    {"min", decode_by_type<decode_integer_extreme, decode_float_extreme>},
    {"max", decode_by_type<decode_integer_extreme, decode_float_extreme>},
};

}  // namespace

DecodeRows arithmetic_rows() {
  static const std::vector<DecodeRow> rows = [] {
    std::vector<DecodeRow> all;
    append(all, shared_rows);
    append(all, integer_rows());
    append(all, carry_rows());
    append(all, bit_rows());
    append(all, float_rows());
    append(all, function_rows());
    append(all, compare_rows());
    return all;
  }();
  return rows;
}

}  // namespace gemmery::emulator
