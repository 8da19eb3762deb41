// SPDX-License-Identifier: Apache-2.0
// Reads a tensor map from the memory that holds it.
#include "emulator/instruction/copy/tensor_map_access.hpp"

#include <cstring>
#include <string>

#include "emulator/memory/address.hpp"

namespace gemmery::emulator {
namespace {

TensorMapBytes read_parameter(const Warp& warp, int lane, std::uint64_t address) {
  const std::vector<std::byte>& parameters = warp.cta.cluster.grid.parameters;
  const std::uint64_t offset = address - param_window;
  if (offset + map_bytes > parameters.size())
    throw_fault(FaultKind::out_of_bounds, lane,
                "the tensor map at parameter offset " + std::to_string(offset) +
                    " reaches beyond the kernel's " + std::to_string(parameters.size()) +
                    " bytes of parameters");
  TensorMapBytes bytes;
  std::memcpy(bytes.data(), parameters.data() + offset, map_bytes);
  return bytes;
}

TensorMapBytes read_global_map(Warp& warp, int lane, std::uint64_t address) {
  TensorMapBytes bytes;
  if (!warp.cta.cluster.grid.memory->copy_out(bytes.data(), address, map_bytes))
    throw_fault(FaultKind::out_of_bounds, lane,
                "the tensor map at global address " + hexadecimal(address) +
                    " is not inside an allocation");
  return bytes;
}

TensorMapBytes read_map(Warp& warp, int lane, std::uint64_t address) {
  if (address >= param_window && address < param_window_end)
    return read_parameter(warp, lane, address);
  if (address >= global_window) return read_global_map(warp, lane, address);
  throw_fault(FaultKind::tensor_map, lane,
              "a tensor map at address " + hexadecimal(address) +
                  " lies neither in a parameter nor in constant or global memory; pass it as a "
                  "const __grid_constant__ parameter, and take its generic address (cvta.param)");
}

}  // namespace

TensorMapFields load_tensor_map(Warp& warp, int lane, std::uint64_t address) {
  require_multiple(address, map_alignment, lane, "the address of a tensor map,");
  const TensorMapFields fields = decode(read_map(warp, lane, address));
  if (const std::string rule = find_broken_rule(fields); !rule.empty())
    throw_fault(FaultKind::tensor_map, lane, "the tensor map is not valid: " + rule);
  if (const std::string layout = find_unknown_layout(fields); !layout.empty())
    throw_fault(FaultKind::tensor_map, lane, layout);
  return fields;
}

void note_map_use(Cluster& cluster, std::uint64_t address, Accessor who) {
  const bool is_parameter = address >= param_window && address < param_window_end;
  if (is_parameter || address < global_window) return;
  TensorMapBytes bytes;
  who.proxy = Proxy::tensor_map;
  cluster.grid.memory->read_bytes(address, map_bytes, who, bytes.data(), nullptr);
}

}  // namespace gemmery::emulator
