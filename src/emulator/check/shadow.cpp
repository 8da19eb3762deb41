// SPDX-License-Identifier: Apache-2.0
// Checks each access against the earlier ones of its bytes, after FastTrack: a read that is ordered
// after an earlier read replaces it. Runs of cells in one state are checked once.
#include "emulator/check/shadow.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "emulator/check/access_cell.hpp"
#include "emulator/check/judge.hpp"
#include "emulator/check/lane_runs.hpp"

namespace gemmery::emulator {
namespace {

constexpr std::uint64_t cells_per_page = 256;

}  // namespace

// The effect of a read on a cell; the same for all cells in that state.
struct ReadStep {
  Access mine;
  Access before;
  Access after;
};

// A cache of the most recent read steps. Each holds a reference to its sets, so that they are not
// changed.
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

  // These functions record an access; they return true if there is a conflict.
  template <bool is_write>
  bool note(std::uint64_t offset, std::uint32_t bytes, const Accessor& who, Conflict& found);
  // Whole cells from `first` to before `end`.
  template <bool is_write>
  bool note_cells(std::uint64_t first, std::uint64_t end, Judge& judge, const Access& mine,
                  Conflict& found);
  template <bool is_write>
  bool note_part(std::uint64_t index, std::uint32_t mask, Judge& judge, const Access& mine,
                 Conflict& found);
  // Returns the conflicting lane; -1: none.
  template <bool is_write>
  int note_lanes(std::uint32_t lanes, const std::uint64_t* addresses, std::uint64_t begin,
                 std::uint32_t bytes, const Accessor& who, Conflict& found);
  template <bool is_write>
  int note_narrow_lanes(std::uint32_t lanes, const std::uint64_t* addresses, std::uint64_t begin,
                        std::uint32_t bytes, const Accessor& who, Conflict& found);
};

namespace {

// The bytes of a cell that are in [begin, end).
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

// Visits the whole cells of one access in the order of their addresses. A cell's result is valid
// for all cells in the same state, and most are.
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

  // A write that is not atomic replaces all earlier accesses.
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
    sets_.hold(before);  // a second reference, so that it is not changed in place
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

  // Updates the reference counts for the cells that changed from before_ to after_ since the last
  // call.
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
  Access agreed_others_;                 // the same for Cell::others
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

// For accesses in which several lanes share a cell.
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
