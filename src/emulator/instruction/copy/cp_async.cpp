// SPDX-License-Identifier: Apache-2.0
// cp.async: 4, 8 or 16 bytes a lane from global to shared memory, the groups that a lane waits for,
// and the arrival at an mbarrier when copies complete. These copies belong to the generic proxy.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "emulator/instruction/copy/async_copy.hpp"
#include "emulator/instruction/copy/copy_forms.hpp"
#include "emulator/instruction/synchronisation/mbarrier.hpp"

namespace gemmery::emulator {
namespace {

constexpr std::uint32_t widest_copy = 16;

enum class Ignore : std::uint8_t { nothing, behind_source_size, where_predicate };

struct CopyDetail final : OperationDetail {
  LaneOperand destination, source, source_size;
  OperandSlot ignored;  // predicate
  std::uint32_t bytes = 0;
  Ignore ignore = Ignore::nothing;
};

const CopyDetail& cp_async_detail_of(const Operation& operation) {
  return static_cast<const CopyDetail&>(*operation.detail);
}

CopyGroups& groups_of(Warp& warp, int lane) {
  return warp.cp_async.lanes[static_cast<std::size_t>(lane)];
}

// --- copies -------------------------------------------------------------------------------------

// The copies of one instruction.
struct WarpCopy {
  LaneMask lanes = 0;
  std::uint32_t bytes = 0;
  std::array<std::uint64_t, lanes_per_warp> from{}, to{};
  std::array<std::uint8_t, lanes_per_warp> source_bytes{};  // the rest becomes zero
  std::array<std::uint64_t, lanes_per_warp> numbers{};      // of the LaneCopies
  AgentIndex strand = 0;
  std::uint32_t clock = 0;
};

// Returns a strand that these lanes can use, and adds one if there is none.
std::uint32_t strand_for(Warp& warp, LaneMask lanes) {
  std::vector<WarpCopies::Strand>& strands = warp.cp_async.strands;
  const auto waited_by = [&](LaneMask wanted) {
    return std::ranges::find(strands, wanted, &WarpCopies::Strand::waiting);
  };
  auto found = waited_by(lanes);
  if (found == strands.end()) found = waited_by(0);
  if (found == strands.end())
    found = strands.insert(found, {.agent = warp.cta.cluster.add_agent()});
  return static_cast<std::uint32_t>(found - strands.begin());
}

void begin_copies_together(Warp& warp, LaneMask lanes) {
  const std::uint32_t index = strand_for(warp, lanes);
  WarpCopies::Strand& strand = warp.cp_async.strands[index];
  strand.waiting = lanes;
  ++strand.clock;
  for_each_lane(lanes, [&](int lane) {
    CopyGroups& groups = groups_of(warp, lane);
    groups.copies.push_back({.strand = index, .clock = strand.clock, .number = groups.begun++});
    groups.is_open = true;
  });
}

// Lanes that have no open set of copies to wait for begin one. Those that have begun equally many
// share a strand; a lane that is an iteration of a loop ahead waits at another time and gets
// another strand.
void begin_copies(Warp& warp, LaneMask active) {
  LaneMask rest = 0;
  for_each_lane(active, [&](int lane) {
    if (!groups_of(warp, lane).is_open) rest |= LaneMask{1} << lane;
  });
  while (rest != 0) {
    const std::uint64_t begun = groups_of(warp, std::countr_zero(rest)).begun;
    LaneMask lanes = 0;
    for_each_lane(rest, [&](int lane) {
      if (groups_of(warp, lane).begun == begun) lanes |= LaneMask{1} << lane;
    });
    begin_copies_together(warp, lanes);
    rest &= ~lanes;
  }
}

void finish_copy(CopyGroups& groups, std::uint64_t number) {
  for (LaneCopies& copies : groups.copies)
    if (copies.number == number) --copies.unfinished;
}

std::uint32_t source_bytes_of(const Warp& warp, const CopyDetail& detail, int lane) {
  switch (detail.ignore) {
    case Ignore::nothing:
      return detail.bytes;
    case Ignore::where_predicate: {
      const std::byte* const at =
          (detail.ignored.is_constant ? warp.constants : warp.registers) + detail.ignored.offset;
      const LaneMask ignored = *reinterpret_cast<const LaneMask*>(at);
      return (ignored >> lane & 1) != 0 ? 0 : detail.bytes;
    }
    case Ignore::behind_source_size:
      break;
  }
  const std::uint64_t bytes = detail.source_size.value(warp, lane) & 0xffff'ffff;
  if (bytes > detail.bytes)
    throw_fault(FaultKind::illegal_instruction, lane,
                "cp.async of " + std::to_string(detail.bytes) + " bytes has a source size of " +
                    std::to_string(bytes) + ", which must not be larger");
  return static_cast<std::uint32_t>(bytes);
}

// Lanes that copy all of their bytes are read by one access.
std::uint32_t read_sources(const WarpCopy& copy, GlobalMemory& memory, const Accessor& who,
                           std::byte* values, std::uint32_t* written) {
  LaneMask whole = 0, defined = copy.lanes;
  for_each_lane(copy.lanes, [&](int lane) {
    const auto index = static_cast<std::size_t>(lane);
    const std::uint32_t bytes = copy.source_bytes[index];
    if (bytes == copy.bytes) {
      whole |= LaneMask{1} << lane;
    } else if (bytes != 0) {
      Accessor one = who;
      one.lane = static_cast<std::uint8_t>(lane);
      std::uint64_t mask = 0;
      memory.read_bytes(copy.from[index], bytes, one, values + index * widest_copy, &mask);
      written[index] = static_cast<std::uint32_t>(mask) | ~std::uint32_t{0} << bytes;
      if (~written[index] != 0) defined &= ~(LaneMask{1} << lane);
    }
  });
  if (whole == 0) return defined;
  const LaneAccess access{.active = whole, .addresses = copy.from.data(), .bytes = copy.bytes};
  std::array<std::uint32_t, lanes_per_warp> whole_written{};
  const LaneMask complete = memory.load(access, who, values, widest_copy, whole_written.data());
  for_each_lane(whole & ~complete,
                [&](int lane) { written[lane] = whole_written[static_cast<std::size_t>(lane)]; });
  return defined & (complete | ~whole);
}

void complete_copy(const Issuer& issuer, const WarpCopy& copy) {
  Warp& warp = *issuer.warp;
  const Cluster& cluster = issuer.cluster();
  const Accessor who =
      issuer.accessor(Epoch(cluster.index, copy.strand, copy.clock), Proxy::generic);
  alignas(64) std::array<std::byte, lanes_per_warp * widest_copy> values{};
  std::array<std::uint32_t, lanes_per_warp> written{};
  const LaneMask defined =
      read_sources(copy, *cluster.grid.memory, who, values.data(), written.data());
  const LaneAccess access{.active = copy.lanes, .addresses = copy.to.data(), .bytes = copy.bytes};
  warp.cta.shared.store(access, who, values.data(), widest_copy, defined, written.data());
  for_each_lane(copy.lanes, [&](int lane) {
    finish_copy(groups_of(warp, lane), copy.numbers[static_cast<std::size_t>(lane)]);
  });
}

// Lanes whose clocks differ become separate copies, because all bytes of one copy have one epoch.
void start_copies(Warp& warp, const Operation& operation, const WarpCopy& all) {
  const Issuer issuer = issuer_of(warp, operation, std::countr_zero(all.lanes));
  const auto newest = [&](int lane) -> const LaneCopies& {
    return groups_of(warp, lane).copies.back();
  };
  for (LaneMask rest = all.lanes; rest != 0;) {
    const LaneCopies& first = newest(std::countr_zero(rest));
    WarpCopy copy = all;
    copy.strand = warp.cp_async.strands[first.strand].agent;
    copy.clock = first.clock;
    copy.lanes = 0;
    for_each_lane(rest, [&](int lane) {
      if (newest(lane).strand == first.strand && newest(lane).clock == first.clock)
        copy.lanes |= LaneMask{1} << lane;
    });
    rest &= ~copy.lanes;
    issuer.start([issuer, copy](Cluster&) { complete_copy(issuer, copy); });
  }
}

Step copy_lanes(Warp& warp, const Operation& operation, LaneMask active) {
  const CopyDetail& detail = cp_async_detail_of(operation);
  warp.require_defined(detail.destination.slot, active, "the shared address of cp.async");
  warp.require_defined(detail.source.slot, active, "the global address of cp.async");
  if (detail.ignore == Ignore::behind_source_size)
    warp.require_defined(detail.source_size.slot, active, "the source size of cp.async");
  if (detail.ignore == Ignore::where_predicate)
    warp.require_defined(detail.ignored, active, "what cp.async ignores");
  WarpCopy copy{.lanes = active, .bytes = detail.bytes};
  for_each_lane(active, [&](int lane) {
    const auto index = static_cast<std::size_t>(lane);
    copy.from[index] = detail.source.value(warp, lane);
    copy.to[index] = own_shared_offset(warp, detail.destination.value(warp, lane));
    copy.source_bytes[index] = static_cast<std::uint8_t>(source_bytes_of(warp, detail, lane));
    require_multiple(copy.from[index], detail.bytes, lane, "the global source of cp.async,");
    require_multiple(copy.to[index], detail.bytes, lane, "the shared destination of cp.async,");
  });
  begin_copies(warp, active);
  for_each_lane(active, [&](int lane) {
    LaneCopies& newest = groups_of(warp, lane).copies.back();
    ++newest.unfinished;
    copy.numbers[static_cast<std::size_t>(lane)] = newest.number;
  });
  start_copies(warp, operation, copy);
  return Step::next;
}

// --- groups -------------------------------------------------------------------------------------

bool has_uncommitted(const CopyGroups& groups) noexcept {
  return !groups.copies.empty() && !groups.copies.back().ends_group;
}

// Commits the open group, which may be empty.
void commit(CopyGroups& groups) {
  if (!has_uncommitted(groups)) groups.copies.push_back({.number = groups.begun++});
  groups.copies.back().ends_group = true;
  groups.is_open = false;
}

Step commit_group(Warp& warp, const Operation&, LaneMask active) {
  for_each_lane(active, [&](int lane) { commit(groups_of(warp, lane)); });
  return Step::next;
}

// The number of a lane's copies, oldest first, that must be complete if the newest `allowed`
// committed groups may be pending.
std::size_t awaited(const CopyGroups& groups, std::uint64_t allowed) noexcept {
  std::size_t count = groups.copies.size();
  for (std::uint64_t newer = 0; count > 0; --count)
    if (groups.copies[count - 1].ends_group && newer++ == allowed) break;
  return count;
}

bool is_complete(const CopyGroups& groups, std::size_t count) noexcept {
  return std::all_of(groups.copies.begin(),
                     groups.copies.begin() + static_cast<std::ptrdiff_t>(count),
                     [](const LaneCopies& copies) { return copies.unfinished == 0; });
}

// The warp's knowledge of each strand advances to the first copy that some lane has not waited for.
void note_waited(Warp& warp) {
  std::vector<WarpCopies::Strand>& strands = warp.cp_async.strands;
  std::vector<std::uint32_t> waited(strands.size());
  for (std::size_t index = 0; index < strands.size(); ++index) {
    waited[index] = strands[index].clock;
    strands[index].waiting = 0;
  }
  for_each_lane(all_lanes, [&](int lane) {
    for (const LaneCopies& copies : groups_of(warp, lane).copies) {
      if (copies.clock == 0) continue;
      waited[copies.strand] = std::min(waited[copies.strand], copies.clock - 1);
      strands[copies.strand].waiting |= LaneMask{1} << lane;
    }
  });
  for (std::size_t index = 0; index < strands.size(); ++index)
    warp.known.happened.raise(strands[index].agent, waited[index]);
}

std::string describe_cp_async_wait(const Warp& warp, const Fragment& fragment) {
  std::size_t most = 0;
  for_each_lane(fragment.lanes, [&](int lane) {
    const auto& copies = warp.cp_async.lanes[static_cast<std::size_t>(lane)].copies;
    most = std::max(
        most, static_cast<std::size_t>(std::ranges::count(copies, true, &LaneCopies::ends_group)));
  });
  return "cp.async groups: up to " + std::to_string(most) + " of a lane are under way";
}

Step wait_for_groups(Warp& warp, LaneMask active, std::uint64_t allowed) {
  bool is_done = true;
  for_each_lane(active, [&](int lane) {
    const CopyGroups& groups = groups_of(warp, lane);
    is_done = is_done && is_complete(groups, awaited(groups, allowed));
  });
  if (!is_done) {
    warp.describe_wait = describe_cp_async_wait;
    return Step::blocked;
  }
  for_each_lane(active, [&](int lane) {
    std::vector<LaneCopies>& copies = groups_of(warp, lane).copies;
    const std::size_t count = awaited(groups_of(warp, lane), allowed);
    copies.erase(copies.begin(), copies.begin() + static_cast<std::ptrdiff_t>(count));
  });
  note_waited(warp);
  return Step::next;
}

Step wait_group(Warp& warp, const Operation& operation, LaneMask active) {
  return wait_for_groups(warp, active, operation.immediate);
}

// Waits for uncommitted copies, too. If the wait blocks and commits again on resumption, that is
// harmless.
Step wait_all(Warp& warp, const Operation&, LaneMask active) {
  for_each_lane(active, [&](int lane) {
    CopyGroups& groups = groups_of(warp, lane);
    if (has_uncommitted(groups)) commit(groups);
  });
  return wait_for_groups(warp, active, 0);
}

// --- mbarrier -----------------------------------------------------------------------------------

constexpr std::uint32_t without_increment = 1;  // Operation::flags: .noinc

bool is_under_way(const CopyGroups& groups, std::uint64_t before) noexcept {
  return std::ranges::any_of(groups.copies, [before](const LaneCopies& copies) {
    return copies.number < before && copies.unfinished != 0;
  });
}

// Arrives on behalf of a lane once its earlier copies are complete; until then it is scheduled
// again.
void arrive_when_complete(const Issuer& issuer, std::uint32_t barrier, std::uint64_t before) {
  issuer.start([issuer, barrier, before](Cluster& cluster) {
    Warp& warp = *issuer.warp;
    if (is_under_way(groups_of(warp, issuer.lane), before)) {
      arrive_when_complete(issuer, barrier, before);
      return;
    }
    async_arrive(cluster, warp.cta, barrier, *issuer.known);
  });
}

Step arrive(Warp& warp, const Operation& operation, LaneMask active) {
  warp.require_defined(operation.slot[0], active, "the mbarrier of cp.async.mbarrier.arrive");
  const CopyDetail& detail = cp_async_detail_of(operation);
  for_each_lane(active, [&](int lane) {
    const std::uint32_t barrier = own_shared_offset(warp, detail.destination.value(warp, lane));
    CopyGroups& groups = groups_of(warp, lane);
    groups.is_open = false;  // the arrival does not wait for copies issued after it
    if ((operation.flags & without_increment) == 0) add_pending_arrival(warp.cta, barrier);
    Issuer issuer = issuer_of(warp, operation, lane);
    Knowledge arrived = *issuer.known;
    for (const LaneCopies& copies : groups.copies)
      if (copies.clock != 0)
        arrived.happened.raise(warp.cp_async.strands[copies.strand].agent, copies.clock);
    issuer.known = std::make_shared<const Knowledge>(std::move(arrived));
    arrive_when_complete(issuer, barrier, groups.begun);
  });
  return Step::next;
}

// --- decoding -----------------------------------------------------------------------------------

std::uint32_t constant_of(Form& form, std::size_t operand, const char* what) {
  if (form.operand(operand).kind != Operand::Kind::immediate)
    form.refuse(std::string(what) + " must be a constant");
  return static_cast<std::uint32_t>(form.operand(operand).bits);
}

void decode_arrive(Form& form) {
  if (!form.take("arrive")) form.refuse("expected cp.async.mbarrier.arrive");
  auto detail = std::make_shared<CopyDetail>();
  if (form.take("noinc")) form.operation().flags |= without_increment;
  if (!form.take("shared::cta")) form.take("shared");
  if (!form.take("b64")) form.refuse("expected .b64");
  form.finish();
  form.expect_operands(1);
  detail->destination = decode_address(form, form.operand(0));
  form.operation().execute = arrive;
  form.operation().detail = std::move(detail);
}

// The operand after the size: a number of bytes, or a predicate.
void decode_ignored(Form& form, CopyDetail& detail, const Operand& operand) {
  const bool is_predicate = operand.kind == Operand::Kind::reg &&
                            form.context().register_type(operand.reg) == ScalarType::pred;
  if (is_predicate) {
    if (operand.is_negated) form.refuse("a negated predicate is not known here");
    detail.ignore = Ignore::where_predicate;
    detail.ignored = form.context().source_slot(operand, ScalarType::pred);
    form.operation().reads.push_back(detail.ignored.reg);
    return;
  }
  detail.ignore = Ignore::behind_source_size;
  detail.source_size = decode_value(form, operand, ScalarType::u32);
}

void decode_copy(Form& form) {
  auto detail = std::make_shared<CopyDetail>();
  const bool bypasses_l1 = form.take("cg");
  if (!bypasses_l1 && !form.take("ca")) form.refuse("expected .ca or .cg");
  if (!form.take("shared::cta") && !form.take("shared")) form.refuse("expected .shared");
  if (!form.take("global")) form.refuse("expected .global");
  const bool has_hint = take_cache_hint(form);
  static constexpr std::array<std::string_view, 3> prefetches{"L2::64B", "L2::128B", "L2::256B"};
  form.take_one_of(prefetches);
  form.finish();
  const std::size_t count = form.operand_count() - std::size_t{has_hint};
  if (count != 3 && count != 4) form.refuse("expected 3 or 4 operands");
  detail->destination = decode_address(form, form.operand(0));
  detail->source = decode_address(form, form.operand(1));
  detail->bytes = constant_of(form, 2, "the size");
  if (detail->bytes != 16 && (bypasses_l1 || (detail->bytes != 4 && detail->bytes != 8)))
    form.refuse("the size must be 4, 8 or 16, and 16 with .cg");
  if (count == 4) decode_ignored(form, *detail, form.operand(3));
  form.operation().execute = copy_lanes;
  form.operation().detail = std::move(detail);
}

}  // namespace

void decode_cp_async(Form& form) {
  Operation& operation = form.operation();
  if (form.take("commit_group")) {
    form.finish();
    form.expect_operands(0);
    operation.execute = commit_group;
  } else if (form.take("wait_group")) {
    form.finish();
    form.expect_operands(1);
    operation.immediate = constant_of(form, 0, "the number of groups");
    operation.execute = wait_group;
  } else if (form.take("wait_all")) {
    form.finish();
    form.expect_operands(0);
    operation.execute = wait_all;
  } else if (form.take("mbarrier")) {
    decode_arrive(form);
  } else {
    decode_copy(form);
  }
}

}  // namespace gemmery::emulator
