// SPDX-License-Identifier: Apache-2.0
// cp.async.bulk and cp.reduce.async.bulk: contiguous bytes between global memory, the CTA's own
// shared memory and that of the cluster; and their prefetch.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "emulator/instruction/copy/async_copy.hpp"
#include "emulator/instruction/copy/copy_forms.hpp"
#include "emulator/instruction/memory/reduction.hpp"

namespace gemmery::emulator {
namespace {

constexpr std::uint32_t bulk_alignment = 16;

struct BulkDetail final : OperationDetail {
  LaneOperand destination, source, size, barrier, mask;
  bool is_multicast = false;
  Reduction reduction;  // `element` null for a plain copy
};

const BulkDetail& bulk_detail_of(const Operation& operation) {
  return static_cast<const BulkDetail&>(*operation.detail);
}

void require_all_defined(const Warp& warp, LaneMask active,
                         std::initializer_list<const LaneOperand*> operands) {
  for (const LaneOperand* operand : operands)
    warp.require_defined(operand->slot, active, "the operands of a bulk copy");
}

std::uint32_t size_of(const Warp& warp, const BulkDetail& detail, int lane) {
  const std::uint64_t bytes = detail.size.value(warp, lane) & 0xffff'ffff;
  require_multiple(bytes, bulk_alignment, lane, "the size of a bulk copy,");
  return static_cast<std::uint32_t>(bytes);
}

// --- global to shared ---------------------------------------------------------------------------

void start_load(Warp& warp, const Operation& operation, int lane) {
  const BulkDetail& detail = bulk_detail_of(operation);
  const std::uint32_t bytes = size_of(warp, detail, lane);
  const std::uint64_t source = detail.source.value(warp, lane);
  require_multiple(source, bulk_alignment, lane, "the global source of a bulk copy,");
  Landing landing = landing_of(warp, lane, detail.destination.value(warp, lane),
                               detail.barrier.value(warp, lane), bytes, bulk_alignment);
  if (detail.is_multicast)
    multicast(warp, lane, static_cast<std::uint32_t>(detail.mask.value(warp, lane)), landing);
  const Issuer issuer = issuer_of(warp, operation, lane);
  issuer.start([issuer, landing, source](Cluster& cluster) {
    std::vector<std::byte> staged(landing.bytes);
    std::vector<std::uint32_t> unwritten;
    read_global(cluster, source, landing.bytes, issuer.accessor(landing_epoch(cluster, landing)),
                staged.data(), 0, unwritten);
    land(issuer, landing, staged.data(), unwritten);
  });
}

Step run_bulk_load(Warp& warp, const Operation& operation, LaneMask active) {
  const BulkDetail& detail = bulk_detail_of(operation);
  require_all_defined(warp, active,
                      {&detail.destination, &detail.source, &detail.size, &detail.barrier});
  if (detail.is_multicast) require_all_defined(warp, active, {&detail.mask});
  for_each_lane(active, [&](int lane) { start_load(warp, operation, lane); });
  return Step::next;
}

// --- shared to shared of the cluster ------------------------------------------------------------

void start_push(Warp& warp, const Operation& operation, int lane) {
  const BulkDetail& detail = bulk_detail_of(operation);
  const std::uint32_t bytes = size_of(warp, detail, lane);
  const std::uint32_t source = own_shared_offset(warp, detail.source.value(warp, lane));
  warp.cta.shared.check_bounds(source, bytes, bulk_alignment);
  Landing landing = landing_of(warp, lane, detail.destination.value(warp, lane),
                               detail.barrier.value(warp, lane), bytes, bulk_alignment);
  landing.is_atomic = detail.reduction.element != nullptr;
  const Issuer issuer = issuer_of(warp, operation, lane);
  const Reduction reduction = detail.reduction;
  issuer.start([issuer, landing, source, reduction](Cluster& cluster) {
    const Accessor who = issuer.accessor(landing_epoch(cluster, landing));
    SharedMemory& own = issuer.warp->cta.shared;
    const std::byte* const from = own.read(source, landing.bytes, bulk_alignment, who, true);
    std::vector<std::byte> staged(from, from + landing.bytes);
    if (reduction.element != nullptr) staged = reduced(cluster, landing, who, reduction, staged);
    land(issuer, landing, staged.data(), {});
  });
}

Step run_bulk_push(Warp& warp, const Operation& operation, LaneMask active) {
  const BulkDetail& detail = bulk_detail_of(operation);
  require_all_defined(warp, active,
                      {&detail.destination, &detail.source, &detail.size, &detail.barrier});
  for_each_lane(active, [&](int lane) { start_push(warp, operation, lane); });
  return Step::next;
}

// --- shared to global ---------------------------------------------------------------------------

void write_or_reduce(const BulkStore& self, const Reduction& reduction, std::uint64_t address,
                     const std::vector<std::byte>& bytes) {
  GlobalMemory& memory = *self.issuer.cluster().grid.memory;
  Accessor who = self.issuer.accessor(self.member.write_epoch);
  if (reduction.element == nullptr) {
    memory.write_bytes(address, static_cast<std::uint32_t>(bytes.size()), who, bytes.data());
    return;
  }
  who.is_atomic = true;
  for (std::size_t at = 0; at < bytes.size(); at += bulk_alignment)
    memory.update(address + at, bulk_alignment, who, reduction.chunk, bytes.data() + at, nullptr);
}

void start_store(Warp& warp, const Operation& operation, int lane) {
  const BulkDetail& detail = bulk_detail_of(operation);
  const std::uint32_t bytes = size_of(warp, detail, lane);
  const std::uint64_t destination = detail.destination.value(warp, lane);
  require_multiple(destination, bulk_alignment, lane, "the global destination of a bulk copy,");
  const std::uint32_t source = own_shared_offset(warp, detail.source.value(warp, lane));
  warp.cta.shared.check_bounds(source, bytes, bulk_alignment);
  const Reduction reduction = detail.reduction;
  start_bulk_store(
      {.issuer = issuer_of(warp, operation, lane),
       .member = join_bulk_group(warp, lane),
       .read =
           [source, bytes](const BulkStore& self, std::vector<std::byte>& to) {
             const std::byte* const from = self.issuer.warp->cta.shared.read(
                 source, bytes, bulk_alignment, self.issuer.accessor(self.member.read_epoch), true);
             to.assign(from, from + bytes);
           },
       .write =
           [destination, reduction](const BulkStore& self, const std::vector<std::byte>& from) {
             write_or_reduce(self, reduction, destination, from);
           }});
}

Step run_bulk_store(Warp& warp, const Operation& operation, LaneMask active) {
  const BulkDetail& detail = bulk_detail_of(operation);
  require_all_defined(warp, active, {&detail.destination, &detail.source, &detail.size});
  for_each_lane(active, [&](int lane) { start_store(warp, operation, lane); });
  return Step::next;
}

// --- prefetch -----------------------------------------------------------------------------------

Step run_bulk_prefetch(Warp& warp, const Operation& operation, LaneMask active) {
  const BulkDetail& detail = bulk_detail_of(operation);
  require_all_defined(warp, active, {&detail.source, &detail.size});
  for_each_lane(active, [&](int lane) {
    const std::uint32_t bytes = size_of(warp, detail, lane);
    const std::uint64_t address = detail.source.value(warp, lane);
    require_multiple(address, bulk_alignment, lane, "the source of a bulk prefetch,");
    const auto extent = warp.cta.cluster.grid.memory->find(address);
    if (!extent || address + bytes > extent->address + extent->bytes)
      throw_fault(FaultKind::out_of_bounds, lane,
                  "bulk prefetch of " + std::to_string(bytes) + " bytes at global address " +
                      hexadecimal(address) + " is not inside an allocation; check the index");
  });
  return Step::next;
}

// --- decoding -----------------------------------------------------------------------------------

ScalarType take_reduction_type(Form& form, std::string_view word) {
  const bool keeps_subnormals = form.take("noftz");
  const ScalarType type = form.take_type();
  const bool is_half = type == ScalarType::f16 || type == ScalarType::bf16;
  if (keeps_subnormals != (is_half && word == "add"))
    form.refuse(".noftz belongs to the addition of .f16 and .bf16, and must stand there");
  return type;
}

Reduction take_bulk_reduction(Form& form, bool is_into_shared) {
  const std::string_view word = take_reduction(form);
  const ScalarType type = take_reduction_type(form, word);
  const Reduction reduction = find_reduction(word, type);
  const bool is_float_or_wide_extreme =
      is_float(type) || bits_of(type) == 16 || (bits_of(type) == 64 && word != "add");
  if (reduction.element == nullptr || (is_into_shared && is_float_or_wide_extreme))
    form.refuse("." + std::string(word) + "." + std::string(name(type)) +
                " is no reduction of this copy");
  return reduction;
}

void decode_into_shared(Form& form, BulkDetail& detail, bool is_reduction, bool is_into_cluster) {
  const bool is_push = form.take("shared::cta");
  if (!is_push && !form.take("global")) form.refuse("expected .global or .shared::cta as source");
  if (!form.take("mbarrier::complete_tx::bytes"))
    form.refuse("expected .mbarrier::complete_tx::bytes");
  if (is_reduction && !is_push) form.refuse("reductions into shared memory come from .shared::cta");
  if (is_push && !is_into_cluster) form.refuse("expected .shared::cluster as destination");
  if (is_reduction) detail.reduction = take_bulk_reduction(form, true);
  if (!is_push) detail.is_multicast = form.take("multicast::cluster");
  const bool has_hint = !is_push && take_cache_hint(form);
  form.finish();
  form.expect_operands(4 + std::size_t{detail.is_multicast} + std::size_t{has_hint});
  detail.destination = decode_address(form, form.operand(0));
  detail.source = decode_address(form, form.operand(1));
  detail.size = decode_value(form, form.operand(2), ScalarType::u32);
  detail.barrier = decode_address(form, form.operand(3));
  if (detail.is_multicast) detail.mask = decode_value(form, form.operand(4), ScalarType::u16);
  form.operation().execute = is_push ? run_bulk_push : run_bulk_load;
}

void decode_into_global(Form& form, BulkDetail& detail, bool is_reduction) {
  if (!form.take("shared::cta")) form.refuse("expected .shared::cta as source");
  if (!form.take("bulk_group")) form.refuse("expected .bulk_group");
  if (form.take("cp_mask")) form.refuse("byte masks need sm_100");
  if (is_reduction) detail.reduction = take_bulk_reduction(form, false);
  const bool has_hint = take_cache_hint(form);
  form.finish();
  form.expect_operands(3 + std::size_t{has_hint});
  detail.destination = decode_address(form, form.operand(0));
  detail.source = decode_address(form, form.operand(1));
  detail.size = decode_value(form, form.operand(2), ScalarType::u32);
  form.operation().execute = run_bulk_store;
}

void decode_prefetch(Form& form, BulkDetail& detail) {
  if (!form.take("L2") || !form.take("global")) form.refuse("expected .L2.global");
  const bool has_hint = take_cache_hint(form);
  form.finish();
  form.expect_operands(2 + std::size_t{has_hint});
  detail.source = decode_address(form, form.operand(0));
  detail.size = decode_value(form, form.operand(1), ScalarType::u32);
  form.operation().execute = run_bulk_prefetch;
}

}  // namespace

void decode_bulk_copy(Form& form, bool is_reduction) {
  auto detail = std::make_shared<BulkDetail>();
  // The destination comes first in the opcode, so the first state space found is the destination
  // (`.shared::cta` may be either).
  const std::vector<std::string>& words = form.instruction().modifiers;
  const auto first = std::find_if(words.begin(), words.end(), [](const std::string& word) {
    return word == "prefetch" || word == "global" || word.starts_with("shared");
  });
  const std::string_view destination = first == words.end() ? std::string_view{} : *first;
  if (destination == "prefetch" && form.take("prefetch")) {
    decode_prefetch(form, *detail);
  } else if (destination == "global" && form.take("global")) {
    decode_into_global(form, *detail, is_reduction);
  } else if (!destination.empty() && form.take(destination)) {
    decode_into_shared(form, *detail, is_reduction, destination == "shared::cluster");
  } else {
    form.refuse("expected a destination: .global, .shared::cluster or .shared::cta");
  }
  form.operation().detail = std::move(detail);
}

}  // namespace gemmery::emulator
