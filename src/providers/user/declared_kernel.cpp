// SPDX-License-Identifier: Apache-2.0
// Checks a declaration and answers queries by it. The user's functions are called here, each within
// a handler.
#include "providers/user/declared_kernel.hpp"

#include <gemmery/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <regex>
#include <utility>

#include <fmt/format.h>
#include <xxhash.h>

#include "kernel/epilogue.hpp"
#include "kernel/rules.hpp"
#include "providers/user/refusal.hpp"
#include "providers/user/user_fault.hpp"
#include "runtime/portable_targets.hpp"

namespace gemmery::user {
namespace {

constexpr std::size_t most_name_characters = 64;

// Raises alignments below the element's size to it.
OperandRules with_whole_elements(OperandRules rules) {
  for (OperandRule* const rule : {&rules.a, &rules.b, &rules.c, &rules.out}) {
    rule->alignment = std::max(rule->alignment, static_cast<std::uint8_t>(byte_width(rule->dtype)));
  }
  return rules;
}

UserKernel completed(UserKernel kernel) {
  kernel.operands = with_whole_elements(kernel.operands);
  return kernel;
}

std::string types_text(const OperandRules& rules) {
  std::string text =
      fmt::format("{}_{}_{}", alias(rules.a.dtype), alias(rules.b.dtype), alias(rules.out.dtype));
  if (rules.has_c) text += fmt::format("_c-{}", alias(rules.c.dtype));
  return text;
}

// --- code ---------------------------------------------------------------------------------------

bool is_cubin(std::span<const std::byte> bytes) {
  constexpr std::string_view magic{"\177ELF\2\1", 6};
  return bytes.size() >= 64 && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// True if "entry" follows ".entry" as a whole word.
bool has_ptx_entry(std::string_view ptx, std::string_view entry) {
  constexpr std::string_view directive = ".entry";
  for (std::size_t at = ptx.find(directive); at != std::string_view::npos;
       at = ptx.find(directive, at + 1)) {
    const std::size_t name = ptx.find_first_not_of(" \t", at + directive.size());
    if (name == std::string_view::npos || !ptx.substr(name).starts_with(entry)) continue;
    const std::size_t end = name + entry.size();
    constexpr std::string_view of_names =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$";
    if (end >= ptx.size() || of_names.find(ptx[end]) == std::string_view::npos) return true;
  }
  return false;
}

void check_image(const UserImage& image, const std::string& entry, std::string_view kernel_name) {
  const std::string field = "image for " + to_string(image.target);
  if (image.target.is_cpu()) refuse(kernel_name, field, "the target of a GPU", "the CPU");
  if (image.cubin.empty() && image.ptx.empty())
    refuse(kernel_name, field, "a cubin or PTX", "neither");
  if (!image.cubin.empty() && !is_cubin(image.cubin))
    refuse(kernel_name, field, "a cubin (an ELF file for GPUs)", "other bytes");
  const bool is_missing_in_cubin =
      !image.cubin.empty() && text_of(image.cubin).find(entry) == std::string_view::npos;
  const bool is_missing_in_ptx = !image.ptx.empty() && !has_ptx_entry(image.ptx, entry);
  if (is_missing_in_cubin || is_missing_in_ptx)
    refuse(kernel_name, field, "code with the kernel " + entry, "code without it");
  if (image.ptx.find('\0') != std::string::npos)
    refuse(kernel_name, field, "PTX without zeros", "a zero");
}

void check_images(const UserImages& images, const std::string& entry,
                  std::string_view kernel_name) {
  if (images.empty()) refuse(kernel_name, "code", "an image at least", "none");
  for (const UserImage& image : images) {
    check_image(image, entry, kernel_name);
    const auto is_same = [&](const UserImage& other) { return other.target == image.target; };
    if (std::ranges::count_if(images, is_same) > 1)
      refuse(kernel_name, "code", "every target once", to_string(image.target) + " twice");
  }
}

void refuse_null_character(std::string_view text, std::string_view field,
                           std::string_view kernel_name) {
  const std::size_t at = text.find('\0');
  if (at == std::string_view::npos) return;
  const auto line =
      1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  refuse(kernel_name, field, "text without a null character",
         fmt::format("one at byte {}, in line {}", at, line));
}

// The functions that the source declares __global__, found by a search of its text.
std::string global_functions_of(std::string_view source) {
  static const std::regex declaration(
      R"(__global__(?:\s+__\w+__\s*\([^)]*\))*\s+void(?:\s+__\w+__\s*\([^)]*\))*\s+(\w+))");
  std::string names;
  using Iterator = std::regex_iterator<std::string_view::const_iterator>;
  for (Iterator found(source.begin(), source.end(), declaration), end; found != end; ++found)
    names += (names.empty() ? "" : ", ") + (*found)[1].str();
  return names.empty() ? "source without any" : "source with " + names;
}

void check_source(const UserSource& source, const std::string& entry,
                  std::string_view kernel_name) {
  refuse_null_character(source.text, "source", kernel_name);
  for (const std::string& option : source.options)
    refuse_null_character(option, "options", kernel_name);
  if (source.text.find(entry) == std::string::npos)
    refuse(kernel_name, "code", "source with the __global__ function " + entry,
           global_functions_of(source.text));
}

// A digest of everything in a declaration except its functions.
std::string digest_of(const UserKernel& kernel, const LaunchRule* launch) {
  XXH3_state_t state;
  XXH3_INITSTATE(&state);
  XXH3_128bits_reset(&state);
  const auto add = [&](std::string_view text) {
    const std::uint64_t size = text.size();
    XXH3_128bits_update(&state, &size, sizeof size);
    XXH3_128bits_update(&state, text.data(), text.size());
  };
  if (launch != nullptr) add(launch->text());
  if (const auto* const source = std::get_if<UserSource>(&kernel.code)) {
    add(source->text);
    for (const std::string& option : source->options) add(option);
  }
  if (const auto* const images = std::get_if<UserImages>(&kernel.code)) {
    for (const UserImage& image : *images) {
      add(to_string(image.target));
      add(text_of(image.cubin));
      add(image.ptx);
    }
  }
  const XXH128_hash_t digest = XXH3_128bits_digest(&state);
  return fmt::format("{:012x}", digest.low64 & 0xffffffffffffULL);
}

std::vector<DesignField> fields_of(const UserKernel& kernel, const LaunchRule* launch) {
  std::vector<DesignField> fields = kernel.design;
  const bool is_source = std::holds_alternative<UserSource>(kernel.code);
  const bool is_image = std::holds_alternative<UserImages>(kernel.code);
  fields.push_back({"form", is_source ? "source" : is_image ? "image" : "callable"});
  if (launch != nullptr) fields.push_back({"code", digest_of(kernel, launch)});
  return fields;
}

}  // namespace

// --- the declaration ----------------------------------------------------------------------------

DeclaredKernel::DeclaredKernel(UserKernel kernel)
    : kernel_(completed(std::move(kernel))),
      workspace_(kernel_.workspace_bytes, kernel_.name + ": workspace_bytes") {
  check_name();
  kernel_name_ =
      fmt::format("user_{}_v{}_{}", kernel_.name, kernel_.version, types_text(kernel_.operands));
  if (kernel_.epilogue) {
    check_epilogue();
    epilogue_ = intern(*kernel_.epilogue);
    kernel_name_ += kernel::epilogue_suffix(epilogue_);
  }
  check_code();
  choose_targets();
  if (!is_callable()) launch_.emplace(kernel_, kernel_name_);
  fields_ = fields_of(kernel_, launch_ ? &*launch_ : nullptr);
}

bool DeclaredKernel::is_callable() const noexcept {
  return std::holds_alternative<UserCallable>(kernel_.code);
}

void DeclaredKernel::check_name() const {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto is_word_character = [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '_';
  };
  const std::string& name = kernel_.name;
  if (name.empty() || name.size() > most_name_characters || !is_letter(name.front()) ||
      !std::ranges::all_of(name, is_word_character)) {
    throw Error({.kind = ErrorKind::invalid_argument,
                 .operand = "register_kernel: name",
                 .expected = "a word of lower-case letters, digits and underscores that begins "
                             "with a letter, of at most 64 characters",
                 .got = "\"" + name + "\""});
  }
  const auto refuse_field = [&](std::string_view field, std::string expected, std::string got) {
    refuse("register_kernel: " + name, field, std::move(expected), std::move(got));
  };
  if (kernel_.version < 1 || kernel_.version > 1'000'000)
    refuse_field("version", "1 to 1000000", std::to_string(kernel_.version));
  const ExtentMultiples& multiples = kernel_.multiples;
  if (multiples.m < 1 || multiples.n < 1 || multiples.k < 1)
    refuse_field("multiples", "numbers of at least 1", "less");
  for (const OperandRule& rule :
       {kernel_.operands.a, kernel_.operands.b, kernel_.operands.c, kernel_.operands.out}) {
    const bool is_power = rule.alignment == 1 || rule.alignment == 2 || rule.alignment == 4 ||
                          rule.alignment == 8 || rule.alignment == 16;
    if (!is_power)
      refuse_field("operands", "alignments of 1, 2, 4, 8 or 16", std::to_string(rule.alignment));
  }
}

void DeclaredKernel::check_epilogue() const {
  constexpr std::array<std::string_view, 8> taken{"A", "B", "out", "m", "n", "k", "l", "workspace"};
  for (const EpilogueOperandRule& rule : kernel_.epilogue->operands) {
    if (std::ranges::find(taken, rule.name) != taken.end()) {
      refuse(kernel_name_, "epilogue", "operands whose names mean nothing else to a launch",
             "\"" + rule.name + "\"");
    }
  }
  if (kernel_.operands.has_c)
    refuse(kernel_name_, "epilogue", "no C among the operands beside it", "one",
           "name it in the program");
  if (kernel_.epilogue->program == epilogue::linear_combination())
    refuse(kernel_name_, "epilogue", "none for alpha * accum + beta * C, the default", "that");
}

void DeclaredKernel::check_code() const {
  for (const DesignField& field : kernel_.design)
    refuse_null_character(field.name + field.value, "design", kernel_name_);
  refuse_null_character(kernel_.launch.entry, "launch.entry", kernel_name_);
  if (const auto* const source = std::get_if<UserSource>(&kernel_.code)) {
    check_source(*source, kernel_.launch.entry, kernel_name_);
  } else if (const auto* const images = std::get_if<UserImages>(&kernel_.code)) {
    check_images(*images, kernel_.launch.entry, kernel_name_);
  } else if (!std::get<UserCallable>(kernel_.code).run) {
    refuse(kernel_name_, "code", "a function to call", "none");
  }
}

void DeclaredKernel::choose_targets() {
  if (const auto* const images = std::get_if<UserImages>(&kernel_.code)) {
    for (const UserImage& image : *images) targets_.push_back(image.target);
    if (!kernel_.targets.empty() && kernel_.targets != targets_)
      refuse(kernel_name_, "targets", "none beside those of the images", "some");
    return;
  }
  targets_ = kernel_.targets;
  if (targets_.empty() && is_callable()) targets_ = {Target::cpu()};
  if (targets_.empty())
    targets_.assign(runtime::portable_targets.begin(), runtime::portable_targets.end());
  for (const Target target : targets_) {
    const bool is_gpu_of_source = !is_callable() && target.is_cpu();
    const bool is_mixed = target.is_cpu() != targets_.front().is_cpu();
    if (is_gpu_of_source || is_mixed)
      refuse(kernel_name_, "targets", "those of GPUs, or for a callable the CPU alone",
             to_string(target));
  }
}

Kernel DeclaredKernel::kernel_of(const Family& family) const {
  return {family, kernel_.operands, DesignBytes{}, epilogue_};
}

// --- answers ------------------------------------------------------------------------------------

Status DeclaredKernel::carries(const GemmProblem& problem) const {
  return kernel::check_epilogue(epilogue_, problem.epilogue);
}

Status DeclaredKernel::check_device(const Query& query) const {
  const bool runs = std::ranges::any_of(
      targets_, [&](Target target) { return runs_on(target, query.device.target); });
  if (!runs) {
    std::string list;
    for (const Target target : targets_) list += (list.empty() ? "" : " ") + to_string(target);
    return Status::fail(fmt::format("target: expected one of {}, got {} ({})", list,
                                    to_string(query.device.target), query.device.name));
  }
  const auto* const callable = std::get_if<UserCallable>(&kernel_.code);
  const bool is_emulated =
      query.arguments != nullptr && query.arguments->device().type == DeviceType::emulated;
  if (callable != nullptr && is_emulated && !callable->takes_emulated_devices) {
    return Status::fail(
        "device: expected the CPU or a GPU, for a callable that does not say it "
        "takes emulated ones, got " +
        to_string(query.arguments->device()));
  }
  return Status::success();
}

Status DeclaredKernel::check_multiples(const GemmProblem& problem) const {
  const ExtentMultiples& multiples = kernel_.multiples;
  for (const auto& [name, extent, multiple] : {std::tuple{"M", problem.m, multiples.m},
                                               {"N", problem.n, multiples.n},
                                               {"K", problem.k, multiples.k}}) {
    if (extent % multiple == 0) continue;
    return Status::fail(
        fmt::format("{}: expected a multiple of {}, got {}", name, multiple, extent));
  }
  return Status::success();
}

Status DeclaredKernel::supports(const Query& query) const {
  if (Status status = check_device(query); !status) return status;
  if (Status status = check_multiples(query.problem); !status) return status;
  if (launch_) {
    if (Status status = launch_->check(query); !status) return status;
  }
  if (!kernel_.supports) return Status::success();
  try {
    return kernel_.supports(query);
  } catch (...) {
    return Status::fail("its function `supports` threw: " + caught_text());
  }
}

DeclaredKernel::Prediction DeclaredKernel::predict(const Query& query) const {
  constexpr double none = std::numeric_limits<double>::infinity();
  if (!kernel_.predicted_us) return {none, {}};
  try {
    const double microseconds = kernel_.predicted_us(query);
    if (std::isfinite(microseconds) && microseconds >= 0) return {microseconds, {}};
    return {none, fmt::format("its function `predicted_us` gave {}", microseconds)};
  } catch (...) {
    return {none, "its function `predicted_us` threw: " + caught_text()};
  }
}

void DeclaredKernel::match(const Family& family, const Query& query,
                           std::vector<RankedKernel>& kernels) const {
  if (!kernel::keeps_rules(kernel_.operands, query.problem) || !supports(query)) return;
  kernels.emplace_back(kernel_of(family), predict(query).microseconds);
}

void DeclaredKernel::explain(const Family& family, const Query& query,
                             std::vector<Reason>& reasons) const {
  const auto add = [&](std::string design_class, std::string failed, int fitting) {
    reasons.push_back({.provider = std::string(family.provider()),
                       .family = std::string(family.name()),
                       .design_class = std::move(design_class),
                       .failed = std::move(failed),
                       .fitting = fitting,
                       .nearest = {}});
  };
  Status status = kernel::check_rules(kernel_.operands, query.problem);
  if (status) status = supports(query);
  add("", status.error(), status ? 1 : 0);
  if (!status) return;
  const Prediction prediction = predict(query);
  if (prediction.fault.empty()) return;
  add("prediction", prediction.fault + "; it is ranked behind all that have a prediction", 0);
}

std::size_t DeclaredKernel::workspace_bytes(const GemmProblem& problem,
                                            const DeviceInfo& device) const {
  if (kernel_.workspace_function) {
    try {
      return kernel_.workspace_function(problem, device);
    } catch (...) {
      rethrow_caught(ErrorKind::launch, kernel_name_, "its function `workspace_function`");
    }
  }
  const auto bytes = workspace_.evaluate({problem, device.multiprocessors});
  if (bytes) return static_cast<std::size_t>(*bytes);
  throw Error({.kind = ErrorKind::unsupported,
               .operand = kernel_name_,
               .expected = "a workspace that fits memory",
               .got = kernel_.workspace_bytes + " bytes"});
}

}  // namespace gemmery::user
