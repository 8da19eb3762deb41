// SPDX-License-Identifier: Apache-2.0
// Creates and runs primitives, with scratch memory of the calling thread.
#include "providers/host/onednn_matmul.hpp"

#include <cstddef>

#include "providers/host/scratch.hpp"

namespace gemmery::host::onednn {
namespace {

// The caller's memory in oneDNN's form, for one call.
class MemoryView {
 public:
  MemoryView(const Library& library, MemoryDescriptor descriptor, const void* data)
      : api_(library.api()) {
    require_success(
        api_.memory_create(&memory_, descriptor, library.engine(), const_cast<void*>(data)),
        "dnnl_memory_create");
  }
  ~MemoryView() { api_.memory_destroy(memory_); }
  MemoryView(const MemoryView&) = delete;
  MemoryView& operator=(const MemoryView&) = delete;
  Memory get() const { return memory_; }

 private:
  const ApiCommon& api_;
  Memory memory_ = nullptr;
};

}  // namespace

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

std::shared_ptr<const Matmul> MatmulCache::get(const Library& library, const MatmulShape& shape) {
  {
    const std::scoped_lock lock(mutex_);
    if (auto known = find(shape)) return known;
  }
  auto made = std::make_shared<const Matmul>(library, shape);
  const std::scoped_lock lock(mutex_);
  if (auto known = find(shape)) return known;  // another thread created it first
  entries_.push_front({shape, made});
  if (entries_.size() > capacity) entries_.pop_back();
  return made;
}

std::shared_ptr<const Matmul> MatmulCache::find(const MatmulShape& shape) {
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (!(entry->shape == shape)) continue;
    entries_.splice(entries_.begin(), entries_, entry);
    return entries_.front().matmul;
  }
  return nullptr;
}

}  // namespace gemmery::host::onednn
