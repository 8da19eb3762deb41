// SPDX-License-Identifier: Apache-2.0
// The table of all instructions, joined from the files of this folder.
#include "emulator/instruction/decode.hpp"

#include <algorithm>
#include <vector>

#include "core/invariant.hpp"

namespace gemmery::emulator {

namespace {

using RowSource = DecodeRows (*)();

std::vector<DecodeRow> join_rows() {
  std::vector<DecodeRow> joined;
  for (const RowSource rows :
       {arithmetic_rows, convert_rows, control_rows, memory_rows, atomic_rows, copy_rows,
        barrier_rows, warp_rows, matrix_rows, wgmma_rows, wmma_rows}) {
    const DecodeRows part = rows();
    joined.insert(joined.end(), part.begin(), part.end());
  }
  std::ranges::sort(joined, {}, &DecodeRow::opcode);
  require(std::ranges::adjacent_find(joined, {}, &DecodeRow::opcode) == joined.end(),
          "an opcode stands in two tables");
  return joined;
}

}  // namespace

const DecodeRow* find_decoder(std::string_view opcode) noexcept {
  static const std::vector<DecodeRow> rows = join_rows();
  const auto found = std::ranges::lower_bound(rows, opcode, {}, &DecodeRow::opcode);
  return found != rows.end() && found->opcode == opcode ? &*found : nullptr;
}

}  // namespace gemmery::emulator
