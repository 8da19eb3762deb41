// SPDX-License-Identifier: Apache-2.0
// Tables by class of operand rules, each made when it is first asked for: a process that asks about
// one kind of problem does not pay for all.
#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

namespace gemmery::templates {

// Rows of type Row for each of `count` classes. Safe to ask from any thread; rows live as long as
// the table.
template <class Row, std::size_t count>
class ClassTable {
 public:
  // `make()` gives a class's rows. Calls of one class give the same rows each time.
  template <class Make>
  std::span<const Row> rows_of(std::size_t index, const Make& make) {
    Entry& entry = entries_[index];
    std::call_once(entry.is_made, [&] { entry.rows = make(); });
    return entry.rows;
  }

 private:
  struct Entry {
    std::once_flag is_made;
    std::vector<Row> rows;
  };
  std::array<Entry, count> entries_;
};

}  // namespace gemmery::templates
