// SPDX-License-Identifier: Apache-2.0
// The opcodes `cp` and `tensormap`: chooses the file that decodes each form.
#include <array>

#include "emulator/instruction/copy/copy_forms.hpp"

namespace gemmery::emulator {
namespace {

bool has_tensor(const Instruction& instruction) { return instruction.has("tensor"); }

void decode_cp(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  operation.propagates_definedness = false;
  operation.has_side_effect = true;
  const bool is_reduction = form.take("reduce");
  if (!form.take("async")) form.refuse("expected cp.async or cp.reduce.async");
  if (!form.take("bulk")) {
    if (is_reduction) form.refuse("expected cp.reduce.async.bulk");
    decode_cp_async(form);
    return;
  }
  if (form.take("commit_group")) return decode_bulk_commit(form);
  if (form.take("wait_group")) return decode_bulk_wait(form);
  const bool is_prefetch = has_tensor(instruction) && form.take("prefetch");
  if (form.take("tensor")) return decode_tensor_copy(form, is_reduction, is_prefetch);
  decode_bulk_copy(form, is_reduction);
}

void decode_tensormap(DecodeContext& context, const Instruction& instruction,
                      Operation& operation) {
  Form form(context, instruction, operation);
  operation.propagates_definedness = false;
  operation.has_side_effect = true;
  decode_tensor_map_change(form);
}

constexpr DecodeRow rows[] = {{"cp", decode_cp}, {"tensormap", decode_tensormap}};

}  // namespace

std::string_view take_reduction(Form& form) {
  static constexpr std::array<std::string_view, 8> words{"add", "min", "max", "inc",
                                                         "dec", "and", "or",  "xor"};
  const auto found = form.take_one_of(words);
  if (!found) form.refuse("expected .add .min .max .inc .dec .and .or or .xor");
  return words[*found];
}

bool take_cache_hint(Form& form) { return form.take("L2::cache_hint"); }

DecodeRows copy_rows() { return rows; }

}  // namespace gemmery::emulator
