// SPDX-License-Identifier: Apache-2.0
// dlopen, with a report of what was tried.
#include "platform/library.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>

#include <string_view>
#include <utility>

namespace gemmery::platform {
namespace {

bool is_absolute(std::string_view name) { return name.starts_with('/'); }
bool is_plain_soname(std::string_view name) {
  return !name.empty() && name.find('/') == std::string_view::npos;
}

// The path of the loaded file; the name that was asked for if the loader does not tell.
std::string loaded_path(void* handle, const std::string& asked) {
  const link_map* map = nullptr;
  const bool is_known = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr &&
                        map->l_name != nullptr && map->l_name[0] != '\0';
  return is_known ? map->l_name : asked;
}

std::string why_not(const std::string& candidate) {
  struct stat facts {};
  if (is_absolute(candidate) && stat(candidate.c_str(), &facts) != 0) return "no such file";
  const char* const words = dlerror();
  return words == nullptr ? "not found" : words;
}

}  // namespace

void* SharedLibrary::find(const char* symbol) const noexcept { return dlsym(handle_, symbol); }

LibrarySearch LibrarySearch::open(std::span<const std::string> candidates, int flags) {
  LibrarySearch result;
  for (const std::string& candidate : candidates) {
    if (!is_absolute(candidate) && !is_plain_soname(candidate)) {
      result.tried.push_back(candidate + " (relative path, not opened)");
      continue;
    }
    dlerror();
    if (void* const handle = dlopen(candidate.c_str(), flags)) {
      result.tried.push_back(candidate);
      result.library = SharedLibrary(handle, loaded_path(handle, candidate));
      return result;
    }
    result.tried.push_back(candidate + " (" + why_not(candidate) + ")");
  }
  return result;
}

LibrarySearch LibrarySearch::open_first(std::span<const std::string> candidates) {
  return open(candidates, RTLD_NOW | RTLD_LOCAL);
}

LibrarySearch LibrarySearch::find_loaded(std::span<const std::string> sonames) {
  return open(sonames, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
}

std::string LibrarySearch::report() const {
  std::string text;
  for (const std::string& place : tried) {
    if (!text.empty()) text += ", ";
    text += place;
  }
  return text;
}

}  // namespace gemmery::platform
