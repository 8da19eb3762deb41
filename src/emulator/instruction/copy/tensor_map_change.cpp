// SPDX-License-Identifier: Apache-2.0
// tensormap.replace, which edits a tensor map in shared or global memory, and
// tensormap.cp_fenceproxy, which publishes one.
#include <array>
#include <cstring>
#include <string>

#include "emulator/instruction/copy/copy_forms.hpp"
#include "emulator/instruction/copy/tensor_map_access.hpp"

namespace gemmery::emulator {
namespace {

enum class MapSpace : std::uint8_t { global, shared };

enum class Field : std::uint8_t {
  global_address,
  rank,
  box_dim,
  global_dim,
  global_stride,
  element_stride,
  elemtype,
  interleave_layout,
  swizzle_mode,
  swizzle_atomicity,
  fill_mode,
};
constexpr std::array<std::string_view, 11> field_names{
    "global_address", "rank",     "box_dim",           "global_dim",   "global_stride",
    "element_stride", "elemtype", "interleave_layout", "swizzle_mode", "swizzle_atomicity",
    "fill_mode"};

bool has_ordinal(Field field) noexcept {
  return field >= Field::box_dim && field <= Field::element_stride;
}

struct ChangeDetail final : OperationDetail {
  MapSpace space = MapSpace::global;
  Field field = Field::global_address;
  std::uint32_t ordinal = 0;
  LaneOperand map, value;
  LaneOperand source;  // cp_fenceproxy
};

const ChangeDetail& map_change_detail_of(const Operation& operation) {
  return static_cast<const ChangeDetail&>(*operation.detail);
}

// --- in memory ----------------------------------------------------------------------------------

TensorMapBytes read_map(Warp& warp, const Operation& operation, int lane, MapSpace space,
                        std::uint64_t address) {
  TensorMapBytes bytes;
  const Accessor who = warp.accessor(operation, lane);
  if (space == MapSpace::global) {
    warp.cta.cluster.grid.memory->read_bytes(address, map_bytes, who, bytes.data(), nullptr);
  } else {
    const std::uint32_t offset = own_shared_offset(warp, address);
    std::memcpy(bytes.data(), warp.cta.shared.read(offset, map_bytes, map_alignment, who, true),
                map_bytes);
  }
  return bytes;
}

void write_map(Warp& warp, const Operation& operation, int lane, MapSpace space,
               std::uint64_t address, const TensorMapBytes& bytes) {
  const Accessor who = warp.accessor(operation, lane);
  if (space == MapSpace::global) {
    warp.cta.cluster.grid.memory->write_bytes(address, map_bytes, who, bytes.data());
  } else {
    const std::uint32_t offset = own_shared_offset(warp, address);
    std::memcpy(warp.cta.shared.write(offset, map_bytes, map_alignment, who), bytes.data(),
                map_bytes);
    warp.unfenced_lanes |= LaneMask{1} << lane;
  }
}

// --- replace ------------------------------------------------------------------------------------

// The PTX manual numbers element types differently from the driver.
constexpr std::array<MapElement, 13> element_types{
    MapElement::u8,        MapElement::u16, MapElement::u32,  MapElement::s32,
    MapElement::u64,       MapElement::s64, MapElement::f16,  MapElement::f32,
    MapElement::f32_flush, MapElement::f64, MapElement::bf16, MapElement::tf32,
    MapElement::tf32_flush};

[[noreturn]] void throw_unknown_value(Field field, std::uint64_t value, int lane) {
  throw_fault(FaultKind::tensor_map, lane,
              "tensormap.replace of ." + std::string(field_names[static_cast<std::size_t>(field)]) +
                  " by " + std::to_string(value) + " is not known to the emulator");
}

void replace_field(TensorMapFields& fields, const ChangeDetail& detail, std::uint64_t value,
                   int lane) {
  const std::size_t ordinal = detail.ordinal;
  const auto word = static_cast<std::uint32_t>(value);
  const auto small = [&](std::uint64_t limit) {
    if (value >= limit) throw_unknown_value(detail.field, value, lane);
    return static_cast<std::uint8_t>(value);
  };
  switch (detail.field) {
    case Field::global_address:
      fields.address = value;
      break;
    case Field::rank:
      fields.rank = small(max_map_rank) + 1u;
      break;
    case Field::box_dim:
      fields.box[ordinal] = word;
      break;
    case Field::global_dim:
      fields.extents[ordinal] = word;
      break;
    case Field::global_stride:
      fields.byte_strides[ordinal] = value;
      break;
    case Field::element_stride:
      fields.element_strides[ordinal] = word;
      break;
    case Field::elemtype:
      fields.element = element_types[small(element_types.size())];
      break;
    case Field::interleave_layout:
      fields.interleave = small(3);
      break;
    case Field::swizzle_mode:
      fields.swizzle = small(4);
      break;
    case Field::swizzle_atomicity:
      small(1);
      break;
    case Field::fill_mode:
      fields.fills_nan = small(2) != 0;
      break;
  }
}

// Kernels that make a map field by field begin with zeros.
TensorMapFields decode_started(const TensorMapBytes& bytes) {
  return bytes == TensorMapBytes{} ? TensorMapFields{} : decode(bytes);
}

Step replace(Warp& warp, const Operation& operation, LaneMask active) {
  const ChangeDetail& detail = map_change_detail_of(operation);
  warp.require_defined(detail.map.slot, active, "the address of a tensor map");
  warp.require_defined(detail.value.slot, active, "a field of a tensor map");
  for_each_lane(active, [&](int lane) {
    const std::uint64_t address = detail.map.value(warp, lane);
    require_multiple(address, map_alignment, lane, "the address of a tensor map,");
    TensorMapFields fields = decode_started(read_map(warp, operation, lane, detail.space, address));
    replace_field(fields, detail, detail.value.value(warp, lane), lane);
    write_map(warp, operation, lane, detail.space, address, encode(fields));
  });
  return Step::next;
}

// --- cp_fenceproxy ------------------------------------------------------------------------------

// The whole warp makes one copy.
Step publish(Warp& warp, const Operation& operation, LaneMask active) {
  const ChangeDetail& detail = map_change_detail_of(operation);
  warp.require_defined(detail.map.slot, active, "the address of a tensor map");
  warp.require_defined(detail.source.slot, active, "the address of a tensor map");
  const int lane = std::countr_zero(active);
  const std::uint64_t to = detail.map.value(warp, lane);
  require_multiple(to, map_alignment, lane, "the address of a tensor map,");
  const TensorMapBytes bytes =
      read_map(warp, operation, lane, MapSpace::shared, detail.source.value(warp, lane));
  write_map(warp, operation, lane, MapSpace::global, to, bytes);
  warp.known.map_released.raise(warp.agent, warp.clock);
  ++warp.clock;  // later writes are not released
  warp.known.happened.raise(warp.agent, warp.clock);
  return Step::next;
}

// --- decoding -----------------------------------------------------------------------------------

std::uint32_t take_ordinal(Form& form, const Operand& operand, Field field) {
  if (operand.kind != Operand::Kind::immediate) form.refuse("the ordinal must be a constant");
  const std::uint64_t limit = field == Field::global_stride ? 4 : 5;
  if (operand.bits >= limit) form.refuse("the ordinal must be below " + std::to_string(limit));
  return static_cast<std::uint32_t>(operand.bits);
}

void decode_replace(Form& form, ChangeDetail& detail) {
  if (!form.take("tile")) form.refuse("expected .tile");
  const auto field = form.take_one_of(field_names);
  if (!field) form.refuse("expected the name of a field");
  detail.field = static_cast<Field>(*field);
  const bool is_shared = form.take("shared::cta");
  if (!is_shared && !form.take("global")) form.refuse("expected .global or .shared::cta");
  detail.space = is_shared ? MapSpace::shared : MapSpace::global;
  if (!form.take("b1024")) form.refuse("expected .b1024");
  const ScalarType type = form.take("b64") ? ScalarType::b64 : ScalarType::b32;
  if (type == ScalarType::b32 && !form.take("b32")) form.refuse("expected .b32 or .b64");
  form.finish();
  const std::size_t value_at = has_ordinal(detail.field) ? 2 : 1;
  form.expect_operands(value_at + 1);
  detail.map = decode_address(form, form.operand(0));
  if (value_at == 2) detail.ordinal = take_ordinal(form, form.operand(1), detail.field);
  detail.value = decode_value(form, form.operand(value_at), type);
  form.operation().execute = replace;
}

void decode_publish(Form& form, ChangeDetail& detail) {
  for (const std::string_view word :
       {"global", "shared::cta", "tensormap::generic", "release", "sync", "aligned"})
    if (!form.take(word)) form.refuse("expected ." + std::string(word));
  static constexpr std::array<std::string_view, 4> scopes{"cta", "cluster", "gpu", "sys"};
  if (!form.take_one_of(scopes)) form.refuse("expected a scope");
  form.finish();
  form.expect_operands(3);
  if (form.operand(2).kind != Operand::Kind::immediate || form.operand(2).bits != map_bytes)
    form.refuse("the size must be 128");
  detail.map = decode_address(form, form.operand(0));
  detail.source = decode_address(form, form.operand(1));
  form.operation().needs_convergence = true;
  form.operation().execute = publish;
}

}  // namespace

void decode_tensor_map_change(Form& form) {
  auto detail = std::make_shared<ChangeDetail>();
  if (form.take("replace"))
    decode_replace(form, *detail);
  else if (form.take("cp_fenceproxy"))
    decode_publish(form, *detail);
  else
    form.refuse("expected tensormap.replace or tensormap.cp_fenceproxy");
  form.operation().detail = std::move(detail);
}

}  // namespace gemmery::emulator
