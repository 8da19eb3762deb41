// SPDX-License-Identifier: Apache-2.0
// Tables by class of operand rules. The rows of a class are made when they are first requested, so
// a process that asks about one kind of problem does not pay for all.
#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

namespace gemmery::templates {

// Rows of type Row for each of `count` classes. Any thread may request them; rows live as long as
// the table.
template <class Row, std::size_t count>
class ClassTable {
 public:
  // `make()` makes the rows of a class. All calls for one class return the same rows.
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
