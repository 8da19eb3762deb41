// SPDX-License-Identifier: Apache-2.0
// Creates and runs primitives, with scratch memory of the calling thread.
#include "providers/host/onednn_matmul.hpp"

#include <cstddef>

#include "providers/host/onednn_memory.hpp"
#include "providers/host/scratch.hpp"

namespace gemmery::host::onednn {
Matmul::Matmul(const Library& library, const MatmulShape& shape)
    : library_(library), descriptor_(library.describe_matmul(shape)) {
  const Status status = api().primitive_create(&primitive_, descriptor_);
  if (status == success) return;
  api().primitive_desc_destroy(descriptor_);
  fail(ErrorKind::unsupported, "dnnl_primitive_create", status);
}

Matmul::~Matmul() {
  api().primitive_destroy(primitive_);
  api().primitive_desc_destroy(descriptor_);
}

void Matmul::execute(const void* source, const void* weights, void* destination) const {
  static thread_local Scratch scratch;
  const MemoryDescriptor scratchpad_md = query(query_scratchpad_md);
  void* scratchpad = scratch.reserve<std::byte>(
      static_cast<std::int64_t>(api().memory_desc_get_size(scratchpad_md)), "out",
      "oneDNN's scratchpad");
  const MemoryView views[4] = {{library_, query(query_source_md), source},
                               {library_, query(query_weights_md), weights},
                               {library_, query(query_destination_md), destination},
                               {library_, scratchpad_md, scratchpad}};
  const ExecutionArgument arguments[4] = {{argument_source, views[0].get()},
                                          {argument_weights, views[1].get()},
                                          {argument_destination, views[2].get()},
                                          {argument_scratchpad, views[3].get()}};
  const Status status = api().primitive_execute(primitive_, library_.stream(), 4, arguments);
  if (status != success) fail(ErrorKind::launch, "dnnl_primitive_execute", status);
  require_success(api().stream_wait(library_.stream()), "dnnl_stream_wait");
}

std::string Matmul::implementation_name() const {
  return std::string(library_.implementation_name(descriptor_));
}

}  // namespace gemmery::host::onednn
