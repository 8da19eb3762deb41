// SPDX-License-Identifier: Apache-2.0
// Joins vector clocks.
#include "emulator/check/clock.hpp"

#include <algorithm>
#include <functional>

namespace gemmery::emulator {
namespace {

using Clocks = std::vector<std::uint32_t>;

void join_clocks(Clocks& to, const Clocks& from) {
  if (to.size() < from.size()) to.resize(from.size());
  std::uint32_t* const at = to.data();
  const std::uint32_t* const with = from.data();
  for (std::size_t agent = 0; agent < from.size(); ++agent) {
    at[agent] = std::max(at[agent], with[agent]);
  }
}

// True if joining `those` to `these` changes nothing.
bool covers(const Clocks& these, const Clocks& those) noexcept {
  if (&these == &those) return true;
  const auto common =
      those.begin() + static_cast<std::ptrdiff_t>(std::min(these.size(), those.size()));
  return std::equal(those.begin(), common, these.begin(), std::less_equal<>{}) &&
         std::all_of(common, those.end(), [](std::uint32_t clock) { return clock == 0; });
}

// The one of the two that covers the other, or new clocks.
std::shared_ptr<const Clocks> joined(const std::shared_ptr<const Clocks>& a,
                                     const std::shared_ptr<const Clocks>& b) {
  if (covers(*a, *b)) return a;
  if (covers(*b, *a)) return b;
  auto both = std::make_shared<Clocks>(*a);
  join_clocks(*both, *b);
  return both;
}

}  // namespace

void VectorClock::raise(AgentIndex agent, std::uint32_t clock) {
  if (agent >= clocks_.size()) clocks_.resize(agent + 1);
  clocks_[agent] = std::max(clocks_[agent], clock);
}

void VectorClock::set(AgentIndex agent, std::uint32_t clock) {
  if (agent >= clocks_.size()) clocks_.resize(agent + 1);
  clocks_[agent] = clock;
}

void VectorClock::join(const VectorClock& other) {
  join_clocks(clocks_, other.clocks_);
  join_foreign_list(other.foreign_);
}

void VectorClock::join_foreign(const VectorClock& other, std::uint32_t other_cluster,
                               std::uint32_t own_cluster) {
  if (other_cluster == own_cluster) return join(other);
  if (other.foreign_ != nullptr) {
    if (const Foreign* const own = find(*other.foreign_, own_cluster))
      join_clocks(clocks_, *own->clocks);
  }
  join_foreign_list(other.foreign_);
  join_cluster(other_cluster, other.clocks_);
}

bool VectorClock::knows_foreign(Epoch epoch) const noexcept {
  if (foreign_ == nullptr) return false;
  const Foreign* const known = find(*foreign_, epoch.cluster());
  return known != nullptr && epoch.agent() < known->clocks->size() &&
         (*known->clocks)[epoch.agent()] >= epoch.clock();
}

// --- clocks of other clusters -------------------------------------------------------------------

const VectorClock::Foreign* VectorClock::find(const ForeignList& list,
                                              std::uint32_t cluster) noexcept {
  const auto found = std::ranges::lower_bound(list, cluster, {}, &Foreign::cluster);
  return found != list.end() && found->cluster == cluster ? &*found : nullptr;
}

bool VectorClock::covers(const ForeignList& these, const ForeignList& those) noexcept {
  if (these.size() < those.size()) return false;
  auto mine = these.begin();
  for (const Foreign& theirs : those) {
    while (mine != these.end() && mine->cluster < theirs.cluster) ++mine;
    if (mine == these.end() || mine->cluster != theirs.cluster) return false;
    if (!emulator::covers(*mine->clocks, *theirs.clocks)) return false;
  }
  return true;
}

VectorClock::ForeignList VectorClock::joined(const ForeignList& a, const ForeignList& b) {
  ForeignList both;
  both.reserve(a.size() + b.size());
  auto mine = a.begin();
  for (const Foreign& theirs : b) {
    for (; mine != a.end() && mine->cluster < theirs.cluster; ++mine) both.push_back(*mine);
    if (mine == a.end() || mine->cluster != theirs.cluster) {
      both.push_back(theirs);
    } else {
      both.push_back({theirs.cluster, emulator::joined(mine->clocks, theirs.clocks)});
      ++mine;
    }
  }
  both.insert(both.end(), mine, a.end());
  return both;
}

void VectorClock::join_foreign_list(const std::shared_ptr<const ForeignList>& list) {
  if (list == nullptr || list == foreign_) return;
  if (foreign_ == nullptr || covers(*list, *foreign_)) {
    foreign_ = list;
  } else if (!covers(*foreign_, *list)) {
    foreign_ = std::make_shared<const ForeignList>(joined(*foreign_, *list));
  }
}

void VectorClock::join_cluster(std::uint32_t cluster, const Clocks& clocks) {
  if (clocks.empty()) return;
  if (foreign_ != nullptr) {
    const Foreign* const known = find(*foreign_, cluster);
    if (known != nullptr && emulator::covers(*known->clocks, clocks)) return;
  }
  join_foreign_list(std::make_shared<const ForeignList>(
      ForeignList{{cluster, std::make_shared<const Clocks>(clocks)}}));
}

}  // namespace gemmery::emulator
