// SPDX-License-Identifier: Apache-2.0
// Parses the compiler's log line by line. The form of the lines is that of ptxas 12.4 to 13.0.
#include "jit/compile_log.hpp"

#include <array>
#include <charconv>

namespace gemmery::jit {
namespace {

// Calls `visit(line)` for each line until it returns true.
template <class Visit>
void for_each_line(std::string_view text, Visit&& visit) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (visit(text.substr(0, end))) return;
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

bool contains(std::string_view text, std::string_view part) noexcept {
  return text.find(part) != std::string_view::npos;
}

// The number in front of `unit`: 16 in "…, 16 bytes stack frame, …" for " bytes stack frame"; 0 if
// it does not occur.
int number_before(std::string_view line, std::string_view unit) {
  const std::size_t end = line.find(unit);
  if (end == std::string_view::npos) return 0;
  std::size_t start = end;
  while (start > 0 && line[start - 1] >= '0' && line[start - 1] <= '9') --start;
  int value = 0;
  std::from_chars(line.data() + start, line.data() + end, value);
  return value;
}

void read_usage_line(std::string_view line, CodeUsage& usage) {
  if (contains(line, " bytes stack frame")) {
    usage.stack_bytes = number_before(line, " bytes stack frame");
    usage.spill_store_bytes = number_before(line, " bytes spill stores");
    usage.spill_load_bytes = number_before(line, " bytes spill loads");
  } else {
    usage.registers = number_before(line, " registers");
    usage.static_shared_bytes = number_before(line, " bytes smem");
  }
}

// The words that follow `mark`, each up to one of the characters of `end`, in order.
std::vector<std::string> words_behind(std::string_view text, std::string_view mark,
                                      std::string_view end) {
  std::vector<std::string> words;
  for (std::size_t at = text.find(mark); at != std::string_view::npos; at = text.find(mark, at)) {
    at += mark.size();
    const std::string_view rest = text.substr(at);
    words.emplace_back(rest.substr(0, rest.find_first_of(end)));
  }
  return words;
}

// A compiler's message begins in the first column; quoted source lines below it are indented.
bool begins_message(std::string_view line) noexcept {
  return !line.empty() && line.front() != ' ' && line.front() != '\t';
}

bool begins_error(std::string_view line) noexcept {
  return begins_message(line) && contains(line, "error") && !contains(line, "): warning") &&
         !contains(line, " detected in the compilation of ");
}

}  // namespace

std::optional<CodeUsage> parse_usage(std::string_view log, std::string_view entry) {
  const std::string heading = "Compiling entry function '" + std::string(entry) + "'";
  CodeUsage usage;
  bool is_inside = false;
  bool is_complete = false;
  for_each_line(log, [&](std::string_view line) {
    if (contains(line, "Compiling entry function '")) {
      is_inside = contains(line, heading);
    } else if (is_inside) {
      const bool names_registers = contains(line, "Used ") && contains(line, " registers");
      if (names_registers || contains(line, " bytes stack frame")) read_usage_line(line, usage);
      is_complete = is_complete || names_registers;
      // A function that is not inlined has properties of its own after the entry's.
      if (names_registers) is_inside = false;
    }
    return is_complete;
  });
  return is_complete ? std::optional(usage) : std::nullopt;
}

std::vector<std::string> entries_of_log(std::string_view log) {
  return words_behind(log, "Compiling entry function '", "'\n");
}

std::vector<std::string> entries_of_ptx(std::string_view ptx) {
  return words_behind(ptx, ".entry ", "( \t\r\n");
}

std::optional<std::string_view> find_warning(std::string_view log) noexcept {
  constexpr std::array<std::string_view, 4> signs{"): warning", "ptxas warning", "(C75",
                                                  "serialized"};
  std::optional<std::string_view> found;
  for_each_line(log, [&](std::string_view line) {
    for (const std::string_view sign : signs) {
      if (contains(line, sign)) found = line;
    }
    if (!found && (line.starts_with("warning") || contains(line, ": warning:") ||
                   contains(line, "nvrtc: warning")))
      found = line;
    return found.has_value();
  });
  return found;
}

std::string_view find_problem_line(std::string_view log) noexcept {
  std::string_view problem;
  for_each_line(log, [&](std::string_view line) {
    if (!begins_error(line)) return false;
    problem = line;
    return true;
  });
  return problem.empty() ? log.substr(0, log.find('\n')) : problem;
}

std::string errors_first(std::string_view log, std::string_view told) {
  std::string errors;
  std::string others;
  bool is_in_error = false;
  bool is_told = told.empty();
  for_each_line(log, [&](std::string_view line) {
    if (begins_message(line)) is_in_error = begins_error(line);
    if (is_told || line != told)
      (is_in_error ? errors : others).append(line).push_back('\n');
    else
      is_told = true;
    return false;
  });
  // The quoted line ends here; what follows starts on a line of its own.
  return (is_told && !told.empty() ? "\n" : "") + errors + others;
}

}  // namespace gemmery::jit
