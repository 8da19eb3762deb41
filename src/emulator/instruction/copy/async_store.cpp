// SPDX-License-Identifier: Apache-2.0
// st.async and red.async: store registers to shared memory of the cluster, or combine them with
// what is there, and count the bytes at an mbarrier there when they arrive.
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/instruction/copy/async_copy.hpp"
#include "emulator/instruction/copy/copy_forms.hpp"

namespace gemmery::emulator {
namespace {

constexpr std::uint32_t widest_store = 16;  // bytes of a lane

struct AsyncStoreDetail final : OperationDetail {
  LaneOperand address, barrier;
  std::array<LaneOperand, 4> values;
  std::uint32_t element_bytes = 4;
  std::uint32_t count = 1;  // of elements

  std::uint32_t bytes() const noexcept { return element_bytes * count; }
};

const AsyncStoreDetail& async_store_detail_of(const Operation& operation) {
  return static_cast<const AsyncStoreDetail&>(*operation.detail);
}

// Consecutive bytes of neighbouring lanes travel as one store. Counting each lane's bytes
// separately would have the same effect as counting them at once.
struct Run {
  Landing landing;
  std::vector<std::byte> bytes;
  std::vector<std::uint32_t> unwritten;  // offsets of elements that were never written

  bool continues_with(const Landing& next) const noexcept {
    return next.ranks == landing.ranks && next.barrier == landing.barrier &&
           next.offset == landing.offset + landing.bytes;
  }
};

void append_values(const Warp& warp, const AsyncStoreDetail& detail, int lane, Run& run) {
  for (std::uint32_t at = 0; at < detail.count; ++at) {
    const LaneOperand& value = detail.values[at];
    const std::uint64_t bits = value.value(warp, lane);
    const auto place = static_cast<std::uint32_t>(run.bytes.size());
    if ((warp.defined_lanes(value.slot) >> lane & 1) == 0)
      for (std::uint32_t byte = 0; byte < detail.element_bytes; ++byte)
        run.unwritten.push_back(place + byte);
    run.bytes.resize(place + detail.element_bytes);
    std::memcpy(run.bytes.data() + place, &bits, detail.element_bytes);
  }
}

void start(Warp& warp, const Operation& operation, int lane, Run run) {
  if (run.bytes.empty()) return;
  const Issuer issuer = issuer_of(warp, operation, lane);
  issuer.start([issuer, run = std::move(run)](Cluster&) {
    land(issuer, run.landing, run.bytes.data(), run.unwritten);
  });
}

Step run_async_store(Warp& warp, const Operation& operation, LaneMask active) {
  const AsyncStoreDetail& detail = async_store_detail_of(operation);
  for (const LaneOperand* operand : {&detail.address, &detail.barrier})
    warp.require_defined(operand->slot, active, "where st.async stores and what counts it");
  Run run;
  int first = 0;  // first lane of the run
  for_each_lane(active, [&](int lane) {
    const Landing landing =
        landing_of(warp, lane, detail.address.value(warp, lane), detail.barrier.value(warp, lane),
                   detail.bytes(), detail.bytes());
    if (run.bytes.empty() || !run.continues_with(landing)) {
      start(warp, operation, first, std::exchange(run, Run{}));
      run.landing = landing;
      first = lane;
    } else {
      run.landing.bytes += landing.bytes;
    }
    append_values(warp, detail, lane, run);
  });
  start(warp, operation, first, std::move(run));
  return Step::next;
}

// --- reductions ---------------------------------------------------------------------------------

struct AsyncReductionDetail final : OperationDetail {
  LaneOperand address, value, barrier;
  Reduction reduction;
};

void start_reduction(Warp& warp, const Operation& operation, int lane) {
  const auto& detail = static_cast<const AsyncReductionDetail&>(*operation.detail);
  const std::uint32_t bytes = detail.reduction.element_bytes;
  Landing landing = landing_of(warp, lane, detail.address.value(warp, lane),
                               detail.barrier.value(warp, lane), bytes, bytes);
  landing.is_atomic = true;
  landing.proxy = Proxy::generic;
  const Issuer issuer = issuer_of(warp, operation, lane);
  const std::uint64_t operand = detail.value.value(warp, lane);
  issuer.start([issuer, landing, operand, reduction = detail.reduction](Cluster& cluster) {
    const Accessor who = issuer.accessor(landing_epoch(cluster, landing), Proxy::generic);
    const std::vector<std::byte> values =
        reduced(cluster, landing, who, reduction, std::as_bytes(std::span(&operand, 1)));
    land(issuer, landing, values.data(), {});
  });
}

Step reduce(Warp& warp, const Operation& operation, LaneMask active) {
  const auto& detail = static_cast<const AsyncReductionDetail&>(*operation.detail);
  for (const LaneOperand* operand : {&detail.address, &detail.value, &detail.barrier})
    warp.require_defined(operand->slot, active, "what red.async adds, where, and what counts it");
  for_each_lane(active, [&](int lane) { start_reduction(warp, operation, lane); });
  return Step::next;
}

// PTX ISA, red.async: fewer types than cp.reduce.async.bulk.
Reduction take_async_reduction(Form& form) {
  const std::string_view word = take_reduction(form);
  const ScalarType type = form.take_type();
  const bool is_wide = type == ScalarType::u64 && word == "add";
  const Reduction reduction = find_reduction(word, type);
  if (reduction.element == nullptr || is_float(type) || (bits_of(type) != 32 && !is_wide))
    form.refuse("." + std::string(word) + " of ." + std::string(name(type)) +
                " is no reduction of red.async");
  return reduction;
}

// --- decoding -----------------------------------------------------------------------------------

void decode_values(Form& form, AsyncStoreDetail& detail, ScalarType type) {
  const Operand& operand = form.operand(1);
  const bool is_list = operand.kind == Operand::Kind::list;
  const std::size_t given = is_list ? operand.items.size() : 1;
  if (given != detail.count || is_list != (detail.count > 1))
    form.refuse("it takes as many registers as its vector has elements");
  for (std::size_t at = 0; at < given; ++at)
    detail.values[at] = decode_value(form, is_list ? operand.items[at] : operand, type);
}

}  // namespace

void decode_async_store(Form& form) {
  auto detail = std::make_shared<AsyncStoreDetail>();
  form.take("weak");
  if (!form.take("shared::cluster")) form.refuse("expected .shared::cluster");
  if (!form.take("mbarrier::complete_tx::bytes"))
    form.refuse("expected .mbarrier::complete_tx::bytes");
  constexpr std::string_view vectors[] = {"v2", "v4"};
  if (const auto vector = form.take_one_of(vectors)) detail->count = 2U << *vector;
  const ScalarType type = form.take_type();
  form.finish();
  detail->element_bytes = static_cast<std::uint32_t>(bytes_of(type));
  if (detail->element_bytes < 4 || detail->bytes() > widest_store)
    form.refuse("expected elements of 32 or 64 bits, and at most 16 bytes a lane");
  form.expect_operands(3);
  detail->address = decode_address(form, form.operand(0));
  decode_values(form, *detail, untyped(static_cast<int>(8 * detail->element_bytes)));
  detail->barrier = decode_address(form, form.operand(2));
  Operation& operation = form.operation();
  operation.execute = run_async_store;
  operation.has_side_effect = true;
  operation.propagates_definedness = false;
  operation.detail = std::move(detail);
}

void decode_async_reduction(Form& form) {
  auto detail = std::make_shared<AsyncReductionDetail>();
  for (const std::string_view word :
       {"relaxed", "cluster", "shared::cluster", "mbarrier::complete_tx::bytes"})
    if (!form.take(word)) form.refuse("expected ." + std::string(word));
  detail->reduction = take_async_reduction(form);
  form.finish();
  form.expect_operands(3);
  const int bits = static_cast<int>(8 * detail->reduction.element_bytes);
  detail->address = decode_address(form, form.operand(0));
  detail->value = decode_value(form, form.operand(1), untyped(bits));
  detail->barrier = decode_address(form, form.operand(2));
  Operation& operation = form.operation();
  operation.execute = reduce;
  operation.has_side_effect = true;
  operation.propagates_definedness = false;
  operation.detail = std::move(detail);
}

}  // namespace gemmery::emulator
