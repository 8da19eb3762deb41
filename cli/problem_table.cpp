// SPDX-License-Identifier: Apache-2.0
// Parses a problem list row by row.
#include "cli/problem_table.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <string_view>

#include <fmt/format.h>
#include <gemmery/dtype.hpp>
#include <gemmery/error.hpp>

namespace gemmery::cli {
namespace {

using Row = std::map<std::string, std::string, std::less<>>;  // column -> field

Error bad_table(std::string where, std::string expected, std::string got) {
  return Error({.kind = ErrorKind::invalid_argument,
                .operand = std::move(where),
                .expected = std::move(expected),
                .got = std::move(got),
                .hint = "a problem list has the columns id,m,n,k,a_layout,b_layout"});
}

std::string trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1));
}

std::vector<std::string> split(std::string_view line) {
  std::vector<std::string> fields;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find(',', begin), line.size());
    fields.push_back(trimmed(line.substr(begin, end - begin)));
    begin = end + 1;
  }
  return fields;
}

std::string field_of(const Row& row, std::string_view column, const std::string& where) {
  const auto found = row.find(column);
  if (found == row.end())
    throw bad_table(where, fmt::format("a column {}", column), "none of that name");
  return found->second;
}

std::string extent_of(const Row& row, std::string_view column, const std::string& where) {
  const std::string field = field_of(row, column, where);
  const bool is_number =
      !field.empty() && std::ranges::all_of(field, [](char c) { return c >= '0' && c <= '9'; });
  if (!is_number)
    throw bad_table(fmt::format("{}, column {}", where, column), "a whole number",
                    "'" + field + "'");
  return field;
}

std::string layout_suffix(const Row& row, std::string_view column, const std::string& where) {
  const std::string field = field_of(row, column, where);
  if (field == "r") return "";
  if (field == "c") return ":c";
  throw bad_table(fmt::format("{}, column {}", where, column), "r or c", "'" + field + "'");
}

std::string problem_line(const Row& row, const std::string& dtype, const std::string& where) {
  const std::string batch = row.contains("l") ? "x" + extent_of(row, "l", where) : "";
  return fmt::format("gemm {}x{}x{}{} a={}{} b={}{}", extent_of(row, "m", where),
                     extent_of(row, "n", where), extent_of(row, "k", where), batch, dtype,
                     layout_suffix(row, "a_layout", where), dtype,
                     layout_suffix(row, "b_layout", where));
}

Row zip(const std::vector<std::string>& columns, const std::vector<std::string>& fields,
        const std::string& where) {
  if (fields.size() != columns.size())
    throw bad_table(where, fmt::format("{} fields, as in the header", columns.size()),
                    fmt::format("{}", fields.size()));
  Row row;
  for (std::size_t index = 0; index < columns.size(); ++index) row[columns[index]] = fields[index];
  return row;
}

std::vector<std::string> checked_dtypes(std::span<const std::string> words) {
  if (words.empty()) return {"f32"};
  for (const std::string& word : words) {
    if (!parse_dtype(word))
      throw bad_table("--dtype", "the name of an element type", "'" + word + "'");
  }
  return {words.begin(), words.end()};
}

}  // namespace

std::vector<NamedProblem> read_problem_table(const std::string& path,
                                             std::span<const std::string> dtypes) {
  const std::vector<std::string> types = checked_dtypes(dtypes);
  std::ifstream file(path);
  std::string line;
  if (!file || !std::getline(file, line))
    throw bad_table("--file " + path, "a readable file with a header line", std::strerror(errno));
  const std::vector<std::string> columns = split(line);
  std::vector<NamedProblem> problems;
  for (int number = 2; std::getline(file, line); ++number) {
    if (trimmed(line).empty()) continue;
    const std::string where = fmt::format("{}, line {}", path, number);
    const Row row = zip(columns, split(line), where);
    for (const std::string& dtype : types)
      problems.push_back({field_of(row, "id", where), problem_line(row, dtype, where)});
  }
  if (problems.empty()) throw bad_table("--file " + path, "at least one row", "none");
  return problems;
}

}  // namespace gemmery::cli
