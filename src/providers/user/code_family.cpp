// SPDX-License-Identifier: Apache-2.0
// Adds the kernel's name to a source; makes artifacts of images unchanged.
#include "providers/user/code_family.hpp"

#include <gemmery/error.hpp>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/invariant.hpp"
#include "runtime/device_artifact.hpp"
#include "runtime/entry_parameters.hpp"

namespace gemmery::user {
namespace {

const UserImage& image_for(const UserImages& images, Target target) {
  const auto is_exact = [&](const UserImage& image) { return image.target == target; };
  const auto is_portable = [&](const UserImage& image) {
    return image.target.suffix == 0 && image.target.architecture == target.architecture;
  };
  auto found = std::ranges::find_if(images, is_exact);
  if (found == images.end()) found = std::ranges::find_if(images, is_portable);
  require(found != images.end(), "an image was asked for a target that the kernel does not have");
  return *found;
}

std::shared_ptr<const jit::CompiledCode> code_of(const UserImage& image, CodeForm form) {
  const bool is_missing = form == CodeForm::ptx ? image.ptx.empty() : image.cubin.empty();
  if (is_missing) return nullptr;
  auto code = std::make_shared<jit::CompiledCode>();
  if (form == CodeForm::ptx)
    code->ptx = image.ptx;
  else
    code->cubin = image.cubin;
  return code;
}

}  // namespace

CodeFamily::CodeFamily(std::unique_ptr<const DeclaredKernel> kernel)
    : DeclaredFamily(std::move(kernel)) {
  const auto* const images = std::get_if<UserImages>(&declared().given().code);
  if (images == nullptr) return;
  for (const UserImage& image : *images) {
    if (!image.cubin.empty()) check_code(image.cubin, CodeForm::cubin);
    if (!image.ptx.empty()) check_code(std::as_bytes(std::span(image.ptx)), CodeForm::ptx);
  }
}

// The first line names the kernel in compilers' errors. The user's line numbers start after it.
runtime::EmittedSource CodeFamily::emit(const Kernel&, Target) const {
  const UserKernel& given = declared().given();
  runtime::EmittedSource emitted;
  emitted.entry = given.launch.entry;
  emitted.max_dynamic_shared_bytes = static_cast<int>(given.launch.shared_bytes);
  if (const auto* const source = std::get_if<UserSource>(&given.code)) {
    emitted.text = fmt::format("// {}\n#line 1 \"{}.cu\"\n{}\n", declared().kernel_name(),
                               given.name, source->text);
    emitted.options = source->options;
  }
  return emitted;
}

void CodeFamily::pack(const runtime::PackRequest& request, runtime::LaunchPlan& plan) const {
  declared().launch().pack(request, plan);
  plan.workspace_bytes = declared().workspace_bytes(request.arguments.problem(), request.device);
  if (declared().given().launch.clears_workspace)
    plan.zeroed_workspace_bytes = plan.workspace_bytes;
}

// Also called while the family is constructed.
void CodeFamily::check_code(std::span<const std::byte> code, CodeForm form) const {
  const std::string& entry = declared().given().launch.entry;
  const std::string_view text(reinterpret_cast<const char*>(code.data()), code.size());
  const auto taken = form == CodeForm::ptx ? runtime::parameters_of_ptx(text, entry)
                                           : runtime::parameters_of_cubin(code, entry);
  const runtime::EntryParameters packed = declared().launch().parameters();
  if (!taken || *taken == packed) return;
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = declared().kernel_name() + ": launch.parameters",
               .expected = "what " + entry + " takes, " + runtime::describe(*taken),
               .got = runtime::describe(packed),
               .hint = "a parameter's type may follow it: \"m:i64\", \"alpha:f64\""});
}

std::shared_ptr<const runtime::DeviceArtifact> CodeFamily::make_artifact(const Kernel& kernel,
                                                                         Target target,
                                                                         CodeForm form) const {
  const auto* const images = std::get_if<UserImages>(&declared().given().code);
  if (images == nullptr) {
    auto artifact = DeviceFamily::make_artifact(kernel, target, form);
    const jit::CompiledCode& code = artifact->code(form);
    check_code(form == CodeForm::ptx ? std::as_bytes(std::span(code.ptx)) : std::span(code.cubin),
               form);
    return artifact;
  }
  const UserImage& image = image_for(*images, target);
  runtime::DeviceArtifact::Codes codes;
  for (const CodeForm one : {CodeForm::cubin, CodeForm::ptx})
    codes[static_cast<std::size_t>(one)] = code_of(image, one);
  return std::make_shared<const runtime::DeviceArtifact>(kernel, target, emit(kernel, target),
                                                         std::move(codes));
}

}  // namespace gemmery::user
