// SPDX-License-Identifier: Apache-2.0
// Generates the scripts from the parser's declarations, so both have the same options.
#include "cli/completion.hpp"

#include <array>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gemmery/device.hpp>
#include <gemmery/error.hpp>

#include "cli/command_line.hpp"
#include "cli/verbs.hpp"

namespace gemmery::cli {
namespace {

constexpr std::array<std::string_view, 3> shells{"bash", "zsh", "fish"};

constexpr std::string_view target_words =
    "cpu sm_80 sm_86 sm_87 sm_89 sm_90 sm_90a sm_100 sm_103 sm_110 sm_120 sm_121";

// cpu, the first GPUs, devices that may be absent, emulated devices.
std::string device_words() {
  std::string words = "cpu 0 1";
  for (const std::string_view name : known_device_names()) words += fmt::format(" {}", name);
  for (const std::string_view name : known_device_names())
    words += fmt::format(" emulated:{}", name);
  return words;
}

// The words that may be an operand of the verb: the first words of problems, or of the other
// operands that the verb accepts.
std::string operand_words(std::string_view verb) {
  if (verb == "cache") return fmt::format("{}", fmt::join(cache_actions(), " "));
  if (verb == "completion") return fmt::format("{}", fmt::join(shells, " "));
  if (verb == "doctor" || verb == "emulate") return {};
  std::string words = "gemm grouped_gemm";
  for (const int dimensions : {1, 2, 3})
    for (const std::string_view kind : {"fprop", "dgrad", "wgrad"})
      words += fmt::format(" conv{}d_{}", dimensions, kind);
  return words;
}

std::string verb_words() { return fmt::format("{} help version", fmt::join(verbs(), " ")); }

std::string option_words(std::string_view verb) {
  return fmt::format("{} --help", fmt::join(option_names(verb), " "));
}

// --- bash and zsh -------------------------------------------------------------------------------

std::string bash_function() {
  std::string cases;
  for (const std::string_view verb : verbs())
    cases += fmt::format("    {}) options=\"{}\" operands=\"{}\" ;;\n", verb, option_words(verb),
                         operand_words(verb));
  return fmt::format(R"(_gemmery() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} options= operands=
  local verbs="{0}"
  # bash also splits words at ':', so emulated:h200 is three words.
  if [[ $before == : && ${{COMP_WORDS[COMP_CWORD-2]}} == emulated ]]; then
    COMPREPLY=($(compgen -W "{3}" -- "$word"))
    return
  fi
  if [[ $COMP_CWORD -eq 1 || (${{COMP_WORDS[1]}} == help && $COMP_CWORD -eq 2) ]]; then
    COMPREPLY=($(compgen -W "$verbs" -- "$word"))
    return
  fi
  case $before in
    --device) COMPREPLY=($(compgen -W "{1}" -- "$word")); return ;;
    --target) COMPREPLY=($(compgen -W "{2}" -- "$word")); return ;;
    --file | --load | --output | -o | --inspect | --include | -I | --suppress) return ;;
  esac
  case ${{COMP_WORDS[1]}} in
{4}  esac
  if [[ $word == -* ]]; then operands=$options; fi
  COMPREPLY=($(compgen -W "$operands" -- "$word"))
}}
complete -o default -o bashdefault -F _gemmery gemmery
)",
                     verb_words(), device_words(), target_words,
                     fmt::join(known_device_names(), " "), cases);
}

std::string bash_script() {
  return "# Completion of gemmery for bash: source <(gemmery completion bash)\n" + bash_function();
}

std::string zsh_script() {
  return "#compdef gemmery\n"
         "# Completion of gemmery for zsh: source <(gemmery completion zsh)\n"
         "autoload -U +X compinit bashcompinit\n"
         "(( $+functions[compdef] )) || compinit\n"
         "bashcompinit\n" +
         bash_function();
}

// --- fish ---------------------------------------------------------------------------------------

std::string fish_option(std::string_view verb, std::string_view option) {
  std::string line = fmt::format("complete -c gemmery -n '__fish_seen_subcommand_from {}' -l {}",
                                 verb, option.substr(2));
  if (option == "--device") line += fmt::format(" -x -a '{}'", device_words());
  if (option == "--target") line += fmt::format(" -x -a '{}'", target_words);
  return line + "\n";
}

std::string fish_script() {
  std::string text =
      "# Completion of gemmery for fish: gemmery completion fish | source\n"
      "complete -c gemmery -n '__fish_use_subcommand' -f -a '" +
      verb_words() + "'\n";
  for (const std::string_view verb : verbs()) {
    for (const std::string& option : option_names(verb))
      if (option.starts_with("--")) text += fish_option(verb, option);
    if (const std::string words = operand_words(verb); !words.empty())
      text += fmt::format("complete -c gemmery -n '__fish_seen_subcommand_from {}' -a '{}'\n", verb,
                          words);
  }
  return text;
}

}  // namespace

std::span<const std::string_view> completed_shells() { return shells; }

std::string completion_script(std::string_view shell) {
  if (shell == "bash") return bash_script();
  return shell == "zsh" ? zsh_script() : fish_script();
}

ExitCode print_completion(const Options& options, Output& output) {
  if (options.shell.empty())
    throw Error({.kind = ErrorKind::invalid_argument,
                 .operand = "shell",
                 .expected = fmt::format("one of {}", fmt::join(shells, ", ")),
                 .got = "none",
                 .hint = "see gemmery completion --help"});
  output.write(completion_script(options.shell));
  return ExitCode::success;
}

}  // namespace gemmery::cli
