// SPDX-License-Identifier: Apache-2.0
// Small programs, one for each form of an instruction, whose results were recorded on hardware and
// are compared with the emulator's bit for bit.
#pragma once

#include <gemmery/device.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gemmery::recording {

// The conversion of an operand's 64-bit input word to a register, and the values that are drawn.
enum class Kind : std::uint8_t {
  b16,
  u16,
  s16,
  b32,
  u32,
  s32,
  b64,
  u64,
  s64,
  shift,     // u32 from 0 to 70
  selector,  // u32, every bit random, often small
  f16,
  bf16,
  f16x2,
  bf16x2,
  f32,
  f64,
  e4m3x2,
  e5m2x2,  // b16
  pred,
};

struct Form {
  std::string name;            // unique: the instruction as written, without registers
  std::vector<Kind> results;   // registers d, e
  std::vector<Kind> operands;  // registers a, b, c, x
  std::string body;            // PTX that sets the results from the operands
  // Documented error of an approximate function, relative to the exact value; 0: bit for bit.
  double relative_error = 0;
  double absolute_error = 0;
};

std::vector<Form> all_forms();

inline constexpr std::uint32_t cases_per_form = 128;  // one CTA of four warps

// One module with an entry `form_<index>` for each; parameters: in, out (pointers to 64-bit words,
// case after case, an operand or result after the other).
std::string module_text(const std::vector<Form>& forms);

// The inputs of a form, determined by its name.
std::vector<std::uint64_t> inputs_of(const Form& form);

// Runs every form on a device whose driver is registered. Results are in the same order, one word
// for each case and result.
std::vector<std::vector<std::uint64_t>> run_forms(const std::vector<Form>& forms, Device device);

// The file of recorded results: text head (device, driver, date), then for each form its name and
// its words, packed to the width of the kind.
void write_recording(const std::string& path, const std::string& head,
                     const std::vector<Form>& forms,
                     const std::vector<std::vector<std::uint64_t>>& results);
struct Recording {
  std::string head;
  std::vector<std::string> names;
  std::vector<std::vector<std::uint64_t>> results;
};
Recording read_recording(const std::string& path);

int bits_of(Kind kind);

}  // namespace gemmery::recording
