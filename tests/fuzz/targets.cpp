// SPDX-License-Identifier: Apache-2.0
// The fuzz targets.
#include "tests/fuzz/targets.hpp"

#include <array>
#include <cmath>
#include <cstring>
#include <string_view>
#include <vector>

#include <gemmery/discovery.hpp>
#include <gemmery/dlpack.hpp>
#include <gemmery/error.hpp>

#include <gemmery/dlpack_abi.hpp>
#include "core/invariant.hpp"
#include "emulator/program/parser.hpp"
#include "runtime/artifact_file.hpp"

namespace gemmery::fuzz {
namespace {

std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void require_words(const Error& error) {
  require(!error.operand().empty() && !error.got().empty() && std::strlen(error.what()) > 0,
          "an Error without words");
}

bool is_equal(double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); }

// Checks that registers exist, lists are finite, labels are in the code.
void require_declared(const emulator::Function& function, const emulator::Operand& operand) {
  require(operand.reg == emulator::no_register || operand.reg < function.registers.size(),
          "a register that is not declared");
  for (const emulator::Operand& item : operand.items) require_declared(function, item);
}

void require_sound(const emulator::Function& function) {
  for (const emulator::Instruction& instruction : function.code) {
    require(!instruction.opcode.empty() && instruction.ptx_line > 0, "an instruction of nothing");
    for (const emulator::Operand& operand : instruction.operands)
      require_declared(function, operand);
  }
  for (const auto& [label, at] : function.labels)
    require(!label.empty() && at <= function.code.size(), "a label outside of the code");
}

// Reads values from the front of the input; zeros at its end.
class Reader {
 public:
  explicit Reader(Bytes bytes) : bytes_(bytes) {}

  template <class T>
  T take() {
    T value{};
    const std::size_t count = bytes_.size() < sizeof value ? bytes_.size() : sizeof value;
    if (count != 0) std::memcpy(&value, bytes_.data(), count);
    bytes_ = bytes_.subspan(count);
    return value;
  }

 private:
  Bytes bytes_;
};

}  // namespace

void fuzz_parse_problem(Bytes bytes) {
  try {
    const ProblemLine line = parse_problem(as_text(bytes));
    const std::string text = to_string(line);
    const ProblemLine again = parse_problem(text);
    require(again.problem == line.problem && is_equal(again.alpha, line.alpha) &&
                is_equal(again.beta, line.beta),
            "a printed problem reads back as another");
    require(to_string(again) == text, "a problem prints in two ways");
    require(hash_value(again.problem) == hash_value(line.problem),
            "equal problems have two hashes");
    require(line.problem.flops() >= 0 && line.problem.bytes() >= 0, "work below zero");
  } catch (const Error& error) {
    require_words(error);
  }
}

void fuzz_from_dlpack(Bytes bytes) {
  Reader reader(bytes);
  alignas(64) static std::array<std::byte, 256> memory;
  std::array<std::int64_t, 8> shape{};
  std::array<std::int64_t, 8> strides{};
  dlpack::TensorLayout layout{};
  layout.rank = reader.take<std::int8_t>() % 9;
  layout.dtype = {reader.take<std::uint8_t>(), reader.take<std::uint8_t>(),
                  reader.take<std::uint16_t>()};
  layout.device = {reader.take<std::int8_t>(), reader.take<std::int32_t>()};
  const auto flags = reader.take<std::uint8_t>();
  for (std::int64_t& extent : shape)
    extent = (flags & 16) != 0 ? reader.take<std::int64_t>() : reader.take<std::int8_t>();
  for (std::int64_t& stride : strides)
    stride = (flags & 32) != 0 ? reader.take<std::int64_t>() : reader.take<std::int8_t>();
  layout.data = (flags & 1) != 0 ? nullptr : memory.data();
  layout.shape = (flags & 2) != 0 ? nullptr : shape.data();
  layout.strides = (flags & 4) != 0 ? nullptr : strides.data();
  layout.byte_offset = reader.take<std::uint8_t>() % 64;
  try {
    const Tensor tensor = from_dlpack(reinterpret_cast<const DLTensor&>(layout));
    require(tensor.rank() == layout.rank, "another rank");
    require(bit_width(tensor.dtype()) == layout.dtype.bits, "another element type");
    for (int d = 0; d < tensor.rank(); ++d) {
      const auto at = static_cast<std::size_t>(d);
      require(tensor.extent(d) == shape[at], "another extent");
      require(layout.strides == nullptr || tensor.stride(d) == strides[at], "another stride");
    }
    require(tensor.element_count() >= 0, "elements below zero");
    const ByteRange range = byte_range(tensor);
    require(range.is_empty() == (tensor.element_count() == 0),
            "an address range that contradicts the element count");
    require(!to_string(tensor).empty(), "no words for a tensor");
  } catch (const Error& error) {
    require_words(error);
  }
}

void fuzz_find_kernel(Bytes bytes) {
  const auto kernel = find_kernel(as_text(bytes));
  if (kernel)
    require(kernel->name() == as_text(bytes), "a kernel is found under a name that is not its own");
}

void fuzz_read_artifacts(Bytes bytes) {
  constexpr std::size_t header_bytes = 64;
  const auto raw = std::as_bytes(bytes);
  std::vector<std::byte> file(raw.begin(), raw.end());
  if (file.size() >= header_bytes) runtime::seal(file);  // else no checksum would match
  try {
    require(runtime::encode(runtime::decode(file, "file")) == file,
            "an artifact file that is written otherwise than it was read");
  } catch (const Error& error) {
    require_words(error);
  }
}

void fuzz_parse_ptx(Bytes bytes) {
  try {
    const emulator::Program program = emulator::parse_ptx(as_text(bytes));
    for (const emulator::Function& function : program.functions) require_sound(function);
    for (const emulator::Variable& variable : program.variables)
      require(variable.initial.size() <= variable.bytes,
              "a variable begins with more than it holds");
  } catch (const Error& error) {
    require_words(error);
  }
}

}  // namespace gemmery::fuzz
