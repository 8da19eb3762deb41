// SPDX-License-Identifier: Apache-2.0
// Converts compiled kernels to their stored form for a file, and back with this library's own
// launch code.
#include "runtime/stored_artifact.hpp"

#include <gemmery/error.hpp>
#include <gemmery/family.hpp>

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <xxhash.h>

#include "jit/embedded.hpp"
#include "kernel/operand_programs.hpp"
#include "kernel/registry.hpp"
#include "runtime/bundled_artifact.hpp"
#include "runtime/device_artifact.hpp"
#include "runtime/stored_epilogue.hpp"

namespace gemmery::runtime {
namespace {

using Parts = std::vector<std::shared_ptr<const DeviceArtifact>>;

// --- to a file ----------------------------------------------------------------------------------

std::vector<const DeviceArtifact*> parts_of(const Artifact& artifact) {
  if (const auto* const one = dynamic_cast<const DeviceArtifact*>(&artifact.state())) return {one};
  std::vector<const DeviceArtifact*> parts;
  if (const auto* const bundle = dynamic_cast<const BundledArtifact*>(&artifact.state())) {
    for (const auto& part : bundle->parts()) parts.push_back(part.get());
    return parts;
  }
  throw Error({.kind = ErrorKind::unsupported,
               .operand = artifact.kernel().name(),
               .expected = "a kernel that is compiled for a GPU from source",
               .got = "one of provider " + std::string(artifact.kernel().family().provider()) +
                      ", which has no code to keep",
               .hint = "kernels of the CPU are part of the library"});
}

std::vector<StoredField> fields_of(const Kernel& kernel) {
  std::vector<StoredField> fields;
  for (DesignField& field : kernel.family().design_fields(kernel))
    fields.push_back({std::move(field.name), std::move(field.value)});
  return fields;
}

std::optional<jit::CompiledCode> copy_of(const jit::CompiledCode* code) {
  return code == nullptr ? std::nullopt : std::optional(*code);
}

StoredKernel stored_of(const DeviceArtifact& part, const std::vector<std::string>& problems,
                       bool with_ptx) {
  const Kernel& kernel = part.kernel();
  const Family& family = kernel.family();
  if (with_ptx) (void)part.code(CodeForm::ptx);
  return {.provider = std::string(family.provider()),
          .family = std::string(family.name()),
          .family_version = static_cast<std::uint32_t>(family.version()),
          .kernel_name = kernel.name(),
          .target = part.target(),
          .design = fields_of(kernel),
          .epilogue = std::string(text(kernel.epilogue())),
          .epilogue_operands = stored_operands(kernel.epilogue()),
          .problems = problems,
          .source = part.emitted().text,
          .entry = part.emitted().entry,
          .cubin = copy_of(part.find_code(CodeForm::cubin)),
          .ptx = copy_of(part.find_code(CodeForm::ptx))};
}

// --- from a file --------------------------------------------------------------------------------

[[noreturn]] void refuse(const StoredKernel& stored, const std::string& path, std::string expected,
                         std::string got) {
  throw Error({.kind = ErrorKind::unsupported,
               .operand = fmt::format("{}, {}", path, stored.kernel_name),
               .expected = std::move(expected),
               .got = std::move(got),
               .hint = "compile the kernel again with this version of gemmery, or use the one "
                       "that made the file"});
}

std::string family_text(const Family& family) {
  return fmt::format("{}/{}", family.provider(), family.name());
}

const DeviceFamily& find_family(const StoredKernel& stored, const std::string& path) {
  const std::string wanted = stored.provider + "/" + stored.family;
  std::string known;
  for (const Family* const family : kernel::families()) {
    const auto* const of_gpus = dynamic_cast<const DeviceFamily*>(family);
    if (of_gpus == nullptr) continue;
    if (family_text(*family) != wanted) {
      known += (known.empty() ? "" : ", ") + family_text(*family);
      continue;
    }
    if (static_cast<std::uint32_t>(family->version()) == stored.family_version) return *of_gpus;
    refuse(stored, path, fmt::format("version {} of family {}", family->version(), wanted),
           fmt::format("version {}", stored.family_version));
  }
  refuse(stored, path, "a family of " + known, "family " + wanted);
}

// The programs of a line's operands, which reading it makes known to this process. None for a text
// that is no line of this library.
OperandProgramsId read_programs(const std::string& line) {
  try {
    return kernel::operand_programs(parse_problem(line).problem);
  } catch (const Error&) {
    return OperandProgramsId::none;
  }
}

Kernel find_stored_kernel(const DeviceFamily& family, const StoredKernel& stored,
                          const std::string& path) {
  const EpilogueId epilogue = intern_stored(stored, path);
  std::optional<Kernel> kernel = family.parse_name(stored.kernel_name);
  if (!kernel) {
    for (const std::string& line : stored.problems) read_programs(line);
    kernel = family.parse_name(stored.kernel_name);
  }
  if (!kernel)
    refuse(stored, path, "the name of a kernel of " + family_text(family), "another name");
  if (kernel->epilogue() != epilogue)
    refuse(stored, path, fmt::format("the epilogue \"{}\"", text(kernel->epilogue())),
           fmt::format("\"{}\"", stored.epilogue));
  if (fields_of(*kernel) != stored.design)
    refuse(stored, path, "the design that the kernel has here", "another");
  return *kernel;
}

void check_target(const Kernel& kernel, const StoredKernel& stored, const std::string& path) {
  const std::vector<Target> targets = kernel.family().targets(kernel);
  const bool is_served = std::ranges::any_of(targets, [&](Target own) {
    return own == stored.target ||
           (own.suffix == 0 && own.architecture == stored.target.architecture);
  });
  if (is_served) return;
  std::string list;
  for (const Target own : targets) list += (list.empty() ? "" : " ") + to_string(own);
  refuse(stored, path, "one of the targets " + list, to_string(stored.target));
}

std::shared_ptr<const jit::CompiledCode> shared_copy(const std::optional<jit::CompiledCode>& code) {
  return code ? std::make_shared<const jit::CompiledCode>(*code) : nullptr;
}

// The source is the file's, for display only. Entry and shared memory are those with which this
// library launches the kernel.
std::shared_ptr<const DeviceArtifact> part_of(const StoredKernel& stored, const std::string& path) {
  const DeviceFamily& family = find_family(stored, path);
  const Kernel kernel = find_stored_kernel(family, stored, path);
  check_target(kernel, stored, path);
  EmittedSource emitted = family.emit(kernel, stored.target);
  if (emitted.entry != stored.entry)
    refuse(stored, path, "the entry " + emitted.entry, stored.entry);
  emitted.text = stored.source;
  return std::make_shared<const DeviceArtifact>(
      kernel, stored.target, std::move(emitted),
      DeviceArtifact::Codes{shared_copy(stored.cubin), shared_copy(stored.ptx)});
}

void refuse_twice(const StoredKernel& stored, const Parts& parts, const std::string& path) {
  const auto has_target = [&](const auto& part) { return part->target() == stored.target; };
  if (std::ranges::any_of(parts, has_target))
    refuse(stored, path, "every target once", to_string(stored.target) + " twice");
}

}  // namespace

std::string abi_digest() {
  XXH3_state_t state;
  XXH3_INITSTATE(&state);
  XXH3_128bits_reset(&state);
  for (const jit::EmbeddedHeader& header : jit::embedded_headers()) {
    const std::string_view name = header.name;
    if (!name.starts_with("device/abi/") && !name.starts_with("gemmery/")) continue;
    XXH3_128bits_update(&state, name.data(), name.size() + 1);  // including the terminating zero
    XXH3_128bits_update(&state, header.text, header.size);
  }
  const XXH128_hash_t digest = XXH3_128bits_digest(&state);
  return fmt::format("{:016x}{:016x}", digest.high64, digest.low64);
}

void check_programs_are_spelled(const Kernel& kernel, const std::vector<std::string>& problems) {
  const OperandProgramsId programs = kernel.operands().programs;
  if (programs == OperandProgramsId::none) return;
  if (std::ranges::find(problems, programs, read_programs) != problems.end()) return;
  throw Error({.kind = ErrorKind::unsupported,
               .operand = kernel.name(),
               .expected = "a problem's line with the programs of the kernel's operands",
               .got = "none",
               .hint = "name the problems that it was compiled for: StoredArtifact::problems"});
}

std::vector<StoredKernel> to_stored(const Artifact& artifact,
                                    const std::vector<std::string>& problems, bool with_ptx) {
  std::vector<StoredKernel> stored;
  for (const DeviceArtifact* const part : parts_of(artifact))
    stored.push_back(stored_of(*part, problems, with_ptx));
  return stored;
}

void make_ptx(const Artifact& artifact) {
  for (const DeviceArtifact* const part : parts_of(artifact)) (void)part->code(CodeForm::ptx);
}

Artifact from_stored(const std::vector<StoredKernel>& of_one_kernel, const std::string& path) {
  Parts parts;
  for (const StoredKernel& stored : of_one_kernel) {
    refuse_twice(stored, parts, path);
    parts.push_back(part_of(stored, path));
  }
  if (parts.size() == 1) return Artifact(std::move(parts.front()));
  return Artifact(std::make_shared<const BundledArtifact>(std::move(parts)));
}

}  // namespace gemmery::runtime
