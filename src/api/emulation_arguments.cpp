// SPDX-License-Identifier: Apache-2.0
#include "api/emulation_arguments.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <gemmery/error.hpp>

#include "api/refusal.hpp"
#include "core/number.hpp"

namespace gemmery {

EmulationArgument EmulationArgument::number(std::string text) {
  return {.kind = Kind::number, .text = std::move(text), .bytes = {}};
}

EmulationArgument EmulationArgument::value(std::vector<std::byte> bytes) {
  return {.kind = Kind::value, .text = {}, .bytes = std::move(bytes)};
}

EmulationArgument EmulationArgument::buffer(std::vector<std::byte> bytes) {
  return {.kind = Kind::buffer, .text = {}, .bytes = std::move(bytes)};
}

EmulationArgument EmulationArgument::unwritten(std::size_t bytes) {
  return {.kind = Kind::buffer,
          .text = {},
          .bytes = std::vector<std::byte>(bytes),
          .is_written = false};
}

EmulationArgument EmulationArgument::tensor_map(EmulationArgument buffer, DType dtype,
                                                std::span<const std::uint64_t> shape,
                                                std::span<const std::uint32_t> box,
                                                int swizzle_bytes) {
  constexpr std::size_t most_dimensions = 5;
  if (shape.empty() || shape.size() > most_dimensions || box.size() != shape.size())
    throw Error({.operand = "tensor map",
                 .expected = "a shape of 1 to 5 dimensions and a box of as many",
                 .got = fmt::format("{} and {}", shape.size(), box.size())});
  TensorMapView view{.dtype = dtype,
                     .rank = static_cast<std::uint32_t>(shape.size()),
                     .swizzle_bytes = swizzle_bytes};
  std::uint64_t bytes = static_cast<std::uint64_t>(bit_width(dtype)) / 8;
  for (std::size_t at = 0; at < shape.size(); ++at) {
    const std::size_t from = shape.size() - 1 - at;  // the fastest first
    view.extents[at] = shape[from];
    view.box[at] = box[from];
    bytes *= shape[from];
    if (at + 1 < shape.size()) view.byte_strides[at] = bytes;
  }
  if (bytes != buffer.bytes.size())
    throw Error({.operand = "tensor map",
                 .expected = fmt::format("a shape of the buffer's {} bytes", buffer.bytes.size()),
                 .got = fmt::format("one of {} bytes", bytes)});
  buffer.kind = Kind::tensor_map;
  buffer.view = view;
  return buffer;
}

namespace {

using Kind = EmulationArgument::Kind;

std::string name_of(std::size_t index) { return fmt::format("argument {}", index); }

// --- numbers ------------------------------------------------------------------------------------

struct Integer {
  std::uint64_t magnitude = 0;
  bool is_negative = false;
};

std::optional<Integer> parse_integer(std::string_view text) {
  Integer number;
  number.is_negative = text.starts_with('-');
  if (number.is_negative) text.remove_prefix(1);
  const bool is_hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (is_hexadecimal) text.remove_prefix(2);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(),
                                            number.magnitude, is_hexadecimal ? 16 : 10);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return number;
}

std::optional<double> parse_real(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || text.empty()) return std::nullopt;
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (!rest.empty() && rest != "f" && rest != "F") return std::nullopt;
  return number;
}

DType float_of(emulator::ScalarType type) {
  if (type == emulator::ScalarType::f64) return DType::float64;
  if (type == emulator::ScalarType::f16) return DType::float16;
  return type == emulator::ScalarType::bf16 ? DType::bfloat16 : DType::float32;
}

std::vector<std::byte> bytes_of_real(DType dtype, double value, std::uint32_t bytes) {
  std::vector<std::byte> stored(std::max<std::size_t>(bytes, 8));
  number::store(dtype, stored.data(), 0, {.high = value, .low = 0});
  stored.resize(bytes);
  return stored;
}

// True if the number fits in so many bytes, as a signed or an unsigned one.
bool fits(const Integer& number, std::uint32_t bytes) noexcept {
  if (bytes >= 8) return !number.is_negative || number.magnitude <= std::uint64_t{1} << 63;
  const std::uint64_t limit = std::uint64_t{1} << (8 * bytes);
  return number.is_negative ? number.magnitude <= limit / 2 : number.magnitude < limit;
}

std::vector<std::byte> bytes_of_integer(const Integer& number, std::uint32_t bytes) {
  const std::uint64_t bits = number.is_negative ? ~number.magnitude + 1 : number.magnitude;
  std::vector<std::byte> stored(bytes);
  std::memcpy(stored.data(), &bits, std::min<std::size_t>(bytes, sizeof bits));
  return stored;
}

std::vector<std::byte> typed_number(std::string_view text, std::string_view type,
                                    std::uint32_t bytes, std::size_t index) {
  const std::optional<DType> dtype = parse_dtype(type);
  if (!dtype) api::refuse(name_of(index), "NUMBER:DTYPE", fmt::format("'{}:{}'", text, type));
  if (facts(*dtype).bits != 8 * static_cast<int>(bytes))
    api::refuse(name_of(index), fmt::format("a parameter of {} bytes", bytes),
                fmt::format("a number of type {}", name(*dtype)));
  const std::optional<double> value = parse_real(text);
  if (!value) api::refuse(name_of(index), "a number", fmt::format("'{}'", text));
  return bytes_of_real(*dtype, *value, bytes);
}

std::vector<std::byte> bytes_of_number(const std::string& text, const emulator::Variable& parameter,
                                       std::size_t index) {
  const auto bytes = static_cast<std::uint32_t>(parameter.bytes);
  if (const std::size_t colon = text.find(':'); colon != std::string::npos)
    return typed_number(std::string_view(text).substr(0, colon),
                        std::string_view(text).substr(colon + 1), bytes, index);
  const std::string type(emulator::name(parameter.type));
  const bool is_plain = static_cast<std::uint32_t>(emulator::bytes_of(parameter.type)) == bytes;
  if (!is_plain)
    api::refuse(name_of(index),
                fmt::format("a value of the kernel's parameter, which has {} bytes", bytes),
                fmt::format("'{}'", text),
                "give its type (1.5:f16), or the bytes of a struct as an array of uint8");
  if (emulator::is_float(parameter.type)) {
    if (const auto value = parse_real(text))
      return bytes_of_real(float_of(parameter.type), *value, bytes);
  } else if (const auto value = parse_integer(text); value && fits(*value, bytes)) {
    return bytes_of_integer(*value, bytes);
  }
  api::refuse(name_of(index), "a number of the kernel's parameter, which is ." + type,
              fmt::format("'{}'", text));
}

std::vector<std::byte> bytes_of_map(const EmulationArgument& argument, std::uint64_t address) {
  TensorMapView view = argument.view;
  view.address = reinterpret_cast<const void*>(address);
  const EncodedTensorMap map = encode_emulated_tensor_map(view);
  const auto* const bytes = reinterpret_cast<const std::byte*>(map.words.data());
  return {bytes, bytes + sizeof map.words};
}

// What a parameter of another size is told about the argument.
std::string size_text(const EmulationArgument& argument, std::size_t bytes) {
  if (argument.kind == Kind::buffer) return "a buffer, whose address has 8";
  if (argument.kind == Kind::tensor_map) return "a tensor map, which has 128";
  return std::to_string(bytes);
}

std::vector<std::byte> bytes_of_argument(const EmulationArgument& argument,
                                         const emulator::Variable& parameter, std::size_t index,
                                         const EmulationBuffers& buffers) {
  if (argument.kind == Kind::number) return bytes_of_number(argument.text, parameter, index);
  if (argument.kind == Kind::value) return argument.bytes;
  if (argument.kind == Kind::tensor_map) return bytes_of_map(argument, buffers.address(index));
  return bytes_of_integer({.magnitude = buffers.address(index)}, 8);
}

}  // namespace

std::vector<std::byte> lay_out_parameters(const emulator::KernelImage& image,
                                          const std::vector<EmulationArgument>& arguments,
                                          const EmulationBuffers& buffers) {
  const std::vector<emulator::Variable>& parameters = image.entry->parameters;
  if (arguments.size() != parameters.size())
    api::refuse("arguments of " + emulator::demangled(image.name),
                std::to_string(parameters.size()), std::to_string(arguments.size()));
  std::vector<std::byte> bytes(image.parameter_bytes);
  for (std::size_t index = 0; index < arguments.size(); ++index) {
    const std::vector<std::byte> each =
        bytes_of_argument(arguments[index], parameters[index], index, buffers);
    if (each.size() != image.parameter_size[index])
      api::refuse(name_of(index),
                  fmt::format("{} bytes, as the kernel's parameter", image.parameter_size[index]),
                  size_text(arguments[index], each.size()));
    std::memcpy(bytes.data() + image.parameter_offset[index], each.data(), each.size());
  }
  return bytes;
}

// --- buffers ------------------------------------------------------------------------------------

EmulationBuffers::~EmulationBuffers() {
  for (const std::uint64_t address : addresses_) {
    if (address != 0) device_.memory.free(address);
  }
}

void EmulationBuffers::allocate(std::size_t argument) {
  const std::size_t bytes = arguments_[argument].bytes.size();
  addresses_[argument] = device_.memory.allocate(bytes);
  if (addresses_[argument] != 0) return;
  throw Error({.kind = ErrorKind::out_of_memory,
               .operand = name_of(argument),
               .expected = "a buffer that the device has memory for",
               .got = fmt::format("{} bytes", bytes)});
}

void EmulationBuffers::refill() {
  for (std::size_t index = 0; index < arguments_.size(); ++index) {
    const EmulationArgument& argument = arguments_[index];
    if (!argument.has_buffer() || argument.bytes.empty()) continue;
    // Addresses stay, since kernels may store them.
    if (addresses_[index] == 0) allocate(index);
    emulator::GlobalMemory& memory = device_.memory;
    const std::uint64_t bytes = argument.bytes.size();
    std::ignore = argument.is_written
                      ? memory.copy_in(addresses_[index], argument.bytes.data(), bytes)
                      : memory.make_unwritten(addresses_[index], bytes);
  }
}

std::vector<EmulationOutput> EmulationBuffers::read() const {
  std::vector<EmulationOutput> outputs;
  for (std::size_t index = 0; index < arguments_.size(); ++index) {
    if (!arguments_[index].has_buffer()) continue;
    EmulationOutput output{.argument = index, .bytes = {}};
    output.bytes.resize(arguments_[index].bytes.size());
    std::ignore =
        device_.memory.copy_out(output.bytes.data(), addresses_[index], output.bytes.size());
    output.unwritten_bytes = device_.memory.count_unwritten(addresses_[index], output.bytes.size());
    outputs.push_back(std::move(output));
  }
  return outputs;
}

}  // namespace gemmery
