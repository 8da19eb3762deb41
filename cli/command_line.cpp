// SPDX-License-Identifier: Apache-2.0
// Declares the verbs and their options to CLI11. docs/cli.md explains them; --help prints it.
#include "cli/command_line.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <CLI/CLI.hpp>
#include <gemmery/error.hpp>

#include "cli/completion.hpp"
#include "cli/emulated_process.hpp"
#include "cli/suggestion.hpp"

namespace gemmery::cli {
namespace {

constexpr std::array<std::string_view, 13> all_verbs{
    "list",    "explain", "run", "verify", "bench",  "tune",      "compile",
    "inspect", "emulate", "new", "cache",  "doctor", "completion"};

// The parser and the values that it sets.
struct Parser {
  CLI::App app{"gemmery"};
  CommandLine line;
  bool wants_json = false;
  bool wants_csv = false;
};

std::vector<std::string> strings_of(std::span<const std::string_view> words) {
  return {words.begin(), words.end()};
}

// Accepts these words only, and suggests the one that was meant.
CLI::Validator one_of(std::vector<std::string> words) {
  const auto check = [words](std::string& word) -> std::string {
    if (std::ranges::find(words, word) != words.end()) return {};
    std::string expected;
    for (const std::string& each : words) expected += (expected.empty() ? "" : ", ") + each;
    const std::string question = did_you_mean(closest_word(word, words));
    return "expected " + std::string(words.size() > 1 ? "one of " : "") + expected + ", got '" +
           word + "'" + (question.empty() ? "" : "; " + question);
  };
  return CLI::Validator(check, "");
}

void add_strings(CLI::App& verb, const std::string& name, std::vector<std::string>& values) {
  verb.add_option(name, values)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
}

void add_format(CLI::App& verb, Parser& parser) {
  CLI::Option* const json = verb.add_flag("--json", parser.wants_json);
  verb.add_flag("--csv", parser.wants_csv)->excludes(json);
}

void add_kernels(CLI::App& verb, Options& options) {
  add_strings(verb, "--provider", options.providers);
  add_strings(verb, "--kernel", options.kernels);
  add_strings(verb, "--design", options.designs);
  verb.get_option("--design")->excludes("--kernel");
}

void add_libraries(CLI::App& verb, Options& options) {
  add_strings(verb, "--load", options.libraries);
}

void add_selection(CLI::App& verb, Options& options) {
  verb.add_option("--device", options.device);
  verb.add_option("--target", options.target);
  add_kernels(verb, options);
  add_libraries(verb, options);
  verb.add_option("problem", options.words);
}

void add_seed(CLI::App& verb, Options& options) { verb.add_option("--seed", options.seed); }

void add_top(CLI::App& verb, Options& options) {
  verb.add_option("--top", options.top)->check(CLI::Range(0, 1'000'000'000));
}

void declare_list(CLI::App& verb, Parser& parser) {
  add_selection(verb, parser.line.options);
  verb.add_option("--limit", parser.line.options.limit)->check(CLI::Range(0, 1'000'000'000));
  verb.add_flag("--wide", parser.line.options.wide);
  add_format(verb, parser);
}

void declare_explain(CLI::App& verb, Parser& parser) {
  add_selection(verb, parser.line.options);
  verb.add_flag("--ranking", parser.line.options.ranking)->excludes("--kernel");
  verb.get_option("--design")->needs("--ranking");
  verb.add_option("--limit", parser.line.options.limit)
      ->check(CLI::Range(0, 1'000'000'000))
      ->needs("--ranking");
  verb.add_flag("--wide", parser.line.options.wide);
  add_format(verb, parser);
}

void declare_run(CLI::App& verb, Parser& parser) {
  add_selection(verb, parser.line.options);
  add_seed(verb, parser.line.options);
  add_format(verb, parser);
}

void declare_verify(CLI::App& verb, Parser& parser) {
  add_selection(verb, parser.line.options);
  add_seed(verb, parser.line.options);
  add_top(verb, parser.line.options);
  verb.add_option("--fill", parser.line.options.fill)
      ->check(one_of({"normal", "uniform", "integers"}));
  add_format(verb, parser);
}

void declare_bench(CLI::App& verb, Parser& parser) {
  Options& options = parser.line.options;
  add_selection(verb, options);
  add_seed(verb, options);
  add_top(verb, options);
  CLI::Option* const file = verb.add_option("--file", options.file);
  add_strings(verb, "--dtype", options.dtypes);
  verb.get_option("--dtype")->needs(file);
  verb.add_option("--samples", options.samples)->check(CLI::Range(1, 1'000'000));
  verb.add_option("--sample-ms", options.sample_ms)->check(CLI::Range(0.001, 60'000.0));
  verb.add_option("--report", options.report.file);
  CLI::Option* const from = verb.add_option("--from", options.report.from)->excludes(file);
  verb.add_option("--compare", options.report.compared)
      ->expected(2)
      ->excludes(file)
      ->excludes(from);
  add_format(verb, parser);
}

void declare_tune(CLI::App& verb, Parser& parser) {
  Options& options = parser.line.options;
  TuningWishes& wishes = options.tuning;
  verb.add_option("--device", options.device);
  add_strings(verb, "--provider", options.providers);
  add_strings(verb, "--design", options.designs);
  add_libraries(verb, options);
  verb.add_option("problem", options.words);
  CLI::Option* const file = verb.add_option("--file", options.file);
  add_strings(verb, "--dtype", options.dtypes);
  verb.get_option("--dtype")->needs(file);
  verb.add_option("--budget", wishes.budget_s)
      ->transform(CLI::AsNumberWithUnit(std::map<std::string, double>{
          {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"min", 60}, {"h", 3600}}))
      ->check(CLI::Range(0.001, 1e6));
  verb.add_option("--candidates", wishes.candidates)->check(CLI::Range(0, 1'000'000));
  add_seed(verb, options);
  CLI::Option* const force = verb.add_flag("--force", wishes.measures_again);
  CLI::Option* const list =
      verb.add_flag_callback("--list", [&wishes] { wishes.action = TuningAction::list; });
  CLI::Option* const forget =
      verb.add_flag_callback("--forget", [&wishes] { wishes.action = TuningAction::forget; });
  verb.add_flag("--all", wishes.takes_all)->needs(forget);
  list->excludes(forget)->excludes(force);
  forget->excludes(force);
  add_format(verb, parser);
}

void declare_compile(CLI::App& verb, Parser& parser) {
  Options& options = parser.line.options;
  verb.add_option("--device", options.device);
  add_strings(verb, "--target", options.targets);
  add_kernels(verb, options);
  add_libraries(verb, options);
  verb.add_option("problem", options.words);
  add_top(verb, options);
  verb.add_option("-o,--output", options.output);
  verb.add_flag("--ptx", options.with_ptx);
  verb.add_option("--jobs", options.jobs)->check(CLI::Range(1, 1024));
  verb.add_option("--inspect", options.inspect)->excludes("--output");
  add_format(verb, parser);
}

void declare_inspect(CLI::App& verb, Parser& parser) {
  InspectOptions& options = parser.line.options.inspection;
  add_selection(verb, parser.line.options);
  add_top(verb, parser.line.options);
  std::vector<CLI::Option*> forms;
  const auto add_form = [&](const std::string& name, CodeView form) {
    CLI::Option* const flag =
        verb.add_flag_callback(name, [&options, form] { options.form = form; });
    for (CLI::Option* const other : forms) flag->excludes(other);
    forms.push_back(flag);
  };
  add_form("--resources", CodeView::resources);
  add_form("--source", CodeView::source);
  add_form("--ptx", CodeView::ptx);
  add_form("--sass", CodeView::sass);
  verb.add_flag("--inline", options.inlines_headers)->needs("--source");
  add_format(verb, parser);
}

void declare_emulate(CLI::App& verb, Parser& parser) {
  EmulateOptions& options = parser.line.options.emulate;
  verb.add_option("kernel", options.kernel);
  verb.add_option("--entry", options.entry);
  verb.add_option("--grid", options.grid);
  verb.add_option("--block", options.block);
  verb.add_option("--cluster", options.cluster);
  verb.add_option("--shared", options.shared_bytes);
  add_strings(verb, "--arg", options.arguments);
  verb.add_option("--device", parser.line.options.device);
  verb.add_option("--seeds", options.schedules)->check(CLI::Range(1, 1'000'000));
  add_seed(verb, parser.line.options);
  add_strings(verb, "-I,--include", options.include_folders);
  add_strings(verb, "-D,--define", options.definitions);
  add_strings(verb, "--option", options.compile_options);
  verb.add_option("-o,--output", parser.line.options.output);
  verb.add_option("--suppress", options.rules);
  verb.add_flag("--stop-at-first", options.stops_at_first);
  verb.add_option("--timeout", options.timeout_s)->check(CLI::Range(0.001, 1e9));
  verb.add_option("--sample-blocks", options.sampled_clusters)->check(CLI::Range(1, 1 << 30));
  verb.add_flag("--coverage", options.wants_coverage);
  verb.add_option("--trace", options.trace);
  verb.add_flag("--json", parser.wants_json);
}

void declare_cache(CLI::App& verb, Parser& parser) {
  Options& options = parser.line.options;
  verb.add_option("action", options.action)->check(one_of(strings_of(cache_actions())));
  verb.add_option("--bytes", options.bytes)
      ->check(CLI::Range(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()));
  add_format(verb, parser);
}

void declare_doctor(CLI::App& verb, Parser& parser) { verb.add_flag("--json", parser.wants_json); }

void declare_completion(CLI::App& verb, Parser& parser) {
  verb.add_option("shell", parser.line.options.shell)
      ->check(one_of(strings_of(completed_shells())));
}

void declare_new(CLI::App& verb, Parser& parser) {
  verb.add_option("what", parser.line.options.new_what)->check(one_of({"kernel"}));
  verb.add_option("name", parser.line.options.new_name);
}

using Declaration = void (*)(CLI::App&, Parser&);
constexpr std::array<Declaration, all_verbs.size()> declarations{
    declare_list,  declare_explain, declare_run,       declare_verify,  declare_bench,
    declare_tune,  declare_compile, declare_inspect,   declare_emulate, declare_new,
    declare_cache, declare_doctor,  declare_completion};

// Replaces CLI11's --help by one that prints the manual.
void add_help(CLI::App& app, Parser& parser) {
  app.set_help_flag();
  app.add_flag("-h,--help", parser.line.wants_help);
}

std::unique_ptr<Parser> make_parser() {
  auto parser = std::make_unique<Parser>();
  add_help(parser->app, *parser);
  parser->app.add_flag("-V,--version", parser->line.wants_version);
  parser->app.require_subcommand(0, 1);
  for (std::size_t index = 0; index < all_verbs.size(); ++index) {
    CLI::App& verb = *parser->app.add_subcommand(std::string(all_verbs[index]));
    add_help(verb, *parser);
    declarations[index](verb, *parser);
    if (all_verbs[index] != "completion")
      verb.add_flag("-q,--quiet", parser->line.options.is_quiet);
  }
  return parser;
}

std::string join(std::span<const std::string_view> words) {
  std::string text;
  for (const std::string_view word : words) text += (text.empty() ? "" : ", ") + std::string(word);
  return text;
}

bool is_verb(std::string_view word) {
  return std::ranges::find(all_verbs, word) != all_verbs.end();
}

// "did you mean list? see gemmery --help"
std::string hint_for(std::string_view word, std::span<const std::string> candidates,
                     const std::string& help) {
  const std::string question = did_you_mean(closest_word(word, candidates));
  return question + (question.empty() ? "see " : " see ") + help;
}

[[noreturn]] void throw_unknown_verb(std::string_view word) {
  std::vector<std::string> names(all_verbs.begin(), all_verbs.end());
  names.insert(names.end(), {"help", "version"});
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "verb",
               .expected = "one of " + join(all_verbs),
               .got = "'" + std::string(word) + "'",
               .hint = hint_for(word, names, "gemmery --help")});
}

// The two words that stand for a verb; the first page describes them.
bool is_question(std::string_view word) { return word == "help" || word == "version"; }

bool asks_for_help(std::string_view word) { return word == "--help" || word == "-h"; }

// gemmery help [VERB] and gemmery version. They have no options and are not verbs.
std::optional<CommandLine> read_question(std::span<const char* const> words) {
  if (words.size() < 2) return std::nullopt;
  if (words.size() == 2 && std::string_view(words[1]) == "version")
    return CommandLine{.wants_version = true};
  if (words.size() == 3 && is_question(words[1]) && asks_for_help(words[2]))
    return CommandLine{.wants_help = true};
  const bool is_help = words.size() >= 2 && std::string_view(words[1]) == "help";
  if (!is_help || words.size() > 3) return std::nullopt;
  if (words.size() == 2) return CommandLine{.wants_help = true};
  if (std::string_view(words[2]) == "--man") return CommandLine{.wants_man_page = true};
  if (is_question(words[2])) return CommandLine{.wants_help = true};
  if (!is_verb(words[2])) throw_unknown_verb(words[2]);
  return CommandLine{.verb = words[2], .wants_help = true};
}

// Suggests a verb for a mistyped one; CLI11 would only report an unexpected word.
void check_verb(int argc, const char* const* argv) {
  if (argc < 2 || argv[1][0] == '-' || is_verb(argv[1])) return;
  throw_unknown_verb(argv[1]);
}

Format format_of(const Parser& parser) {
  if (parser.wants_json) return Format::json;
  return parser.wants_csv ? Format::csv : Format::text;
}

// The first word that looks like an option and is not one of the verb's; empty if there is none.
std::string_view unknown_option(std::span<const char* const> words,
                                std::span<const std::string> names) {
  for (const std::string_view word : words) {
    const std::string_view name = word.substr(0, word.find('='));
    if (name.starts_with("--") && std::ranges::find(names, name) == names.end()) return name;
  }
  return {};
}

[[noreturn]] void throw_usage_error(const std::string& message, const std::string& verb,
                                    std::span<const char* const> words = {}) {
  const std::string help = "gemmery " + verb + (verb.empty() ? "--help" : " --help");
  std::vector<std::string> names =
      verb.empty() ? std::vector<std::string>{"--version"} : option_names(verb);
  names.emplace_back("--help");
  // What `one_of` suggests is a part of the hint.
  const std::size_t question = message.rfind("; did you mean ");
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "command line",
               .got = message.substr(0, question),
               .hint = question == std::string::npos
                           ? hint_for(unknown_option(words, names), names, help)
                           : message.substr(question + 2) + " see " + help});
}

// --- gemmery emulate PROGRAM ARGS... ------------------------------------------------------------

bool takes_next_word(const CLI::App& verb, const std::string& word) {
  if (word.find('=') != std::string::npos) return false;
  const CLI::Option* const option = verb.get_option_no_throw(word);
  return option != nullptr && option->get_items_expected_max() > 0;
}

// The number of words before the program that `gemmery emulate` is to run; all if there is none.
// What follows the program belongs to it.
std::size_t words_before_program(std::span<const char* const> words, const CLI::App& verb) {
  for (std::size_t at = 2; at < words.size(); ++at) {
    const std::string word = words[at];
    if (word.starts_with('-')) {
      if (takes_next_word(verb, word)) ++at;
    } else {
      return is_program(word) ? at : words.size();
    }
  }
  return words.size();
}

// Options that say how a kernel is compiled and launched, which a program does itself.
void check_program_options(const CLI::App& verb) {
  for (const char* const name :
       {"--entry", "--grid", "--block", "--cluster", "--shared", "--arg", "--include", "--define",
        "--option", "--output", "--sample-blocks", "--coverage", "--trace"}) {
    if (verb.get_option(name)->count() > 0)
      throw_usage_error(std::string(name) + " is for a kernel, and a program was given", "emulate");
  }
}

void check_counts(const CommandLine& line) {
  const bool takes_several =
      line.verb == "bench" || line.verb == "compile" || line.verb == "inspect";
  if (!takes_several && line.options.kernels.size() > 1)
    throw_usage_error("--kernel was given twice", line.verb);
}

}  // namespace

std::span<const std::string_view> verbs() { return all_verbs; }

std::span<const std::string_view> cache_actions() {
  static constexpr std::array<std::string_view, 5> actions{"stat", "list", "verify", "prune",
                                                           "clear"};
  return actions;
}

CommandLine parse_command_line(int argc, const char* const* argv) {
  const std::span<const char* const> words(argv, static_cast<std::size_t>(argc));
  if (std::optional<CommandLine> question = read_question(words)) return *std::move(question);
  check_verb(argc, argv);
  const std::unique_ptr<Parser> parser = make_parser();
  CommandLine& line = parser->line;
  const auto read_verb = [&] {
    if (!parser->app.get_subcommands().empty())
      line.verb = parser->app.get_subcommands().front()->get_name();
  };
  const CLI::App& emulate = *parser->app.get_subcommand("emulate");
  const bool is_emulation = argc > 1 && std::string_view(argv[1]) == "emulate";
  const std::size_t own = is_emulation ? words_before_program(words, emulate) : words.size();
  line.options.emulate.program.assign(words.begin() + static_cast<std::ptrdiff_t>(own),
                                      words.end());
  try {
    parser->app.parse(static_cast<int>(own), argv);
  } catch (const CLI::ParseError& error) {
    read_verb();
    throw_usage_error(error.what(), line.verb, words);
  }
  read_verb();
  line.options.format = format_of(*parser);
  if (!line.options.emulate.program.empty()) check_program_options(emulate);
  check_counts(line);
  return line;
}

std::vector<std::string> option_names(std::string_view verb) {
  const std::unique_ptr<Parser> parser = make_parser();
  std::vector<std::string> names;
  for (const CLI::Option* option : parser->app.get_subcommand(std::string(verb))->get_options()) {
    if (!option->get_positional() && option->get_name() != "--help")
      names.push_back(option->get_name());
  }
  return names;
}

}  // namespace gemmery::cli
