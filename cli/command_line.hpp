// SPDX-License-Identifier: Apache-2.0
// The parsed command line: a verb and its options.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gemmery::cli {

enum class Format : std::uint8_t { text, json, csv };

// Options of gemmery emulate only; docs/cli.md explains them.
struct EmulateOptions {
  std::string kernel;                // the file; empty for a program
  std::vector<std::string> program;  // a program with its arguments
  std::string entry;
  std::string grid = "1";
  std::string block = "1";
  std::string cluster = "1";
  std::uint32_t shared_bytes = 0;
  std::vector<std::string> arguments;
  std::vector<std::string> include_folders;
  std::vector<std::string> definitions;
  std::vector<std::string> compile_options;
  std::string rules;  // a file
  int schedules = 0;  // 0: the default
  std::uint32_t sampled_clusters = 0;
  double timeout_s = 0;
  bool stops_at_first = false;
  bool wants_coverage = false;
  std::string trace;  // X[,Y[,Z]][:WARP]
};

enum class CodeView : std::uint8_t { resources, source, ptx, sass };

// Options of gemmery inspect only.
struct InspectOptions {
  CodeView form = CodeView::resources;
  bool inlines_headers = false;  // in the printed source
};

// Options of gemmery bench only.
struct ReportWishes {
  std::string file;                   // where the page is written; empty: nowhere
  std::string from;                   // a file of records, in place of timing
  std::vector<std::string> compared;  // two files of records, or none
};

enum class TuningAction : std::uint8_t { tune, list, forget };

// Options of gemmery tune only.
struct TuningWishes {
  TuningAction action = TuningAction::tune;
  double budget_s = 30;
  int candidates = 12;
  bool measures_again = false;
  bool takes_all = false;  // of forget
};

// The options of all verbs; each verb accepts those in its section of docs/cli.md.
struct Options {
  std::vector<std::string> words;  // the words of the problems
  std::string device;              // empty: not given
  std::string target;
  std::vector<std::string> targets;  // for compile, which takes several
  std::vector<std::string> providers;
  std::vector<std::string> kernels;
  std::vector<std::string> designs;  // FIELD=VALUE
  std::vector<std::string> dtypes;
  std::string fill = "normal";
  std::string file;
  std::string output;   // for compile: a file; for emulate: a folder
  std::string inspect;  // a file of kernels to inspect
  bool with_ptx = false;
  bool ranking = false;         // for explain
  int jobs = 0;                 // 0: the library's default
  std::string action = "stat";  // for cache
  std::string shell;            // for completion
  std::string new_what;         // for new: "kernel"
  std::string new_name;         // for new
  std::int64_t bytes = -1;      // for cache prune: the limit; -1: not given
  Format format = Format::text;
  bool is_quiet = false;
  std::uint64_t seed = 0;  // 0: a random one
  int limit = -1;          // 0: all; -1: not given
  bool wide = false;       // prints names in full
  int top = 1;             // 0: all
  int samples = 11;
  double sample_ms = 5;
  std::vector<std::string> libraries;  // shared libraries with the user's kernels
  EmulateOptions emulate;
  InspectOptions inspection;
  TuningWishes tuning;
  ReportWishes report;
};

struct CommandLine {
  std::string verb{};  // empty if none was given
  Options options{};
  bool wants_help = false;
  bool wants_man_page = false;
  bool wants_version = false;
};

std::span<const std::string_view> verbs();

// The actions of `gemmery cache`.
std::span<const std::string_view> cache_actions();

// Throws Error (invalid_argument) for unknown verbs, options and values.
CommandLine parse_command_line(int argc, const char* const* argv);

// The options that a verb accepts ("--device", …). A test compares them with the manual.
std::vector<std::string> option_names(std::string_view verb);

}  // namespace gemmery::cli
