// SPDX-License-Identifier: Apache-2.0
// Artifact files for users: saving, loading, inspecting.
#include <gemmery/artifact.hpp>
#include <gemmery/discovery.hpp>
#include <gemmery/version.hpp>

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "jit/disassembler.hpp"
#include "jit/inline_headers.hpp"
#include "platform/whole_file.hpp"
#include "runtime/artifact_file.hpp"
#include "runtime/device_artifact.hpp"
#include "runtime/stored_artifact.hpp"

namespace gemmery {
namespace {

using runtime::ArtifactFile;
using runtime::StoredKernel;

constexpr std::size_t most_file_bytes = std::size_t{4} << 30;

// --- saving -------------------------------------------------------------------------------------

bool is_same(const StoredKernel& one, const StoredKernel& other) {
  return one.kernel_name == other.kernel_name && one.target == other.target;
}

void add(std::vector<StoredKernel>& kernels, StoredKernel added) {
  const auto known =
      std::ranges::find_if(kernels, [&](const StoredKernel& one) { return is_same(one, added); });
  if (known == kernels.end()) {
    kernels.push_back(std::move(added));
    return;
  }
  for (std::string& problem : added.problems) {
    if (std::ranges::find(known->problems, problem) == known->problems.end())
      known->problems.push_back(std::move(problem));
  }
}

// --- loading ------------------------------------------------------------------------------------

ArtifactFile read_file(const std::string& path) {
  return runtime::decode(platform::read_whole_file(path, most_file_bytes), path);
}

void check_abi(const ArtifactFile& file, const std::string& path) {
  const std::string own = runtime::abi_digest();
  if (file.abi_digest == own) return;
  throw Error({.kind = ErrorKind::unsupported,
               .operand = path,
               .expected = "kernels whose parameters have the layout of this library (" +
                           std::string(version()) + "), device/abi " + own.substr(0, 12),
               .got = "those of library " + file.library_version + ", device/abi " +
                      file.abi_digest.substr(0, 12),
               .hint = "compile the kernels again with this version of gemmery, or use the one "
                       "that made the file"});
}

// Groups stored kernels by kernel, in the order in which kernels first appear in the file.
std::vector<std::vector<StoredKernel>> by_kernel(std::vector<StoredKernel> kernels) {
  std::vector<std::vector<StoredKernel>> groups;
  std::map<std::string, std::size_t> places;
  for (StoredKernel& kernel : kernels) {
    const auto [place, is_new] = places.try_emplace(kernel.kernel_name, groups.size());
    if (is_new) groups.emplace_back();
    groups[place->second].push_back(std::move(kernel));
  }
  return groups;
}

std::vector<std::string> problems_of(const std::vector<StoredKernel>& kernels) {
  std::vector<std::string> problems;
  for (const StoredKernel& kernel : kernels) {
    for (const std::string& problem : kernel.problems) {
      if (std::ranges::find(problems, problem) == problems.end()) problems.push_back(problem);
    }
  }
  return problems;
}

// --- looking into files -------------------------------------------------------------------------

std::string refusal_of(const ArtifactFile& file, const StoredKernel& kernel,
                       const std::string& path) {
  try {
    check_abi(file, path);
    (void)runtime::from_stored({kernel}, path);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

void count_instructions(const std::optional<jit::Disassembler>& disassembler,
                        const StoredKernel& kernel, ArtifactSummary& summary) {
  if (!kernel.cubin) {
    summary.no_instructions = "the file has no cubin of it";
  } else if (!disassembler) {
    summary.no_instructions = "no nvdisasm on this machine (GEMMERY_NVDISASM names one)";
  } else {
    try {
      for (const auto& [name, count] : disassembler->instruction_mix(kernel.cubin->cubin))
        summary.instructions.emplace(name, count);
    } catch (const Error& error) {
      summary.no_instructions = error.what();
    }
  }
}

ArtifactSummary summary_of(const StoredKernel& kernel,
                           const std::optional<jit::Disassembler>& disassembler) {
  const jit::CompiledCode& main = kernel.cubin ? *kernel.cubin : *kernel.ptx;
  ArtifactSummary summary;
  summary.kernel_name = kernel.kernel_name;
  summary.provider = kernel.provider;
  summary.family = kernel.family;
  summary.family_version = static_cast<int>(kernel.family_version);
  summary.target = kernel.target;
  for (const runtime::StoredField& field : kernel.design)
    summary.design.push_back({field.name, field.value});
  summary.epilogue = kernel.epilogue;
  summary.problems = kernel.problems;
  summary.source = kernel.source;
  summary.log = main.log;
  summary.compile_ms = main.compile_ms;
  if (kernel.cubin) summary.resources = runtime::resources_of(kernel.cubin->usage);
  summary.cubin_bytes = kernel.cubin ? kernel.cubin->cubin.size() : 0;
  summary.ptx_bytes = kernel.ptx ? kernel.ptx->ptx.size() : 0;
  count_instructions(disassembler, kernel, summary);
  return summary;
}

// --- looking into code --------------------------------------------------------------------------

std::vector<KernelCode> codes_of(std::vector<StoredKernel> kernels) {
  std::vector<KernelCode> codes;
  for (StoredKernel& kernel : kernels) {
    KernelCode& code = codes.emplace_back();
    code.kernel_name = std::move(kernel.kernel_name);
    code.target = kernel.target;
    code.source = std::move(kernel.source);
    if (kernel.ptx) code.ptx = std::move(kernel.ptx->ptx);
    if (kernel.cubin) code.cubin = std::move(kernel.cubin->cubin);
  }
  return codes;
}

}  // namespace

void save_artifacts(const std::string& path, std::span<const StoredArtifact> artifacts,
                    const SaveOptions& options) {
  ArtifactFile file{
      .library_version = version(), .abi_digest = runtime::abi_digest(), .kernels = {}};
  for (const StoredArtifact& one : artifacts) {
    runtime::check_programs_are_spelled(one.artifact.kernel(), one.problems);
    for (StoredKernel& stored : runtime::to_stored(one.artifact, one.problems, options.with_ptx))
      add(file.kernels, std::move(stored));
  }
  platform::write_whole_file(path, runtime::encode(file));
}

std::vector<StoredArtifact> load_artifacts(const std::string& path) {
  (void)provider_names();  // registers the library's own families
  ArtifactFile file = read_file(path);
  check_abi(file, path);
  std::vector<StoredArtifact> artifacts;
  for (const std::vector<StoredKernel>& group : by_kernel(std::move(file.kernels)))
    artifacts.push_back(
        {.artifact = runtime::from_stored(group, path), .problems = problems_of(group)});
  return artifacts;
}

ArtifactFileSummary inspect_artifacts(const std::string& path) {
  (void)provider_names();
  const std::vector<std::byte> bytes = platform::read_whole_file(path, most_file_bytes);
  const ArtifactFile file = runtime::decode(bytes, path);
  const std::optional<jit::Disassembler> disassembler = jit::find_disassembler();
  ArtifactFileSummary summary{
      .library_version = file.library_version, .bytes = bytes.size(), .kernels = {}};
  for (const StoredKernel& kernel : file.kernels) {
    summary.kernels.push_back(summary_of(kernel, disassembler));
    summary.kernels.back().refusal = refusal_of(file, kernel, path);
  }
  return summary;
}

std::vector<ArtifactSummary> summarize(const Artifact& artifact) {
  const std::optional<jit::Disassembler> disassembler = jit::find_disassembler();
  std::vector<ArtifactSummary> summaries;
  for (const StoredKernel& kernel : runtime::to_stored(artifact, {}, false))
    summaries.push_back(summary_of(kernel, disassembler));
  return summaries;
}

// --- looking into code --------------------------------------------------------------------------

std::vector<KernelCode> code_of(const Artifact& artifact, bool with_ptx) {
  return codes_of(runtime::to_stored(artifact, {}, with_ptx));
}

std::vector<KernelCode> code_in_file(const std::string& path) {
  return codes_of(read_file(path).kernels);
}

std::string disassemble(std::span<const std::byte> cubin) {
  if (const auto disassembler = jit::find_disassembler()) return disassembler->disassemble(cubin);
  throw Error({.kind = ErrorKind::unavailable,
               .operand = "nvdisasm",
               .expected = "the program of the CUDA toolkit",
               .got = fmt::format("none among {}", fmt::join(jit::disassembler_places(), ", ")),
               .hint = "GEMMERY_NVDISASM names one; pip install nvidia-cuda-nvdisasm has it"});
}

std::string with_headers(std::string_view source) { return jit::inline_headers(source); }

}  // namespace gemmery
