// SPDX-License-Identifier: Apache-2.0
// cp.async.bulk.commit_group and wait_group: the groups by which a thread waits for its bulk
// stores.
#include <string>

#include "emulator/instruction/copy/copy_forms.hpp"
#include "emulator/instruction/copy/copy_operands.hpp"

namespace gemmery::emulator {
namespace {

constexpr std::uint32_t reads_only = 1;  // Operation::flags

Step commit(Warp& warp, const Operation&, LaneMask active) {
  for_each_lane(active, [&](int lane) {
    BulkGroups& groups = warp.bulk[static_cast<std::size_t>(lane)];
    ++groups.committed;
    groups.open = 0;
    std::erase_if(groups.groups, [](const auto& group) { return group.unfinished == 0; });
  });
  return Step::next;
}

// The last group that must be complete; the newest `allowed` groups may still be pending.
std::uint32_t last_awaited(const BulkGroups& groups, std::uint64_t allowed) noexcept {
  return groups.committed > allowed ? groups.committed - static_cast<std::uint32_t>(allowed) : 0;
}

bool is_complete(const BulkGroups& groups, std::uint32_t last, bool is_read_enough) noexcept {
  for (const BulkGroups::Group& group : groups.groups)
    if (group.number <= last && (is_read_enough ? group.unread : group.unfinished) != 0)
      return false;
  return true;
}

std::string describe_bulk_wait(const Warp& warp, const Fragment& fragment) {
  std::string lanes;
  for_each_lane(fragment.lanes, [&](int lane) {
    const BulkGroups& groups = warp.bulk[static_cast<std::size_t>(lane)];
    if (groups.groups.empty()) return;
    lanes += (lanes.empty() ? "lane " : ", lane ") + std::to_string(lane) + " has " +
             std::to_string(groups.groups.size()) + " not complete";
  });
  return "bulk groups: " + lanes;
}

Step wait(Warp& warp, const Operation& operation, LaneMask active) {
  const bool is_read_enough = (operation.flags & reads_only) != 0;
  bool is_done = true;
  for_each_lane(active, [&](int lane) {
    const BulkGroups& groups = warp.bulk[static_cast<std::size_t>(lane)];
    is_done =
        is_done && is_complete(groups, last_awaited(groups, operation.immediate), is_read_enough);
  });
  if (!is_done) {
    warp.describe_wait = describe_bulk_wait;
    return Step::blocked;
  }
  for_each_lane(active, [&](int lane) {
    const BulkGroups& groups = warp.bulk[static_cast<std::size_t>(lane)];
    const std::uint32_t last = last_awaited(groups, operation.immediate);
    if (groups.read_strand == no_agent || last == 0) return;
    warp.known.happened.raise(groups.read_strand, last);
    if (!is_read_enough) warp.known.happened.raise(groups.write_strand, last);
  });
  return Step::next;
}

}  // namespace

void decode_bulk_commit(Form& form) {
  form.finish();
  form.expect_operands(0);
  form.operation().execute = commit;
}

void decode_bulk_wait(Form& form) {
  Operation& operation = form.operation();
  if (form.take("read")) operation.flags |= reads_only;
  form.finish();
  form.expect_operands(1);
  if (form.operand(0).kind != Operand::Kind::immediate)
    form.refuse("the number of groups must be a constant");
  operation.immediate = form.operand(0).bits;
  operation.execute = wait;
}

}  // namespace gemmery::emulator
