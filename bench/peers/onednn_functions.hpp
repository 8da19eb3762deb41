// SPDX-License-Identifier: Apache-2.0
// oneDNN called directly: its header is needed at build time, the library is opened at run time.
#pragma once

#include <dlfcn.h>

#if __has_include(<oneapi/dnnl/dnnl.h>)
#include <oneapi/dnnl/dnnl.h>
#define HAS_ONEDNN_HEADER 1
#else
#define HAS_ONEDNN_HEADER 0
#endif

namespace gemmery::bench {

inline void* open_library(const char* soname) { return dlopen(soname, RTLD_NOW | RTLD_LOCAL); }

#if HAS_ONEDNN_HEADER

#define ONEDNN_SONAME_OF(major) "libdnnl.so." #major
#define ONEDNN_SONAME(major) ONEDNN_SONAME_OF(major)

template <class Function>
Function* onednn_function(Function*, const char* name) {
  static void* const library = open_library(ONEDNN_SONAME(DNNL_VERSION_MAJOR));
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library, name));
}
#define ONEDNN(function) gemmery::bench::onednn_function(&function, #function)

inline bool succeeded(dnnl_status_t status) { return status == dnnl_success; }

#endif

}  // namespace gemmery::bench
