// SPDX-License-Identifier: Apache-2.0
// Elements of operands that belong to no group: inputs that must not be read, and results that must
// not change or must become 0.
#pragma once

#include <cstdint>
#include <vector>

#include <gemmery/problem.hpp>

#include "api/drawn_groups.hpp"
#include "api/guarded_operand.hpp"

namespace gemmery::api {

// An operand of a product. Elements outside of groups lie along its rows or its columns, or there
// are none.
enum class ProductRole : std::uint8_t { a, b, out };

class GroupSurroundings {
 public:
  GroupSurroundings(const GemmProblem& problem, const DrawnGroups& drawn);

  void poison(GuardedOperand& operand, ProductRole role) const;

  // Bytes of a result that are not what they should be: those of `before`, or 0.
  std::int64_t count_wrong(const GuardedOperand& result, const GuardedOperand& before) const;

 private:
  struct Box {
    std::int64_t batch;
    std::int64_t row_begin, row_end;
    std::int64_t column_begin, column_end;
  };
  std::vector<Box> boxes(const GuardedOperand& operand, ProductRole role) const;

  const GemmProblem& problem_;
  const DrawnGroups& drawn_;
};

}  // namespace gemmery::api
