// SPDX-License-Identifier: Apache-2.0
// cp.async.bulk.tensor, its reductions and its prefetch: boxes between global and shared memory.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "emulator/instruction/copy/async_copy.hpp"
#include "emulator/instruction/copy/copy_forms.hpp"
#include "emulator/instruction/copy/tensor_map_access.hpp"
#include "emulator/instruction/copy/tensor_place.hpp"
#include "emulator/instruction/memory/reduction.hpp"

namespace gemmery::emulator {
namespace {

constexpr std::uint32_t box_alignment = 128;

enum class BoxMode : std::uint8_t { tile, im2col, im2col_without_offsets };

struct TensorDetail final : OperationDetail {
  std::uint32_t rank = 0;
  BoxMode mode = BoxMode::tile;
  LaneOperand map, shared, barrier, mask;
  std::vector<LaneOperand> coordinates, offsets;
  bool is_multicast = false;
  std::string_view reduction;  // its word; empty for a plain copy
};

const TensorDetail& tensor_detail_of(const Operation& operation) {
  return static_cast<const TensorDetail&>(*operation.detail);
}

// A box as one lane names it.
struct Box {
  TensorMapFields map;
  std::uint64_t map_address = 0;
  BoxPlace place{};
  std::vector<BoxRow> rows{};
  std::uint32_t bytes = 0;
};

std::string describe_mode(const TensorMapFields& map) {
  return std::to_string(map.rank) + (map.is_im2col ? " dimensions in im2col mode" : " dimensions");
}

void require_fitting_map(const TensorDetail& detail, const TensorMapFields& map, int lane) {
  const bool is_im2col = detail.mode != BoxMode::tile;
  if (map.rank == detail.rank && map.is_im2col == is_im2col) return;
  throw_fault(FaultKind::tensor_map, lane,
              "the instruction takes a map of " + std::to_string(detail.rank) + " dimensions" +
                  (is_im2col ? " in im2col mode" : "") + ", and this one has " +
                  describe_mode(map));
}

Box box_of(Warp& warp, const Operation& operation, int lane) {
  const TensorDetail& detail = tensor_detail_of(operation);
  const std::uint64_t address = detail.map.value(warp, lane);
  Box box{.map = load_tensor_map(warp, lane, address), .map_address = address};
  require_fitting_map(detail, box.map, lane);
  for (std::size_t index = 0; index < detail.coordinates.size(); ++index)
    box.place.start[index] = static_cast<std::int32_t>(detail.coordinates[index].value(warp, lane));
  for (std::size_t index = 0; index < detail.offsets.size(); ++index)
    box.place.offsets[index] = static_cast<std::uint16_t>(detail.offsets[index].value(warp, lane));
  box.rows = rows_of_box(box.map, std::span(box.place.start).first(detail.rank), box.place.offsets);
  box.bytes = box_bytes(box.map);
  return box;
}

void require_all_defined(const Warp& warp, const TensorDetail& detail, LaneMask active) {
  constexpr const char* what = "the operands of a tensor copy";
  warp.require_defined(detail.map.slot, active, what);
  for (const LaneOperand& coordinate : detail.coordinates)
    warp.require_defined(coordinate.slot, active, what);
  for (const LaneOperand& offset : detail.offsets) warp.require_defined(offset.slot, active, what);
}

// Reports a row that lies inside the map's extents but outside of any allocation.
[[noreturn]] void throw_out_of_map(Fault& fault, const Box& box, const BoxRow& row) {
  fault.message =
      "row " + std::to_string(row.shared_offset / row_bytes(box.map)) +
      " of a tensor box lies inside the map's extents but outside of memory: " + fault.message +
      "; make the map's address, extents and strides those of the "
      "buffer";
  throw fault;
}

template <class Access>
void access_row(const Box& box, const BoxRow& row, Access access) {
  try {
    access();
  } catch (ConflictFault&) {
    throw;
  } catch (Fault& fault) {
    if (fault.kind != FaultKind::out_of_bounds) throw;
    throw_out_of_map(fault, box, row);
  }
}

// Calls `visit(offset in the row, offset in the box, bytes)` for each piece of bytes [from, from +
// bytes) of a row that the swizzle keeps contiguous; `base` is the box's shared offset.
template <class Visit>
void for_each_piece(const Box& box, std::uint32_t base, const BoxRow& row, std::uint32_t from,
                    std::uint32_t bytes, Visit visit) {
  const std::uint32_t start = base + row.shared_offset;
  if (box.map.swizzle == 0) {
    visit(from, row.shared_offset + from, bytes);
    return;
  }
  for (std::uint32_t at = from; at < from + bytes;) {
    const std::uint32_t count =
        std::min(tensor_unit_bytes - at % tensor_unit_bytes, from + bytes - at);
    visit(at, swizzled(box.map.swizzle, start + at) - base, count);
    at += count;
  }
}

// --- global to shared ---------------------------------------------------------------------------

struct StagedBox {
  std::vector<std::byte> bytes;          // as they will lie in shared memory
  std::vector<std::uint32_t> unwritten;  // places among them
};

void stage_row(const Box& box, std::uint32_t base, const BoxRow& row, Cluster& cluster,
               const Accessor& who, std::vector<std::byte>& line, StagedBox& staged) {
  const std::uint32_t width = row_bytes(box.map);
  if (row.inside_bytes != width) fill_out_of_bounds(box.map, line.data(), width);
  std::vector<std::uint32_t> unwritten;
  if (row.inside_bytes != 0) {
    std::byte* const inside = line.data() + row.inside_from;
    access_row(box, row, [&] {
      read_global(cluster, row.address, row.inside_bytes, who, inside, row.inside_from, unwritten);
    });
    convert_elements(box.map, inside, row.inside_bytes);
  }
  for_each_piece(box, base, row, 0, width,
                 [&](std::uint32_t at, std::uint32_t place, std::uint32_t bytes) {
                   std::memcpy(staged.bytes.data() + place, line.data() + at, bytes);
                 });
  for (const std::uint32_t at : unwritten)
    staged.unwritten.push_back(swizzled(box.map.swizzle, base + row.shared_offset + at) - base);
}

StagedBox stage(const Box& box, std::uint32_t base, Cluster& cluster, const Accessor& who) {
  StagedBox staged;
  staged.bytes.resize(box.bytes);
  std::vector<std::byte> line(row_bytes(box.map));
  for (const BoxRow& row : box.rows) stage_row(box, base, row, cluster, who, line, staged);
  return staged;
}

void start_tensor_load(Warp& warp, const Operation& operation, int lane) {
  const TensorDetail& detail = tensor_detail_of(operation);
  Box box = box_of(warp, operation, lane);
  require_legal_load(box.map, box.place, lane);
  Landing landing = landing_of(warp, lane, detail.shared.value(warp, lane),
                               detail.barrier.value(warp, lane), box.bytes, box_alignment);
  if (detail.is_multicast)
    multicast(warp, lane, static_cast<std::uint32_t>(detail.mask.value(warp, lane)), landing);
  const Issuer issuer = issuer_of(warp, operation, lane);
  issuer.start([issuer, landing, box = std::move(box)](Cluster& cluster) {
    const Accessor who = issuer.accessor(landing_epoch(cluster, landing));
    note_map_use(cluster, box.map_address, who);
    const StagedBox staged = stage(box, landing.offset, cluster, who);
    land(issuer, landing, staged.bytes.data(), staged.unwritten);
  });
}

Step run_tensor_load(Warp& warp, const Operation& operation, LaneMask active) {
  const TensorDetail& detail = tensor_detail_of(operation);
  require_all_defined(warp, detail, active);
  warp.require_defined(detail.shared.slot, active, "the destination of a tensor copy");
  warp.require_defined(detail.barrier.slot, active, "the mbarrier of a tensor copy");
  if (detail.is_multicast)
    warp.require_defined(detail.mask.slot, active, "the CTA mask of a tensor copy");
  for_each_lane(active, [&](int lane) { start_tensor_load(warp, operation, lane); });
  return Step::next;
}

// --- shared to global ---------------------------------------------------------------------------

// The scalar type of a map's element type, for reductions; `none` if no reduction supports it.
ScalarType scalar_of(MapElement element, bool is_bitwise) noexcept {
  switch (element) {
    case MapElement::u32:
      return is_bitwise ? ScalarType::b32 : ScalarType::u32;
    case MapElement::s32:
      return is_bitwise ? ScalarType::b32 : ScalarType::s32;
    case MapElement::u64:
      return is_bitwise ? ScalarType::b64 : ScalarType::u64;
    // Addition does not depend on the sign.
    case MapElement::s64:
      return is_bitwise ? ScalarType::b64 : ScalarType::s64;
    case MapElement::f16:
      return ScalarType::f16;
    case MapElement::bf16:
      return ScalarType::bf16;
    case MapElement::f32:
    case MapElement::f32_flush:
      return ScalarType::f32;
    case MapElement::f64:
      return ScalarType::f64;
    default:
      return ScalarType::none;
  }
}

Reduction reduction_of(const TensorDetail& detail, const TensorMapFields& map, int lane) {
  const std::string_view word = detail.reduction;
  if (word.empty()) return {};
  const bool is_bitwise = word == "and" || word == "or" || word == "xor";
  ScalarType type = scalar_of(map.element, is_bitwise);
  if (type == ScalarType::s64 && word == "add") type = ScalarType::u64;
  const Reduction reduction = find_reduction(word, type);
  if (reduction.element == nullptr)
    throw_fault(FaultKind::tensor_map, lane,
                "the map's element type has no ." + std::string(word) +
                    " reduction (PTX ISA, cp.reduce.async.bulk.tensor)");
  return reduction;
}

// A plain store writes whole units of 16 bytes. If a row ends within a unit, the box's bytes after
// the end of the row reach memory, too (observed on an H200).
std::uint32_t bytes_beyond_end(const Box& box, const BoxRow& row) noexcept {
  if (row.inside_bytes == 0) return 0;
  const auto left_of_unit =
      static_cast<std::uint32_t>(-(row.address + row.inside_bytes)) % tensor_unit_bytes;
  return std::min(left_of_unit, row_bytes(box.map) - row.inside_from - row.inside_bytes);
}

// Gathers the bytes that a store may write, each row at its offset in `to`.
void gather(const Box& box, std::uint32_t base, const BulkStore& self, std::vector<std::byte>& to) {
  SharedMemory& shared = self.issuer.warp->cta.shared;
  const Accessor who = self.issuer.accessor(self.member.read_epoch);
  const std::uint32_t width = row_bytes(box.map);
  to.resize(box.bytes);
  const bool is_whole = std::all_of(box.rows.begin(), box.rows.end(), [width](const BoxRow& row) {
    return row.inside_bytes == width;
  });
  if (is_whole) (void)shared.read(base, box.bytes, box_alignment, who, true);
  for (const BoxRow& row : box.rows) {
    for_each_piece(box, base, row, row.inside_from, row.inside_bytes,
                   [&](std::uint32_t at, std::uint32_t place, std::uint32_t bytes) {
                     if (bytes == 0) return;
                     const std::byte* const from =
                         is_whole ? shared.data(base + place)
                                  : shared.read(base + place, bytes, 1, who, true);
                     std::memcpy(to.data() + row.shared_offset + at, from, bytes);
                   });
    for_each_piece(box, base, row, row.inside_from + row.inside_bytes, bytes_beyond_end(box, row),
                   [&](std::uint32_t at, std::uint32_t place, std::uint32_t bytes) {
                     if (bytes == 0) return;
                     std::memcpy(to.data() + row.shared_offset + at,
                                 shared.read(base + place, bytes, 1, who, false), bytes);
                   });
  }
}

void write_beyond_end(GlobalMemory& memory, const Accessor& who, const Box& box, const BoxRow& row,
                      const std::byte* from) {
  const std::uint32_t bytes = bytes_beyond_end(box, row);
  if (bytes == 0) return;
  try {
    memory.write_bytes(row.address + row.inside_bytes, bytes, who, from);
  } catch (ConflictFault&) {
    throw;
  } catch (Fault& fault) {
    fault.message = "a tensor store writes whole units of 16 bytes, here " + std::to_string(bytes) +
                    " bytes behind the end of row " +
                    std::to_string(row.shared_offset / row_bytes(box.map)) +
                    " of the box: " + fault.message +
                    "; let rows end at a multiple of 16 bytes or store the last unit by elements";
    throw;
  }
}

void reduce_row(GlobalMemory& memory, const Accessor& who, const Reduction& reduction,
                std::uint64_t address, const std::byte* from, std::uint32_t bytes) {
  while (bytes != 0) {
    const bool is_chunk = address % tensor_unit_bytes == 0 && bytes >= tensor_unit_bytes;
    const std::uint32_t count = is_chunk ? tensor_unit_bytes : reduction.element_bytes;
    memory.update(address, count, who, is_chunk ? reduction.chunk : reduction.element, from,
                  nullptr);
    address += count;
    from += count;
    bytes -= count;
  }
}

// Who writes the bytes of a store: its own issuer, or a lane of the same instruction that stores
// the same box to the same place.
struct Writer {
  Issuer issuer;
  Epoch epoch;
};

void scatter(const Box& box, const Reduction& reduction, const Writer& writer,
             const std::vector<std::byte>& from) {
  GlobalMemory& memory = *writer.issuer.cluster().grid.memory;
  Accessor who = writer.issuer.accessor(writer.epoch);
  note_map_use(writer.issuer.cluster(), box.map_address, who);
  who.is_atomic = reduction.element != nullptr;
  for (const BoxRow& row : box.rows) {
    if (row.inside_bytes == 0) continue;
    const std::byte* const bytes = from.data() + row.shared_offset + row.inside_from;
    access_row(box, row, [&] {
      if (who.is_atomic)
        reduce_row(memory, who, reduction, row.address, bytes, row.inside_bytes);
      else
        memory.write_bytes(row.address, row.inside_bytes, who, bytes);
    });
    if (!who.is_atomic) write_beyond_end(memory, who, box, row, bytes + row.inside_bytes);
  }
}

// A store of one lane, for the lanes behind it.
struct LaneStore {
  std::shared_ptr<const Box> box;
  std::uint32_t source = 0;
  Writer writer;
};

bool are_twins(const LaneStore& first, const Box& box, std::uint32_t source) {
  return first.source == source && first.box->map_address == box.map_address &&
         first.box->place.start == box.place.start && first.box->place.offsets == box.place.offsets;
}

// All lanes of a warp may store one box: the bytes are the same, whichever comes last. They count
// as one write, by the first of them; a reduction adds each.
Writer writer_of(const std::vector<LaneStore>& earlier, const Box& box, std::uint32_t source,
                 Writer own, bool is_reduction) {
  if (is_reduction) return own;
  const auto twin = std::ranges::find_if(
      earlier, [&](const LaneStore& each) { return are_twins(each, box, source); });
  return twin == earlier.end() ? own : twin->writer;
}

void start_tensor_store(Warp& warp, const Operation& operation, int lane,
                        std::vector<LaneStore>& earlier) {
  const TensorDetail& detail = tensor_detail_of(operation);
  const auto box = std::make_shared<const Box>(box_of(warp, operation, lane));
  require_legal_store(box->map, box->place, lane);
  const std::uint32_t source = own_shared_offset(warp, detail.shared.value(warp, lane));
  warp.cta.shared.check_bounds(source, box->bytes, box_alignment);
  const Reduction reduction = reduction_of(detail, box->map, lane);
  const Issuer issuer = issuer_of(warp, operation, lane);
  const BulkMember member = join_bulk_group(warp, lane);
  const Writer writer =
      writer_of(earlier, *box, source, {issuer, member.write_epoch}, reduction.element != nullptr);
  earlier.push_back({box, source, writer});
  start_bulk_store(
      {.issuer = issuer,
       .member = member,
       .read = [box, source](const BulkStore& self,
                             std::vector<std::byte>& to) { gather(*box, source, self, to); },
       .write =
           [box, reduction, writer](const BulkStore&, const std::vector<std::byte>& from) {
             scatter(*box, reduction, writer, from);
           }});
}

Step run_tensor_store(Warp& warp, const Operation& operation, LaneMask active) {
  const TensorDetail& detail = tensor_detail_of(operation);
  require_all_defined(warp, detail, active);
  warp.require_defined(detail.shared.slot, active, "the source of a tensor copy");
  std::vector<LaneStore> earlier;
  for_each_lane(active, [&](int lane) { start_tensor_store(warp, operation, lane, earlier); });
  return Step::next;
}

Step run_tensor_prefetch(Warp& warp, const Operation& operation, LaneMask active) {
  require_all_defined(warp, tensor_detail_of(operation), active);
  for_each_lane(active, [&](int lane) { box_of(warp, operation, lane); });
  return Step::next;
}

// --- decoding -----------------------------------------------------------------------------------

void take_rank(Form& form, TensorDetail& detail) {
  static constexpr std::array<std::string_view, 5> words{"1d", "2d", "3d", "4d", "5d"};
  const auto found = form.take_one_of(words);
  if (!found) form.refuse("expected .1d … .5d");
  detail.rank = static_cast<std::uint32_t>(*found) + 1;
}

void take_mode(Form& form, TensorDetail& detail, bool is_store) {
  if (form.take("im2col_no_offs"))
    detail.mode = BoxMode::im2col_without_offsets;
  else if (form.take("im2col"))
    detail.mode = BoxMode::im2col;
  else
    form.take("tile");
  if (detail.mode == BoxMode::tile) return;
  if (is_store != (detail.mode == BoxMode::im2col_without_offsets))
    form.refuse("loads take .im2col, stores .im2col_no_offs");
  if (detail.rank < 3) form.refuse("im2col needs at least 3 dimensions");
}

std::vector<LaneOperand> decode_list(Form& form, const Operand& list, std::size_t count,
                                     ScalarType type) {
  if (list.kind != Operand::Kind::list || list.items.size() != count)
    form.refuse("expected a list of " + std::to_string(count));
  std::vector<LaneOperand> values;
  for (const Operand& item : list.items) values.push_back(decode_value(form, item, type));
  return values;
}

void decode_tensor(Form& form, TensorDetail& detail, const Operand& operand) {
  if (operand.kind != Operand::Kind::tensor || operand.items.size() != 2)
    form.refuse("expected [map, {coordinates}]");
  detail.map = decode_address(form, operand.items[0]);
  detail.coordinates = decode_list(form, operand.items[1], detail.rank, ScalarType::s32);
}

void decode_offsets(Form& form, TensorDetail& detail, std::size_t operand) {
  detail.offsets = decode_list(form, form.operand(operand), detail.rank - 2, ScalarType::u16);
}

void decode_load(Form& form, TensorDetail& detail) {
  if (!form.take("shared::cluster") && !form.take("shared::cta"))
    form.refuse("expected .shared::cluster or .shared::cta as destination");
  if (!form.take("global")) form.refuse("expected .global as source");
  take_mode(form, detail, false);
  if (!form.take("mbarrier::complete_tx::bytes"))
    form.refuse("expected .mbarrier::complete_tx::bytes");
  detail.is_multicast = form.take("multicast::cluster");
  if (form.take("cta_group::1") || form.take("cta_group::2"))
    form.refuse(".cta_group needs sm_100");
  const bool has_hint = take_cache_hint(form);
  form.finish();
  const bool has_offsets = detail.mode == BoxMode::im2col;
  form.expect_operands(3 + std::size_t{has_offsets} + std::size_t{detail.is_multicast} +
                       std::size_t{has_hint});
  detail.shared = decode_address(form, form.operand(0));
  decode_tensor(form, detail, form.operand(1));
  detail.barrier = decode_address(form, form.operand(2));
  if (has_offsets) decode_offsets(form, detail, 3);
  if (detail.is_multicast)
    detail.mask = decode_value(form, form.operand(3 + std::size_t{has_offsets}), ScalarType::u16);
  form.operation().execute = run_tensor_load;
}

void decode_store(Form& form, TensorDetail& detail, bool is_reduction) {
  if (!form.take("global") || !form.take("shared::cta"))
    form.refuse("expected .global.shared::cta");
  if (is_reduction) detail.reduction = take_reduction(form);
  take_mode(form, detail, true);
  if (!form.take("bulk_group")) form.refuse("expected .bulk_group");
  const bool has_hint = take_cache_hint(form);
  form.finish();
  form.expect_operands(2 + std::size_t{has_hint});
  decode_tensor(form, detail, form.operand(0));
  detail.shared = decode_address(form, form.operand(1));
  form.operation().execute = run_tensor_store;
}

void decode_prefetch(Form& form, TensorDetail& detail) {
  if (!form.take("L2") || !form.take("global")) form.refuse("expected .L2.global");
  take_mode(form, detail, false);
  const bool has_hint = take_cache_hint(form);
  form.finish();
  const bool has_offsets = detail.mode == BoxMode::im2col;
  form.expect_operands(1 + std::size_t{has_offsets} + std::size_t{has_hint});
  decode_tensor(form, detail, form.operand(0));
  if (has_offsets) decode_offsets(form, detail, 1);
  form.operation().execute = run_tensor_prefetch;
}

}  // namespace

void decode_tensor_copy(Form& form, bool is_reduction, bool is_prefetch) {
  auto detail = std::make_shared<TensorDetail>();
  take_rank(form, *detail);
  // The destination is the first state space in the opcode.
  const std::vector<std::string>& words = form.instruction().modifiers;
  const auto space = std::find_if(words.begin(), words.end(), [](const std::string& word) {
    return word == "global" || word.starts_with("shared");
  });
  if (is_prefetch)
    decode_prefetch(form, *detail);
  else if (is_reduction || (space != words.end() && *space == "global"))
    decode_store(form, *detail, is_reduction);
  else
    decode_load(form, *detail);
  form.operation().detail = std::move(detail);
}

}  // namespace gemmery::emulator
