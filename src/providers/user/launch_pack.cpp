// SPDX-License-Identifier: Apache-2.0
// Packs launches: writes the value of each parameter.
#include <gemmery/error.hpp>

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "driver/tensor_map.hpp"
#include "providers/user/launch_rule.hpp"
#include "providers/user/user_fault.hpp"

namespace gemmery::user {
namespace {

const Tensor& view_of(int operand, const GemmArguments& arguments) {
  switch (operand) {
    case operand_a:
      return arguments.a();
    case operand_b:
      return arguments.b();
    case operand_c:
      return *arguments.c();
    case operand_out:
      return arguments.out();
    default:
      return std::get<Tensor>(
          arguments.epilogue_operands()[static_cast<std::size_t>(operand - first_of_epilogue)]
              .value);
  }
}

std::int64_t extent_of(char extent, const GemmProblem& problem) {
  return extent == 'm'   ? problem.m
         : extent == 'n' ? problem.n
         : extent == 'k' ? problem.k
                         : problem.l;
}

template <class Value>
void put(Value value, std::byte* at) {
  std::memcpy(at, &value, sizeof value);
}

void put_integer(SlotType type, std::int64_t value, std::byte* at) {
  if (size_of(type) == 4)
    put(static_cast<std::uint32_t>(value), at);
  else
    put(value, at);
}

void put_real(SlotType type, double value, std::byte* at) {
  if (type == SlotType::f32)
    put(static_cast<float>(value), at);
  else
    put(value, at);
}

// A u64 constant may exceed the range of i64.
void put_constant(const Slot& slot, std::byte* at) {
  if (is_float(slot.type))
    put_real(slot.type, slot.constant, at);
  else if (slot.type == SlotType::u64)
    put(static_cast<std::uint64_t>(slot.constant), at);
  else
    put_integer(slot.type, static_cast<std::int64_t>(slot.constant), at);
}

driver::cuda::TensorMapSwizzle swizzle_of(int bytes) {
  using Swizzle = driver::cuda::TensorMapSwizzle;
  switch (bytes) {
    case 32:
      return Swizzle::bytes32;
    case 64:
      return Swizzle::bytes64;
    case 128:
      return Swizzle::bytes128;
    default:
      return Swizzle::none;
  }
}

}  // namespace

// --- a launch -----------------------------------------------------------------------------------

LaunchRule::Blocks LaunchRule::grid_of(const runtime::PackRequest& request) const {
  std::int64_t multiprocessors = request.device.multiprocessors;
  if (request.max_multiprocessors > 0)
    multiprocessors = std::min<std::int64_t>(multiprocessors, request.max_multiprocessors);
  std::optional<Blocks> grid;
  try {
    grid = blocks(request.arguments.problem(), request.device, multiprocessors);
  } catch (...) {
    rethrow_caught(ErrorKind::launch, kernel_name_, "launch.grid_function");
  }
  const auto is_launchable = [&](std::size_t axis) {
    return (*grid)[axis] >= 1 && (*grid)[axis] <= most_blocks[axis];
  };
  if (grid && is_launchable(0) && is_launchable(1) && is_launchable(2)) return *grid;
  throw Error({.kind = ErrorKind::unsupported,
               .operand = kernel_name_,
               .expected = "a grid that a device launches",
               .got = grid ? fmt::format("{}", fmt::join(*grid, " x ")) : "more blocks"});
}

void LaunchRule::pack(const runtime::PackRequest& request, runtime::LaunchPlan& plan) const {
  const GemmArguments& arguments = request.arguments;
  // Scalars may have changed since `supports` was called.
  if (const Status status = check_numbers(arguments); !status) {
    throw Error({.kind = ErrorKind::unsupported, .operand = kernel_name_, .got = status.error()});
  }
  const Blocks grid = grid_of(request);
  std::ranges::transform(grid, plan.shape.grid.begin(),
                         [](std::int64_t count) { return static_cast<std::uint32_t>(count); });
  plan.shape.block = kernel_.launch.block;
  plan.shape.cluster = kernel_.launch.cluster;
  plan.shape.shared_bytes = kernel_.launch.shared_bytes;

  plan.parameter_size = parameter_bytes_;
  plan.parameter_count = slots_.size();
  for (std::size_t index = 0; index < slots_.size(); ++index) {
    plan.parameter_offsets[index] = offsets_[index];
    if (slots_[index].kind == SlotKind::workspace) plan.workspace_slot = offsets_[index];
    write(slots_[index], request, plan.parameter_bytes + offsets_[index]);
  }
}

void LaunchRule::write(const Slot& slot, const runtime::PackRequest& request, std::byte* at) const {
  const GemmArguments& arguments = request.arguments;
  const GemmProblem& problem = arguments.problem();
  switch (slot.kind) {
    case SlotKind::pointer:
      put(view_of(slot.operand, arguments).data(), at);
      break;
    case SlotKind::extent: {
      const bool reads_nothing = slot.extent == 'k' && arguments.alpha() == 0;
      put_integer(slot.type, reads_nothing ? 0 : extent_of(slot.extent, problem), at);
      break;
    }
    case SlotKind::stride:
      put_integer(slot.type, stride_of(matrix_of(slot.operand, problem), slot.axis), at);
      break;
    case SlotKind::alpha:
      put_real(slot.type, arguments.alpha(), at);
      break;
    case SlotKind::beta:
      put_real(slot.type, arguments.beta(), at);
      break;
    case SlotKind::number: {
      const auto index = static_cast<std::size_t>(slot.operand - first_of_epilogue);
      put_real(slot.type, std::get<double>(arguments.epilogue_operands()[index].value), at);
      break;
    }
    case SlotKind::constant:
      put_constant(slot, at);
      break;
    case SlotKind::workspace:
      put(static_cast<void*>(nullptr), at);
      break;
    case SlotKind::tensor_map:
      write_map(slot, request, at);
      break;
  }
}

// An operand that is not read needs no map.
void LaunchRule::write_map(const Slot& slot, const runtime::PackRequest& request,
                           std::byte* at) const {
  const GemmProblem& problem = request.arguments.problem();
  const Placed of = placed(slot.operand, problem);
  if (of.rows == 0 || of.columns == 0) {
    std::memset(at, 0, size_of(SlotType::tensor_map));
    return;
  }
  const bool is_row = layout_of(slot.operand) == LayoutRule::row;
  const auto bytes = static_cast<std::uint64_t>(byte_width(of.matrix.dtype));
  const auto inner = static_cast<std::uint64_t>(is_row ? of.columns : of.rows);
  const auto outer = static_cast<std::uint64_t>(is_row ? of.rows : of.columns);
  // The stride of an extent of 1 is not used, but must still be a nonzero multiple of 16 bytes.
  const auto byte_stride = [&](Axis axis, std::int64_t extent) {
    constexpr std::uint64_t unit = 16;
    if (extent > 1) return static_cast<std::uint64_t>(stride_of(of.matrix, axis)) * bytes;
    return (inner * bytes + unit - 1) / unit * unit;
  };
  driver::TiledTensorMap map{.address = view_of(slot.operand, request.arguments).data(),
                             .dtype = of.matrix.dtype,
                             .rank = slot.has_batches ? 3U : 2U,
                             .swizzle = swizzle_of(slot.swizzle_bytes)};
  map.extents = {inner, outer, static_cast<std::uint64_t>(problem.l)};
  map.byte_strides = {byte_stride(is_row ? Axis::row : Axis::column, is_row ? of.rows : of.columns),
                      byte_stride(Axis::batch, problem.l)};
  map.box = {slot.box[is_row ? 2 : 1], slot.box[is_row ? 1 : 2], slot.box[0]};
  const driver::cuda::TensorMap encoded = driver::encode(request.driver, map);
  std::memcpy(at, &encoded, sizeof encoded);
}

}  // namespace gemmery::user
