// SPDX-License-Identifier: Apache-2.0
// The functions that the driver provides to kernels: __assertfail (assert), vprintf (printf),
// malloc and free.
#include <fmt/format.h>

#include <bit>
#include <cstdio>
#include <cstring>

#include "emulator/check/fault_handler.hpp"
#include "emulator/instruction/control/call.hpp"
#include "emulator/machine/warp.hpp"
#include "emulator/memory/address.hpp"

namespace gemmery::emulator {
namespace {

constexpr std::size_t max_text_bytes = 4096;

struct SystemCallDetail final : OperationDetail {
  CallBlocks blocks;
};

const CallBlocks& blocks_of(const Operation& operation) {
  return static_cast<const SystemCallDetail&>(*operation.detail).blocks;
}

std::byte* local_bytes_of(Warp& warp, int lane, std::uint64_t offset) {
  const std::uint64_t stride = warp.cta.cluster.grid.image->local_bytes;
  return warp.local_memory.data() + static_cast<std::uint64_t>(lane) * stride + offset;
}

template <class T>
T argument(Warp& warp, int lane, const FunctionPlace::Block& block) {
  T value{};
  std::memcpy(&value, local_bytes_of(warp, lane, block.offset), sizeof value);
  return value;
}

// Reads bytes at a generic address in global memory or in the lane's local memory; false if the
// address is in neither.
bool read_generic(Warp& warp, int lane, std::uint64_t address, void* to, std::uint64_t bytes) {
  const std::uint64_t local_end = local_window + warp.cta.cluster.grid.image->local_bytes;
  if (address < local_window || address + bytes > local_end)
    return warp.cta.cluster.grid.memory->copy_out(to, address, bytes);
  std::memcpy(to, local_bytes_of(warp, lane, address - local_window), bytes);
  return true;
}

std::string read_text(Warp& warp, int lane, std::uint64_t address) {
  std::string text;
  char next = 0;
  while (text.size() < max_text_bytes && read_generic(warp, lane, address + text.size(), &next, 1))
    if (next == 0)
      return text;
    else
      text += next;
  return text;
}

// __assertfail(message, file, line, function, character size)
Step run_assertfail(Warp& warp, const Operation& operation, LaneMask active) {
  const auto& arguments = blocks_of(operation).arguments;
  const int lane = std::countr_zero(active);
  const auto text = [&](std::size_t index) {
    return read_text(warp, lane, argument<std::uint64_t>(warp, lane, arguments[index]));
  };
  Fault fault(FaultKind::trap,
              "assertion \"" + text(0) + "\" failed in " + text(3) + " at " + text(1) + ":" +
                  std::to_string(argument<std::uint32_t>(warp, lane, arguments[2])));
  fault.place.lane = lane;
  throw fault;
}

// Formats the arguments of one printf, one conversion ("%-8.3lf") at a time.
class PrintArguments {
 public:
  PrintArguments(Warp& warp, int lane, std::uint64_t address)
      : warp_(warp), lane_(lane), address_(address) {}

  template <class T>
  T take() {
    at_ = (at_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    T value{};
    read_generic(warp_, lane_, address_ + at_, &value, sizeof value);
    at_ += sizeof(T);
    return value;
  }

  // Formats the conversion that begins at `format[at]` ('%') and moves `at` past it.
  std::string convert(const std::string& format, std::size_t& at) {
    std::string spec = "%";
    bool is_long = false;
    for (++at; at < format.size(); ++at) {
      const char c = format[at];
      if (c == '*') {
        spec += std::to_string(take<std::int32_t>());
      } else if (std::strchr("hlLjztq", c) != nullptr) {
        is_long |= c != 'h';
      } else if (std::strchr("-+ #0123456789.", c) != nullptr) {
        spec += c;
      } else {
        break;
      }
    }
    if (at == format.size()) return spec;
    const char kind = format[at++];
    return kind == '%' ? "%" : print(spec, kind, is_long);
  }

 private:
  std::string print(std::string spec, char kind, bool is_long) {
    if (kind == 's')
      return print_as(spec + kind, read_text(warp_, lane_, take<std::uint64_t>()).c_str());
    if (kind == 'p') return print_as(spec + kind, reinterpret_cast<void*>(take<std::uint64_t>()));
    if (std::strchr("aAeEfFgG", kind) != nullptr) return print_as(spec + kind, take<double>());
    if (std::strchr("cdiouxX", kind) == nullptr) return spec + kind;
    if (is_long) return print_as(spec + "ll" + kind, take<long long>());
    return print_as(spec + kind, take<std::int32_t>());
  }

  template <class T>
  static std::string print_as(const std::string& spec, T value) {
    char text[max_text_bytes];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    std::snprintf(text, sizeof text, spec.c_str(), value);
#pragma GCC diagnostic pop
    return text;
  }

  Warp& warp_;
  int lane_;
  std::uint64_t address_;
  std::uint64_t at_ = 0;
};

std::string format_text(Warp& warp, int lane, std::uint64_t format_at, std::uint64_t buffer_at) {
  const std::string format = read_text(warp, lane, format_at);
  PrintArguments arguments(warp, lane, buffer_at);
  std::string text;
  for (std::size_t at = 0; at < format.size();)
    if (format[at] == '%')
      text += arguments.convert(format, at);
    else
      text += format[at++];
  return text;
}

template <class T>
void store_result(Warp& warp, int lane, const FunctionPlace::Block& block, T value) {
  std::memcpy(local_bytes_of(warp, lane, block.offset), &value, sizeof value);
  const std::size_t first =
      static_cast<std::size_t>(local_bytes_of(warp, lane, block.offset) - warp.local_memory.data());
  for (std::size_t byte = first; byte < first + sizeof value; ++byte)
    warp.local_written[byte / 64] |= std::uint64_t{1} << (byte % 64);
}

// vprintf(format, argument buffer): prints each lane's text to standard output, as a device does.
Step run_vprintf(Warp& warp, const Operation& operation, LaneMask active) {
  const CallBlocks& blocks = blocks_of(operation);
  for (LaneMask rest = active; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::string text =
        format_text(warp, lane, argument<std::uint64_t>(warp, lane, blocks.arguments[0]),
                    argument<std::uint64_t>(warp, lane, blocks.arguments[1]));
    std::fwrite(text.data(), 1, text.size(), stdout);
    if (!blocks.results.empty())
      store_result(warp, lane, blocks.results[0], static_cast<std::int32_t>(text.size()));
  }
  return Step::next;
}

Step run_malloc(Warp& warp, const Operation& operation, LaneMask active) {
  const CallBlocks& blocks = blocks_of(operation);
  GlobalMemory& memory = *warp.cta.cluster.grid.memory;
  for (LaneMask rest = active; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const auto bytes = argument<std::uint64_t>(warp, lane, blocks.arguments[0]);
    const std::uint64_t address = memory.allocate_from_heap(bytes);
    if (!blocks.results.empty()) store_result(warp, lane, blocks.results[0], address);
  }
  return Step::next;
}

Step run_free(Warp& warp, const Operation& operation, LaneMask active) {
  for (LaneMask rest = active; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const auto address = argument<std::uint64_t>(warp, lane, blocks_of(operation).arguments[0]);
    if (address == 0 || warp.cta.cluster.grid.memory->free_to_heap(address)) continue;
    Fault fault(FaultKind::out_of_bounds,
                fmt::format("free of address {:#x}: expected one that malloc of a kernel returned "
                            "and that was not freed since",
                            address));
    fault.place.lane = lane;
    take_or_throw(std::move(fault));
  }
  return Step::next;
}

struct SystemCall {
  std::string_view name;
  Execute execute;
  std::vector<std::uint32_t> argument_bytes;
  std::uint32_t result_bytes = 0;
  bool needs_ordered_grid = false;  // addresses depend on who allocates first
};

const std::vector<SystemCall>& system_calls() {
  static const std::vector<SystemCall> calls{
      {"__assertfail", run_assertfail, {8, 8, 4, 8, 8}},
      {"vprintf", run_vprintf, {8, 8}, 4},
      {"malloc", run_malloc, {8}, 8, true},
      {"free", run_free, {8}, 0, true},
  };
  return calls;
}

}  // namespace

bool decode_system_call(DecodeContext& context, const Instruction& instruction,
                        const CallBlocks& blocks, Operation& operation) {
  for (const SystemCall& call : system_calls()) {
    if (call.name != instruction.operands[1].text) continue;
    std::vector<std::uint32_t> bytes;
    for (const FunctionPlace::Block& block : blocks.arguments) bytes.push_back(block.bytes);
    if (bytes != call.argument_bytes) context.refuse(instruction, "arguments of other sizes");
    if (!blocks.results.empty() && blocks.results[0].bytes != call.result_bytes)
      context.refuse(instruction, "a result of another size");
    if (call.needs_ordered_grid) context.require_ordered_grid();
    auto detail = std::make_shared<SystemCallDetail>();
    detail->blocks = blocks;
    operation.detail = std::move(detail);
    operation.execute = call.execute;
    operation.has_side_effect = true;
    return true;
  }
  return false;
}

}  // namespace gemmery::emulator
