// SPDX-License-Identifier: Apache-2.0
// Judges each access against the earlier ones of its bytes, after FastTrack: where a read is
// ordered after an earlier read, it stands for both. Runs of cells in one state are judged once.
#include "emulator/check/shadow.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "emulator/check/access_cell.hpp"

namespace gemmery::emulator {
namespace {

constexpr std::uint64_t cells_per_page = 256;

// Accesses that are kept apart in one cell. Beyond, agents of other clusters (which no barrier
// could order) take each other's place: a write unordered after the forgotten one hardly is ordered
// after all of the others.
constexpr std::size_t max_foreign_entries = 16;

constexpr std::uint32_t min_memo_cells = 2;

}  // namespace

struct Shadow::Insides {
  // What became of the last cell; holds for any cell in the same state and the same access.
  struct Memo {
    Access access;
    Cell before;
    Cell after;
    bool is_valid = false;
  };

  std::vector<std::unique_ptr<Cell[]>> pages;
  std::vector<std::uint32_t> touched;  // pages, once each
  std::vector<bool> is_touched;
  AccessSets sets;
  Memo memo;

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
  void forget_memo() {
    if (!memo.is_valid) return;
    sets.drop(memo.before.others);
    sets.drop(memo.after.others);
    memo.is_valid = false;
  }
  // Does to all cells from `index` on that are in the memo's state what was done to the one that it
  // remembers. Returns the first that is not.
  std::uint64_t repeat_memo(Cell* page, std::uint64_t index, std::uint64_t end) {
    const Cell before = memo.before, after = memo.after;
    const std::uint64_t first = index;
    while (index < end && page[index % cells_per_page] == before)
      page[index++ % cells_per_page] = after;
    const auto count = static_cast<std::uint32_t>(index - first);
    sets.hold(after.others, count);
    sets.drop(before.others, count);
    return index;
  }
  void remember(const Access& access, const Cell& before, const Cell& after) {
    forget_memo();
    sets.hold(before.others);
    sets.hold(after.others);
    memo = {.access = access, .before = before, .after = after, .is_valid = true};
  }
};

namespace {

// One access under judgement, cell by cell.
class Judge {
 public:
  Judge(AccessSets& sets, const Accessor& who, Conflict& found) noexcept
      : sets_(sets), who_(who), found_(found) {}

  // False where there is a conflict; the cell then is left as it was.
  template <bool is_write>
  bool note(Cell& cell, const Access& mine) {
    if (!agrees(cell.write, mine)) return false;
    if constexpr (is_write) {
      return note_write(cell, mine);
    } else {
      if (cell.others.is_none()) {
        cell.others = mine;
        return true;
      }
      return note_read(cell, mine);
    }
  }

  // Not inlined, so that a loop of settled accesses keeps to registers.
  template <bool is_write>
  [[gnu::noinline]] bool note_apart(Cell& cell, const Access& mine) {
    return note<is_write>(cell, mine);
  }

  // The epoch that was found to be known last; 0: none yet.
  std::uint64_t last_known() const noexcept { return last_known_; }

 private:
  bool is_known(const Access& earlier) noexcept {
    if (earlier.epoch_bits() == last_known_) return true;
    if (!who_.known->happened.knows(earlier.epoch(), who_.cluster)) return false;
    last_known_ = earlier.epoch_bits();
    return true;
  }
  bool is_ordered(const Access& earlier, const Access& mine) noexcept {
    if (earlier.epoch_bits() == mine.epoch_bits()) return earlier.is_same_party(mine);
    return is_known(earlier);
  }
  bool is_visible(const Access& earlier) noexcept {
    if (!earlier.is_write() || earlier.is_async() || who_.proxy == Proxy::generic) return true;
    if (earlier.epoch_bits() == last_fenced_) return true;
    if (!who_.known->fenced.knows(earlier.epoch(), who_.cluster)) return false;
    last_fenced_ = earlier.epoch_bits();
    return true;
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
              .other = earlier.epoch(),
              .other_pc = earlier.pc(),
              .other_lane = earlier.lane(),
              .other_proxy = earlier.is_async() ? Proxy::async : Proxy::generic,
              .offset = static_cast<std::uint64_t>(std::countr_zero(both))};
    return false;
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
    if (earlier.epoch_bits() == mine.epoch_bits()) return earlier.is_same_party(mine);
    return earlier.has_agent_of(mine) || is_known(earlier);
  }
  // Makes `earlier` speak for `mine` too, where they differ in lanes or bytes alone.
  bool is_merged(Access& earlier, const Access& mine) noexcept {
    if (earlier.epoch_bits() != mine.epoch_bits() || earlier.is_write()) return false;
    if (earlier.is_atomic() != mine.is_atomic()) return false;
    if (earlier.is_same_party(mine)) {
      earlier = earlier.with_mask(earlier.mask() | mine.mask());
      return true;
    }
    if (!earlier.is_same_kind(mine)) return false;
    earlier = earlier.by_several_lanes();
    return true;
  }

  bool note_read(Cell& cell, const Access& mine) {
    if (cell.others.is_set()) return read_beside_set(cell, mine);
    if (stands_for(mine, cell.others)) {
      cell.others = mine;
    } else if (!is_merged(cell.others, mine)) {
      add(cell, mine);
    }
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

template <bool is_write>
bool Shadow::note(std::uint64_t offset, std::uint32_t bytes, const Accessor& who, Conflict& found) {
  if (bytes == 0) return false;
  Insides& in = *insides_;
  const std::uint64_t end = offset + bytes;
  const std::uint64_t last_cell = (end - 1) / bytes_per_cell;
  std::uint64_t cell_index = offset / bytes_per_cell;
  const Access whole(who, whole_cell, is_write);
  const bool uses_memo = last_cell - cell_index + 1 >= min_memo_cells;
  if (uses_memo && in.memo.is_valid && in.memo.access != whole) in.forget_memo();

  Judge judge(in.sets, who, found);
  while (cell_index <= last_cell) {
    const std::uint64_t page_index = cell_index / cells_per_page;
    Cell* const page = in.page(page_index);
    const std::uint64_t page_end = std::min(last_cell + 1, (page_index + 1) * cells_per_page);
    for (; cell_index < page_end; ++cell_index) {
      Cell& cell = page[cell_index % cells_per_page];
      const std::uint32_t mask = mask_within(cell_index, offset, end);
      const bool is_usual = uses_memo && mask == whole_cell;
      if (is_usual && in.memo.is_valid && cell == in.memo.before) {
        const std::uint64_t run_end = std::min(page_end, end / bytes_per_cell);
        cell_index = in.repeat_memo(page, cell_index, run_end) - 1;
        continue;
      }
      const Cell before = cell;
      if (is_usual) in.sets.hold(before.others);  // so that it is not changed in place
      const bool agrees =
          judge.note<is_write>(cell, mask == whole_cell ? whole : whole.with_mask(mask));
      if (is_usual) {
        if (agrees) in.remember(whole, before, cell);
        in.sets.drop(before.others);
      }
      if (agrees) continue;
      found.offset += cell_index * bytes_per_cell;
      return true;
    }
  }
  return false;
}

bool Shadow::read(std::uint64_t offset, std::uint32_t bytes, const Accessor& who, Conflict& found) {
  return note<false>(offset, bytes, who, found);
}

bool Shadow::write(std::uint64_t offset, std::uint32_t bytes, const Accessor& who,
                   Conflict& found) {
  return note<true>(offset, bytes, who, found);
}

namespace {

// A plain access of a whole cell that conflicts with nothing and makes everything before needless:
// what Judge does, in the case that nearly all accesses are.
template <bool is_write>
bool note_settled(Cell& cell, const Access& mine, std::uint64_t known_epoch) noexcept {
  if (!cell.write.is_settled(mine, known_epoch)) return false;
  if (!is_write && cell.others.speaks_for(mine)) return true;
  if (!cell.others.is_settled(mine, known_epoch)) return false;
  if constexpr (is_write) {
    cell = {.write = mine, .others = {}};
  } else {
    if (cell.others.is_write()) return false;
    cell.others = mine;
  }
  return true;
}

// Takes the lanes behind the first that name its address out of `lanes`; true if there are any.
bool skip_same_address(std::uint32_t& lanes, const std::uint64_t* addresses) noexcept {
  const std::uint64_t address = addresses[std::countr_zero(lanes)];
  std::uint32_t rest = lanes & (lanes - 1);
  if (rest == 0 || addresses[std::countr_zero(rest)] != address) return false;
  do {
    lanes = rest | (lanes & -lanes);
    rest &= rest - 1;
  } while (rest != 0 && addresses[std::countr_zero(rest)] == address);
  lanes = rest | (lanes & -lanes);
  return true;
}

}  // namespace

template <bool is_write>
int Shadow::note_lanes(std::uint32_t lanes, const std::uint64_t* addresses, std::uint64_t begin,
                       std::uint32_t bytes, const Accessor& who, Conflict& found) {
  Insides& in = *insides_;
  Judge judge(in.sets, who, found);
  const Access whole(who, whole_cell, is_write);
  const bool is_plain = bytes >= bytes_per_cell && who.proxy == Proxy::generic && !who.is_atomic;
  const std::uint64_t cell_count = std::max<std::uint64_t>(bytes / bytes_per_cell, 1);
  std::uint64_t known_epoch = 0;
  std::uint64_t page_index = ~std::uint64_t{0};
  Cell* page = nullptr;
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const std::uint64_t offset = addresses[lane] - begin;
    const std::uint64_t first = offset / bytes_per_cell;
    Access mine = whole.by_lane(static_cast<std::uint8_t>(lane));
    if (!is_write && skip_same_address(lanes, addresses)) mine = mine.by_several_lanes();
    if (first / cells_per_page != page_index) {
      page_index = first / cells_per_page;
      page = in.page(page_index);  // of all of the lane's bytes, which are naturally aligned
    }
    for (std::uint64_t index = first; index < first + cell_count; ++index) {
      Cell& cell = page[index % cells_per_page];
      if (is_plain && note_settled<is_write>(cell, mine, known_epoch)) continue;
      const std::uint32_t mask = mask_within(index, offset, offset + bytes);
      if (!judge.note_apart<is_write>(cell, mine.with_mask(mask))) {
        found.offset += index * bytes_per_cell;
        return lane;
      }
      known_epoch = judge.last_known();
    }
  }
  return -1;
}

int Shadow::read_lanes(std::uint32_t lanes, const std::uint64_t* addresses, std::uint64_t begin,
                       std::uint32_t bytes, const Accessor& who, Conflict& found) {
  return note_lanes<false>(lanes, addresses, begin, bytes, who, found);
}

int Shadow::write_lanes(std::uint32_t lanes, const std::uint64_t* addresses, std::uint64_t begin,
                        std::uint32_t bytes, const Accessor& who, Conflict& found) {
  return note_lanes<true>(lanes, addresses, begin, bytes, who, found);
}

void Shadow::forget_accesses() {
  Insides& in = *insides_;
  for (const std::uint32_t page : in.touched) {
    std::fill_n(in.pages[page].get(), cells_per_page, Cell{});
    in.is_touched[page] = false;
  }
  in.touched.clear();
  in.sets.clear();
  in.memo.is_valid = false;
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
