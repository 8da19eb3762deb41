// SPDX-License-Identifier: Apache-2.0
// Finds NVRTC.
#include "jit/nvrtc.hpp"

#include <gemmery/error.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "jit/exit_guard.hpp"
#include "jit/signal_handlers.hpp"
#include "jit/toolkit_places.hpp"
#include "platform/environment.hpp"
#include "platform/file_identity.hpp"
#include "platform/library.hpp"
#include "platform/log.hpp"

namespace gemmery::jit {
namespace {

constexpr const char* library_variable = "GEMMERY_NVRTC_LIBRARY";
constexpr std::array<const char*, 2> sonames{"libnvrtc.so.13", "libnvrtc.so.12"};

// --- one candidate ------------------------------------------------------------------------------

std::optional<NvrtcApi> resolve_all(const platform::SharedLibrary& library) {
  NvrtcApi api;
  bool is_complete = true;
#define GEMMERY_RESOLVE(name, result, parameters)                       \
  api.name = reinterpret_cast<decltype(api.name)>(library.find(#name)); \
  is_complete = is_complete && api.name != nullptr;
  GEMMERY_NVRTC_FUNCTIONS(GEMMERY_RESOLVE)
#undef GEMMERY_RESOLVE
  api.nvrtcSetFlowCallback =
      reinterpret_cast<decltype(api.nvrtcSetFlowCallback)>(library.find("nvrtcSetFlowCallback"));
  if (!is_complete) return std::nullopt;
  return api;
}

CompilerVersion read_version(const NvrtcApi& api) {
  CompilerVersion version;
  const nvrtc::Result result = api.nvrtcVersion(&version.major, &version.minor);
  return result == nvrtc::Result::success ? version : CompilerVersion{};
}

std::vector<int> read_architectures(const NvrtcApi& api) {
  int count = 0;
  if (api.nvrtcGetNumSupportedArchs(&count) != nvrtc::Result::success || count <= 0) return {};
  std::vector<int> architectures(static_cast<std::size_t>(count));
  if (api.nvrtcGetSupportedArchs(architectures.data()) != nvrtc::Result::success) return {};
  return architectures;
}

// NVRTC opens its library of built-in declarations by name alone. The loader finds that only in its
// own folders, not in those of a Python package. After opening it by path here, the name resolves.
// If it does not exist, NVRTC reports it.
void open_builtins(const std::string& nvrtc_path, CompilerVersion version) {
  const std::string folder = nvrtc_path.substr(0, nvrtc_path.rfind('/') + 1);
  const std::array<std::string, 1> candidates{folder + "libnvrtc-builtins.so." +
                                              to_string(version)};
  platform::LibrarySearch::open_first(candidates);
}

// --- the search ---------------------------------------------------------------------------------

class Search {
 public:
  // Takes the library that a search found if it is new enough; records the attempt otherwise.
  void consider(const platform::LibrarySearch& search) {
    if (!search.library) {
      note(search.report());
      return;
    }
    const std::string& path = search.library->path();
    const InsideNvrtc inside;  // again, now that the library is open
    const std::optional<NvrtcApi> api = resolve_all(*search.library);
    const CompilerVersion version = api ? read_version(*api) : CompilerVersion{};
    if (version < oldest_nvrtc) {
      note(path + " (version " + to_string(version) + ", " + to_string(oldest_nvrtc) +
           " or later is needed)");
      return;
    }
    open_builtins(path, version);
    found_ = std::make_unique<Nvrtc>(Nvrtc{*api, path, version, read_architectures(*api)});
  }

  void consider_path(const std::string& path) {
    const std::array<std::string, 1> candidates{path};
    if (!found_) consider(platform::LibrarySearch::open_first(candidates));
  }

  void consider_loaded(const std::string& soname) {
    const std::array<std::string, 1> candidates{soname};
    if (found_) return;
    const platform::LibrarySearch search = platform::LibrarySearch::find_loaded(candidates);
    if (search.library) consider(search);
  }

  std::unique_ptr<Nvrtc> take() { return std::move(found_); }
  const std::string& tried() const { return tried_; }

 private:
  void note(const std::string& place) { tried_ += (tried_.empty() ? "" : ", ") + place; }

  std::unique_ptr<Nvrtc> found_;
  std::string tried_;
};

std::vector<std::string> toolkit_folders() {
  std::vector<std::string> folders;
  for (const std::string& root : named_toolkits()) folders.push_back(root + "/lib64");
  folders.push_back(usual_toolkit + std::string("/lib64"));
  return folders;
}

void search_everywhere(Search& search) {
  for (const char* const soname : sonames) search.consider_loaded(soname);
  for (const std::string& folder : toolkit_folders()) {
    for (const char* const soname : sonames) search.consider_path(folder + "/" + soname);
  }
  for (const char* const soname : sonames) search.consider_path(soname);
}

// Never destroyed.
struct Opened {
  std::mutex mutex;
  const Nvrtc* nvrtc = nullptr;
};

Opened& opened_nvrtc() {
  static Opened* const instance = new Opened;
  return *instance;
}

[[noreturn]] void throw_nvrtc_not_found(const std::string& tried) {
  throw Error({.kind = ErrorKind::unavailable,
               .operand = "NVRTC",
               .expected = "libnvrtc of version " + to_string(oldest_nvrtc) + " or later",
               .got = tried.empty() ? "no place to search: GEMMERY_HIDE_CUDA is set"
                                    : "looked for " + tried,
               .hint = std::string("install it (pip install nvidia-cuda-nvrtc) and set ") +
                       library_variable + " to its absolute path"});
}

std::unique_ptr<Nvrtc> search_nvrtc() {
  const InsideNvrtc inside;
  Search search;
  if (const std::optional<std::string> path = platform::read_environment_path(library_variable)) {
    search.consider_path(*path);
  } else if (!platform::read_environment_flag("GEMMERY_HIDE_CUDA")) {
    search_everywhere(search);
  }
  std::unique_ptr<Nvrtc> found = search.take();
  if (!found) throw_nvrtc_not_found(search.tried());
  platform::log(LogLevel::debug,
                "NVRTC " + to_string(found->version) + " is opened: " + found->path);
  if (!keep_signal_handlers(reinterpret_cast<const void*>(found->api.nvrtcCompileProgram)))
    platform::log(LogLevel::debug, "its first compilation takes Ctrl-C and SIGTERM for itself");
  return found;
}

// --- without opening it -------------------------------------------------------------------------

std::string path_of_opened() {
  Opened& opened = opened_nvrtc();
  const std::lock_guard lock(opened.mutex);
  return opened.nvrtc != nullptr ? opened.nvrtc->path : std::string();
}

std::string path_of_loaded() {
  for (const char* const soname : sonames) {
    const std::array<std::string, 1> candidates{soname};
    const platform::LibrarySearch search = platform::LibrarySearch::find_loaded(candidates);
    if (search.library) return search.library->path();
  }
  return {};
}

// The first file that the search would try; empty if it would ask the loader, or find nothing.
std::string path_expected() {
  if (const auto path = platform::read_environment_path(library_variable)) return *path;
  if (platform::read_environment_flag("GEMMERY_HIDE_CUDA")) return {};
  if (const std::string loaded = path_of_loaded(); !loaded.empty()) return loaded;
  for (const std::string& folder : toolkit_folders()) {
    for (const char* const soname : sonames) {
      const std::string path = folder + "/" + soname;
      if (access(path.c_str(), R_OK) == 0) return path;
    }
  }
  return {};
}

// The identity of the library and of the built-in declarations beside it, ordered by name.
std::string read_identity(const std::string& path) {
  const std::string library = platform::file_identity(path);
  if (library.empty()) return {};
  std::set<std::string> builtins;
  std::error_code failure;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  for (std::filesystem::directory_iterator file(folder, failure), end; !failure && file != end;
       file.increment(failure)) {
    if (file->path().filename().string().starts_with("libnvrtc-builtins.so."))
      builtins.insert(platform::file_identity(file->path()));
  }
  std::string text = library;
  for (const std::string& one : builtins) text += " builtins " + one;
  return text;
}

// Read again if the file has changed. For a file that cannot be read, the search's error.
std::string identity_at(const std::string& path) {
  struct Known {
    std::mutex mutex;
    std::map<std::tuple<std::string, dev_t, ino_t, off_t, std::int64_t>, std::string> identities;
  };
  static Known* const known = new Known;
  struct stat facts {};
  if (stat(path.c_str(), &facts) != 0) return identity_at(find_nvrtc().path);
  const std::tuple file(path, facts.st_dev, facts.st_ino, facts.st_size,
                        static_cast<std::int64_t>(facts.st_mtime));
  const std::lock_guard lock(known->mutex);
  std::string& identity = known->identities[file];
  if (identity.empty()) identity = read_identity(path);
  if (!identity.empty()) return identity;
  throw_nvrtc_not_found(path + " (cannot be read)");
}

}  // namespace

bool Nvrtc::knows(Target target) const noexcept {
  return std::ranges::find(architectures, static_cast<int>(target.architecture)) !=
         architectures.end();
}

const Nvrtc& find_nvrtc() {
  // A failed search is repeated by the next call: the user may have set the variable meanwhile.
  Opened& opened = opened_nvrtc();
  const std::lock_guard lock(opened.mutex);
  if (opened.nvrtc == nullptr) opened.nvrtc = search_nvrtc().release();
  return *opened.nvrtc;
}

std::string nvrtc_identity() {
  const std::string open_path = path_of_opened();
  if (!open_path.empty()) return identity_at(open_path);
  const std::string expected = path_expected();
  return identity_at(expected.empty() ? find_nvrtc().path : expected);
}

CompilerStatus compiler_status() noexcept {
  try {
    const Nvrtc& compiler = find_nvrtc();
    return {.found = true,
            .path = compiler.path,
            .version = to_string(compiler.version),
            .searched = {}};
  } catch (const std::exception& error) {
    return {.found = false, .path = {}, .version = {}, .searched = error.what()};
  }
}

}  // namespace gemmery::jit
