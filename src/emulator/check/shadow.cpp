// SPDX-License-Identifier: Apache-2.0
// Judges each access against the earlier ones of its bytes, after FastTrack: where a read is
// ordered after an earlier read, it stands for both. Runs of cells in one state are judged once.
#include "emulator/check/shadow.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "emulator/check/access_cell.hpp"

namespace gemmery::emulator {
namespace {

constexpr std::uint64_t cells_per_page = 256;

// Accesses that are kept apart in one cell. Beyond, agents of other clusters (which no barrier
// could order) take each other's place: a write unordered after the forgotten one hardly is ordered
// after all of the others.
constexpr std::size_t max_foreign_entries = 16;

// What became of the others of a cell when they were read: holds for all cells with the same.
struct ReadStep {
  Access mine;
  Access before;
  Access after;
};

// The last steps of reads. They hold their sets, so that nobody changes those.
class ReadSteps {
 public:
  const ReadStep* find(const Access& mine, const Access& before) const noexcept {
    const ReadStep& kept = steps_[place_of(before)];
    return kept.mine == mine && kept.before == before ? &kept : nullptr;
  }
  void remember(const ReadStep& step, AccessSets& sets) {
    sets.hold(step.before);
    sets.hold(step.after);
    ReadStep& kept = steps_[place_of(step.before)];
    sets.drop(kept.before);
    sets.drop(kept.after);
    kept = step;
  }
  void clear() noexcept { steps_.fill({}); }

 private:
  static constexpr std::size_t kept_steps = 16;
  static std::size_t place_of(const Access& before) noexcept {
    return (before.epoch_bits() + before.pc()) % kept_steps;  // pc: or the set's index
  }
  std::array<ReadStep, kept_steps> steps_;
};

class Judge;

}  // namespace

struct Shadow::Insides {
  std::vector<std::unique_ptr<Cell[]>> pages;
  std::vector<std::uint32_t> touched;  // pages, once each
  std::vector<bool> is_touched;
  AccessSets sets;
  ReadSteps steps;

  explicit Insides(std::uint64_t bytes) {
    const std::uint64_t cells = (bytes + bytes_per_cell - 1) / bytes_per_cell;
    pages.resize((cells + cells_per_page - 1) / cells_per_page);
    is_touched.resize(pages.size());
  }

  Cell* page(std::uint64_t index) {
    if (!is_touched[index]) touch(index);
    return pages[index].get();
  }
  void touch(std::uint64_t index) {
    if (pages[index] == nullptr) pages[index] = std::make_unique<Cell[]>(cells_per_page);
    is_touched[index] = true;
    touched.push_back(static_cast<std::uint32_t>(index));
  }

  // Each notes an access; true where there is a conflict.
  template <bool is_write>
  bool note(std::uint64_t offset, std::uint32_t bytes, const Accessor& who, Conflict& found);
  // Whole cells from `first` to before `end`.
  template <bool is_write>
  bool note_cells(std::uint64_t first, std::uint64_t end, Judge& judge, const Access& mine,
                  Conflict& found);
  template <bool is_write>
  bool note_part(std::uint64_t index, std::uint32_t mask, Judge& judge, const Access& mine,
                 Conflict& found);
  // The lane in conflict; -1: none.
  template <bool is_write>
  int note_lanes(std::uint32_t lanes, const std::uint64_t* addresses, std::uint64_t begin,
                 std::uint32_t bytes, const Accessor& who, Conflict& found);
  template <bool is_write>
  int note_narrow_lanes(std::uint32_t lanes, const std::uint64_t* addresses, std::uint64_t begin,
                        std::uint32_t bytes, const Accessor& who, Conflict& found);
};

namespace {

// One access under judgement, cell by cell.
class Judge {
 public:
  Judge(AccessSets& sets, const Accessor& who, Conflict& found) noexcept
      : sets_(sets), who_(who), found_(found) {}

  // Which cell is judged next.
  void look_at(std::uint64_t cell) noexcept { cell_ = cell; }

  // False where there is a conflict; the cell then is left as it was.
  template <bool is_write>
  bool note(Cell& cell, const Access& mine) {
    if (!agrees(cell.write, mine)) return false;
    return is_write ? note_write(cell, mine) : note_read(cell, mine);
  }

  // May `mine` follow `earlier`, an access of which at least one is a write?
  bool agrees(const Access& earlier, const Access& mine) noexcept {
    const std::uint32_t both = earlier.mask() & mine.mask();
    if (both == 0) return true;
    const bool are_atomic = earlier.is_atomic() && mine.is_atomic();
    const bool is_race = !are_atomic && !is_ordered(earlier, mine);
    if (!is_race && is_visible(earlier)) return true;
    found_ = {.is_race = is_race,
              .other_was_write = earlier.is_write(),
              .other_was_atomic = earlier.is_atomic(),
              .other = earlier.epoch(),
              .other_pc = earlier.pc(),
              .other_lane = earlier.lane_at(cell_),
              .other_proxy = earlier.is_async() ? Proxy::async : Proxy::generic,
              .offset = static_cast<std::uint64_t>(std::countr_zero(both))};
    return false;
  }

  // Adds a read to the cell's others, if it may follow the writes among them.
  bool note_read(Cell& cell, const Access& mine) {
    if (cell.others.is_set()) return read_beside_set(cell, mine);
    if (cell.others.is_none() || stands_for(mine, cell.others)) {
      cell.others = mine;
    } else if (!is_merged(cell.others, mine)) {
      add(cell, mine);
    }
    return true;
  }
  // May a write of `mine` follow all of the cell's others?
  bool agrees_with_others(const Access& others, const Access& mine) noexcept {
    if (!others.is_set()) return agrees(others, mine);
    return std::ranges::all_of(sets_.entries(others.set_index()),
                               [&](const Access& earlier) { return agrees(earlier, mine); });
  }
  // Whether a judgement since the last call holds for its cell alone, because lanes were compared
  // that are told in different ways.
  bool take_is_of_one_cell() noexcept { return std::exchange(is_of_one_cell_, false); }

 private:
  bool is_known(const Access& earlier) noexcept {
    if (earlier.epoch_bits() == last_known_) return true;
    if (!who_.known->happened.knows(earlier.epoch(), who_.cluster)) return false;
    last_known_ = earlier.epoch_bits();
    return true;
  }
  bool is_ordered(const Access& earlier, const Access& mine) noexcept {
    if (earlier.epoch_bits() == mine.epoch_bits()) return is_same_party(earlier, mine);
    return is_known(earlier);
  }
  // The same lane of the same operation, at the same point of its life.
  bool is_same_party(const Access& earlier, const Access& mine) noexcept {
    return earlier.is_same_operation(mine) && is_same_lane(earlier, mine);
  }
  bool is_same_lane(const Access& earlier, const Access& mine) noexcept {
    if (earlier.lane_code() == several_lanes || mine.lane_code() == several_lanes) return false;
    if (earlier.has_lane_kind_of(mine)) return earlier.lane_code() == mine.lane_code();
    is_of_one_cell_ = true;
    return earlier.lane_at(cell_) == mine.lane_at(cell_);
  }
  bool is_visible(const Access& earlier) noexcept {
    if (!earlier.is_write() || earlier.is_async() || who_.proxy == Proxy::generic) return true;
    if (earlier.epoch_bits() == last_fenced_) return true;
    if (!who_.known->fenced.knows(earlier.epoch(), who_.cluster)) return false;
    last_fenced_ = earlier.epoch_bits();
    return true;
  }

  // What a write of `mine` leaves to be remembered of an earlier access. An atomic write lets other
  // atomics by, so it can't stand for what they may conflict with, nor for atomics unordered with
  // it.
  Access left_of(const Access& earlier, const Access& mine) noexcept {
    const bool stays = mine.is_atomic() && (!earlier.is_atomic() || !is_ordered(earlier, mine));
    return stays ? earlier : earlier.with_mask(earlier.mask() & ~mine.mask());
  }

  bool note_write(Cell& cell, const Access& mine) {
    const Access left = left_of(cell.write, mine);
    const bool keeps_write = !cell.write.is_none() && left.mask() != 0;
    if (cell.others.is_set()) return write_over_set(cell, mine, keeps_write, left);
    if (!cell.others.is_none()) {
      if (!agrees(cell.others, mine)) return false;
      cell.others = left_of(cell.others, mine);
      if (cell.others.mask() == 0) cell.others = {};
    }
    if (keeps_write) add(cell, left);
    cell.write = mine;
    return true;
  }

  bool write_over_set(Cell& cell, const Access& mine, bool keeps_write, const Access& left) {
    kept_.clear();
    for (const Access& earlier : sets_.entries(cell.others.set_index())) {
      if (!agrees(earlier, mine)) return false;
      const Access rest = left_of(earlier, mine);
      if (rest.mask() != 0) kept_.push_back(rest);
    }
    if (keeps_write) kept_.push_back(left);
    sets_.drop(cell.others);
    cell.others = {};
    if (!kept_.empty()) {
      cell.others = Access::of_set(sets_.make());
      sets_.entries(cell.others.set_index()).assign(kept_.begin(), kept_.end());
    }
    cell.write = mine;
    return true;
  }

  // Does `mine` (a read) make it needless to remember `earlier`?
  bool stands_for(const Access& mine, const Access& earlier) noexcept {
    if (earlier.is_write() || (earlier.mask() & ~mine.mask()) != 0) return false;
    if (mine.is_atomic() && !earlier.is_atomic()) return false;
    if (earlier.epoch_bits() == mine.epoch_bits()) return is_same_party(earlier, mine);
    return earlier.has_agent_of(mine) || is_known(earlier);
  }
  // Makes `earlier` speak for `mine` too, where they differ in lanes or bytes alone.
  bool is_merged(Access& earlier, const Access& mine) noexcept {
    if (earlier.epoch_bits() != mine.epoch_bits() || earlier.is_write()) return false;
    if (earlier.is_atomic() != mine.is_atomic()) return false;
    if (is_same_party(earlier, mine)) {
      earlier = earlier.with_mask(earlier.mask() | mine.mask());
      return true;
    }
    if (!earlier.is_same_kind(mine)) return false;
    earlier = earlier.by_several_lanes();
    return true;
  }

  bool read_beside_set(Cell& cell, const Access& mine) {
    bool is_spoken_for = false;
    for (const Access& earlier : sets_.entries(cell.others.set_index())) {
      if (earlier.is_write() && !agrees(earlier, mine)) return false;
      is_spoken_for = is_spoken_for || earlier.speaks_for(mine);
    }
    if (is_spoken_for) return true;
    unshare(cell);
    std::vector<Access>& entries = sets_.entries(cell.others.set_index());
    for (Access& earlier : entries) {
      if (is_merged(earlier, mine)) return true;
    }
    std::erase_if(entries, [&](const Access& earlier) { return stands_for(mine, earlier); });
    append(entries, mine);
    return true;
  }

  void unshare(Cell& cell) {
    const std::uint32_t shared = cell.others.set_index();
    if (!sets_.is_shared(shared)) return;
    const std::uint32_t own = sets_.make();
    sets_.entries(own) = sets_.entries(shared);
    sets_.drop(cell.others);
    cell.others = Access::of_set(own);
  }

  void add(Cell& cell, const Access& access) {
    if (cell.others.is_none()) {
      if (!access.is_write()) {
        cell.others = access;
        return;
      }
    } else if (cell.others.is_set()) {
      unshare(cell);
      append(sets_.entries(cell.others.set_index()), access);
      return;
    }
    const std::uint32_t index = sets_.make();
    std::vector<Access>& entries = sets_.entries(index);
    if (!cell.others.is_none()) entries.push_back(cell.others);
    entries.push_back(access);
    cell.others = Access::of_set(index);
  }

  void append(std::vector<Access>& entries, const Access& access) {
    if (entries.size() >= max_foreign_entries) {
      const auto foreign = std::find_if(entries.begin(), entries.end(), [&](const Access& entry) {
        return entry.epoch().cluster() != who_.cluster && (!entry.is_write() || entry.is_atomic());
      });
      if (foreign != entries.end()) entries.erase(foreign);
    }
    entries.push_back(access);
  }

  AccessSets& sets_;
  const Accessor& who_;
  Conflict& found_;
  std::uint64_t cell_ = 0;
  bool is_of_one_cell_ = false;
  std::uint64_t last_known_ = 0;
  std::uint64_t last_fenced_ = 0;
  static thread_local std::vector<Access> kept_;
};

thread_local std::vector<Access> Judge::kept_;

// Bytes of a cell that lie in [begin, end).
std::uint32_t mask_within(std::uint64_t cell, std::uint64_t begin, std::uint64_t end) noexcept {
  const std::uint64_t at = cell * bytes_per_cell;
  std::uint32_t mask = whole_cell;
  if (begin > at) mask &= whole_cell << (begin - at);
  if (end < at + bytes_per_cell) mask &= whole_cell >> (at + bytes_per_cell - end);
  return mask;
}

}  // namespace

Shadow::Shadow(std::uint64_t bytes)
    : written_((bytes + 63) / 64), insides_(std::make_unique<Insides>(bytes)) {}
Shadow::~Shadow() = default;
Shadow::Shadow(Shadow&& other) noexcept = default;
Shadow& Shadow::operator=(Shadow&& other) noexcept = default;

// --- cells one behind the other ----------------------------------------------------------------

namespace {

// Goes through whole cells that one access touches, in the order of their addresses. What was
// found of one cell holds for all in the same state: most are.
class CellRun {
 public:
  CellRun(AccessSets& sets, ReadSteps& steps, Judge& judge, const Access& mine) noexcept
      : sets_(sets), steps_(steps), judge_(judge), mine_(mine) {}
  ~CellRun() { settle(); }
  CellRun(const CellRun&) = delete;
  CellRun& operator=(const CellRun&) = delete;

  bool read(Cell& cell, std::uint64_t index) {
    if (!cell.write.is_same_kind(agreed_) && !follows(cell.write, index)) return false;
    if (cell.others == before_) {
      cell.others = after_;
      ++moved_;
      return true;
    }
    return read_apart(cell, index);
  }

  // Not atomic: it then stands for everything before.
  bool write(Cell& cell, std::uint64_t index) {
    if (!cell.write.is_same_kind(agreed_) && !follows(cell.write, index)) return false;
    if (cell.others != agreed_others_ && !follows_others(cell.others, index)) return false;
    sets_.drop(cell.others);
    cell = {.write = mine_, .others = {}};
    return true;
  }

 private:
  [[gnu::noinline]] bool follows(const Access& write, std::uint64_t index) {
    judge_.look_at(index);
    if (!judge_.agrees(write, mine_)) return false;
    const bool compares_lanes = write.epoch_bits() == mine_.epoch_bits();
    if (!judge_.take_is_of_one_cell() && !compares_lanes) agreed_ = write;
    return true;
  }
  [[gnu::noinline]] bool follows_others(const Access& others, std::uint64_t index) {
    judge_.look_at(index);
    if (!judge_.agrees_with_others(others, mine_)) return false;
    if (!judge_.take_is_of_one_cell()) agreed_others_ = others;
    return true;
  }

  [[gnu::noinline]] bool read_apart(Cell& cell, std::uint64_t index) {
    settle();
    const Access before = cell.others;
    if (const ReadStep* const step = steps_.find(mine_, before)) {
      before_ = before;
      cell.others = after_ = step->after;
      moved_ = 1;
      return true;
    }
    sets_.hold(before);  // so that it is not changed in place
    judge_.look_at(index);
    const bool agrees = judge_.note_read(cell, mine_);
    if (agrees && !judge_.take_is_of_one_cell()) {
      before_ = before;
      after_ = cell.others;
      if (after_.is_set()) steps_.remember({mine_, before, after_}, sets_);
    }
    sets_.drop(before);
    return agrees;
  }

  // The sets of the cells that went from before_ to after_ since the last time.
  void settle() {
    if (moved_ == 0) return;
    sets_.hold(after_, moved_);
    sets_.drop(before_, moved_);
    moved_ = 0;
  }

  AccessSets& sets_;
  ReadSteps& steps_;
  Judge& judge_;
  const Access mine_;
  Access agreed_;                        // a last write that mine_ may follow, by any lane
  Access agreed_others_;                 // the same of others
  Access before_ = Access::of_set(~0u);  // a step that others took; of none, as yet
  Access after_;
  std::uint32_t moved_ = 0;
};

}  // namespace

template <bool is_write>
bool Shadow::Insides::note_cells(std::uint64_t first, std::uint64_t end, Judge& judge,
                                 const Access& mine, Conflict& found) {
  const auto note_alone = [&](Cell& cell, std::uint64_t index) {
    judge.look_at(index);
    return judge.note<is_write>(cell, mine);
  };
  CellRun run(sets, steps, judge, mine);
  for (std::uint64_t index = first; index < end;) {
    Cell* const cells = page(index / cells_per_page);
    const std::uint64_t page_end = std::min(end, (index / cells_per_page + 1) * cells_per_page);
    for (; index < page_end; ++index) {
      Cell& cell = cells[index % cells_per_page];
      bool agrees = false;
      if constexpr (is_write)
        agrees = mine.is_atomic() ? note_alone(cell, index) : run.write(cell, index);
      else
        agrees = run.read(cell, index);
      if (agrees) continue;
      found.offset += index * bytes_per_cell;
      return true;
    }
  }
  return false;
}

template <bool is_write>
bool Shadow::Insides::note_part(std::uint64_t index, std::uint32_t mask, Judge& judge,
                                const Access& mine, Conflict& found) {
  Cell& cell = page(index / cells_per_page)[index % cells_per_page];
  judge.look_at(index);
  if (judge.note<is_write>(cell, mine.with_mask(mask))) return false;
  found.offset += index * bytes_per_cell;
  return true;
}

template <bool is_write>
bool Shadow::Insides::note(std::uint64_t offset, std::uint32_t bytes, const Accessor& who,
                           Conflict& found) {
  if (bytes == 0) return false;
  const std::uint64_t end = offset + bytes;
  std::uint64_t first = offset / bytes_per_cell;
  const std::uint64_t last = (end - 1) / bytes_per_cell;
  const Access mine(who, whole_cell, is_write);
  Judge judge(sets, who, found);
  const std::uint32_t first_mask = mask_within(first, offset, end);
  if (first_mask != whole_cell) {
    if (note_part<is_write>(first++, first_mask, judge, mine, found)) return true;
    if (first > last) return false;
  }
  const std::uint32_t last_mask = mask_within(last, offset, end);
  const std::uint64_t whole_end = last_mask == whole_cell ? last + 1 : last;
  if (note_cells<is_write>(first, whole_end, judge, mine, found)) return true;
  return last_mask != whole_cell && note_part<is_write>(last, last_mask, judge, mine, found);
}

bool Shadow::read(std::uint64_t offset, std::uint32_t bytes, const Accessor& who, Conflict& found) {
  return insides_->note<false>(offset, bytes, who, found);
}

bool Shadow::write(std::uint64_t offset, std::uint32_t bytes, const Accessor& who,
                   Conflict& found) {
  return insides_->note<true>(offset, bytes, who, found);
}

// --- lanes ---------------------------------------------------------------------------------------

namespace {

constexpr std::uint32_t all_lanes = ~std::uint32_t{0};

// Takes the lanes behind the first that name its address out of `lanes`; true if there are any.
bool skip_same_address(std::uint32_t& lanes, const std::uint64_t* addresses) noexcept {
  const std::uint64_t address = addresses[std::countr_zero(lanes)];
  std::uint32_t rest = lanes & (lanes - 1);
  if (rest == 0 || addresses[std::countr_zero(rest)] != address) return false;
  do {
    rest &= rest - 1;
  } while (rest != 0 && addresses[std::countr_zero(rest)] == address);
  lanes = rest | (lanes & -lanes);
  return true;
}

// After how many lanes the addresses of a whole warp are the same again; 32 where they are not.
std::uint32_t find_period(const std::uint64_t* addresses) noexcept {
  std::uint32_t period = 32;
  while (period > 1 &&
         std::memcmp(addresses, addresses + period / 2, period / 2 * sizeof *addresses) == 0) {
    period /= 2;
  }
  return period;
}

// Lanes one behind the other, taken from a warp's, that are one access as far as order goes.
class LaneRuns {
 public:
  LaneRuns(std::uint32_t lanes, const std::uint64_t* addresses, std::uint64_t begin,
           std::uint32_t bytes, const Access& whole) noexcept
      : lanes_(lanes), addresses_(addresses), begin_(begin), bytes_(bytes), whole_(whole) {
    shift_ = static_cast<std::uint32_t>(std::countr_zero(bytes / bytes_per_cell));
    if (whole.is_write() || lanes != all_lanes) return;
    const std::uint32_t period = find_period(addresses);
    if (period == 32) return;
    lanes_ = (std::uint32_t{1} << period) - 1;
    is_periodic_ = true;
  }

  bool next() noexcept {
    if (lanes_ == 0) return false;
    std::uint64_t address = 0;
    mine = take_lane(address);
    first_cell = address / bytes_per_cell;
    std::uint64_t end = address + bytes_;
    while (lanes_ != 0 && addresses_[std::countr_zero(lanes_)] - begin_ == end) {
      const std::uint32_t before = lanes_;
      if (take_lane(address) != mine) {
        lanes_ = before;
        break;
      }
      end += bytes_;
    }
    end_cell = end / bytes_per_cell;
    return true;
  }

  std::uint64_t first_cell = 0, end_cell = 0;
  Access mine;

 private:
  Access take_lane(std::uint64_t& offset) noexcept {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(lanes_));
    offset = addresses_[lane] - begin_;
    const bool are_several =
        is_periodic_ || (!whole_.is_write() && skip_same_address(lanes_, addresses_));
    lanes_ &= lanes_ - 1;
    return are_several ? whole_.by_several_lanes()
                       : whole_.in_row(lane, offset / bytes_per_cell, shift_);
  }

  std::uint32_t lanes_;
  const std::uint64_t* addresses_;
  std::uint64_t begin_;
  std::uint32_t bytes_;
  std::uint32_t shift_ = 0;
  bool is_periodic_ = false;
  Access whole_;
};

// The first lane of those whose bytes hold the one at `address`.
int lane_of(std::uint32_t lanes, const std::uint64_t* addresses, std::uint32_t bytes,
            std::uint64_t address) noexcept {
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    if (address - addresses[lane] < bytes) return lane;
  }
  return 0;
}

}  // namespace

template <bool is_write>
int Shadow::Insides::note_lanes(std::uint32_t lanes, const std::uint64_t* addresses,
                                std::uint64_t begin, std::uint32_t bytes, const Accessor& who,
                                Conflict& found) {
  if (bytes < bytes_per_cell)
    return note_narrow_lanes<is_write>(lanes, addresses, begin, bytes, who, found);
  Judge judge(sets, who, found);
  LaneRuns runs(lanes, addresses, begin, bytes, Access(who, whole_cell, is_write));
  while (runs.next()) {
    if (note_cells<is_write>(runs.first_cell, runs.end_cell, judge, runs.mine, found))
      return lane_of(lanes, addresses, bytes, begin + found.offset);
  }
  return -1;
}

// Several lanes to a cell.
template <bool is_write>
int Shadow::Insides::note_narrow_lanes(std::uint32_t lanes, const std::uint64_t* addresses,
                                       std::uint64_t begin, std::uint32_t bytes,
                                       const Accessor& who, Conflict& found) {
  Judge judge(sets, who, found);
  const Access whole(who, whole_cell, is_write);
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const std::uint64_t offset = addresses[lane] - begin;
    Access mine = whole.by_lane(static_cast<std::uint8_t>(lane));
    if (!is_write && skip_same_address(lanes, addresses)) mine = mine.by_several_lanes();
    const std::uint64_t index = offset / bytes_per_cell;
    const std::uint32_t mask = mask_within(index, offset, offset + bytes);
    if (note_part<is_write>(index, mask, judge, mine, found)) return lane;
  }
  return -1;
}

int Shadow::read_lanes(std::uint32_t lanes, const std::uint64_t* addresses, std::uint64_t begin,
                       std::uint32_t bytes, const Accessor& who, Conflict& found) {
  return insides_->note_lanes<false>(lanes, addresses, begin, bytes, who, found);
}

int Shadow::write_lanes(std::uint32_t lanes, const std::uint64_t* addresses, std::uint64_t begin,
                        std::uint32_t bytes, const Accessor& who, Conflict& found) {
  return insides_->note_lanes<true>(lanes, addresses, begin, bytes, who, found);
}

void Shadow::forget_accesses() {
  Insides& in = *insides_;
  for (const std::uint32_t page : in.touched) {
    std::fill_n(in.pages[page].get(), cells_per_page, Cell{});
    in.is_touched[page] = false;
  }
  in.touched.clear();
  in.sets.clear();
  in.steps.clear();
}

void Shadow::forget_accesses(std::uint64_t offset, std::uint64_t bytes) {
  if (bytes == 0) return;
  Insides& in = *insides_;
  const std::uint64_t last = (offset + bytes - 1) / bytes_per_cell;
  for (std::uint64_t cell_index = offset / bytes_per_cell; cell_index <= last; ++cell_index) {
    if (!in.is_touched[cell_index / cells_per_page]) continue;
    Cell& cell = in.pages[cell_index / cells_per_page][cell_index % cells_per_page];
    in.sets.drop(cell.others);
    cell = {};
  }
}

// --- what was written --------------------------------------------------------------------------

namespace {

std::uint64_t low_bits(std::uint64_t count) noexcept {
  return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

// Calls visit(word index, bits of that word) for each word that [offset, offset + bytes) touches.
template <class Visit>
void for_each_word(std::uint64_t offset, std::uint64_t bytes, Visit visit) {
  const std::uint64_t end = offset + bytes;
  while (offset < end) {
    const std::uint64_t from = offset % 64;
    const std::uint64_t count = std::min(end - offset, 64 - from);
    visit(offset / 64, low_bits(count) << from);
    offset += count;
  }
}

}  // namespace

void Shadow::mark_written(std::uint64_t offset, std::uint64_t bytes) {
  for_each_word(offset, bytes,
                [&](std::uint64_t word, std::uint64_t bits) { written_[word] |= bits; });
}

void Shadow::mark_unwritten(std::uint64_t offset, std::uint64_t bytes) {
  for_each_word(offset, bytes,
                [&](std::uint64_t word, std::uint64_t bits) { written_[word] &= ~bits; });
}

bool Shadow::is_written(std::uint64_t offset, std::uint32_t bytes) const noexcept {
  std::uint64_t missing = 0;
  for_each_word(offset, bytes,
                [&](std::uint64_t word, std::uint64_t bits) { missing |= bits & ~written_[word]; });
  return missing == 0;
}

std::uint64_t Shadow::written_mask(std::uint64_t offset, std::uint32_t bytes) const noexcept {
  const std::uint64_t shift = offset % 64;
  std::uint64_t mask = written_[offset / 64] >> shift;
  if (shift + bytes > 64) mask |= written_[offset / 64 + 1] << (64 - shift);
  return mask & low_bits(bytes);
}

}  // namespace gemmery::emulator
