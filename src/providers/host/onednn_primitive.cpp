// SPDX-License-Identifier: Apache-2.0
#include "providers/host/onednn_primitive.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gemmery::host::onednn {
namespace {

constexpr std::size_t most_arguments = 4;

// Memory objects of one call.
class CallArguments {
 public:
  explicit CallArguments(const Library& library) : library_(library) {}
  ~CallArguments() {
    for (int i = 0; i < count_; ++i)
      library_.api().memory_destroy(arguments_[static_cast<std::size_t>(i)].memory);
  }
  CallArguments(const CallArguments&) = delete;
  CallArguments& operator=(const CallArguments&) = delete;

  void add(const CallMemory& memory) {
    ExecutionArgument& argument = arguments_.at(static_cast<std::size_t>(count_));
    argument.argument = memory.argument;
    require_success(library_.api().memory_create(&argument.memory, memory.descriptor,
                                                 library_.engine(), const_cast<void*>(memory.data)),
                    "dnnl_memory_create");
    ++count_;
  }
  int count() const { return count_; }
  const ExecutionArgument* data() const { return arguments_.data(); }

 private:
  const Library& library_;
  int count_ = 0;
  std::array<ExecutionArgument, most_arguments> arguments_{};
};

}  // namespace

void* reserve(const Library& library, MemoryDescriptor descriptor, Scratch& scratch,
              std::string_view operand, std::string_view content) {
  return scratch.reserve<std::byte>(
      static_cast<std::int64_t>(library.api().memory_desc_get_size(descriptor)), operand, content);
}

DescribedPrimitive::~DescribedPrimitive() {
  if (primitive_ != nullptr) library_.api().primitive_destroy(primitive_);
  library_.api().primitive_desc_destroy(descriptor_);
}

void DescribedPrimitive::create() const {
  std::call_once(is_created_, [&] {
    require_success(library_.api().primitive_create(&primitive_, descriptor_),
                    "dnnl_primitive_create");
  });
}

void DescribedPrimitive::execute(std::initializer_list<CallMemory> memory, Scratch& scratch) const {
  create();
  CallArguments arguments(library_);
  for (const CallMemory& each : memory) arguments.add(each);
  const MemoryDescriptor scratchpad = query(query_scratchpad_md);
  arguments.add({argument_scratchpad, scratchpad,
                 reserve(library_, scratchpad, scratch, "out", "oneDNN's scratchpad")});
  const Status status = library_.api().primitive_execute(primitive_, library_.stream(),
                                                         arguments.count(), arguments.data());
  if (status != success) fail(ErrorKind::launch, "dnnl_primitive_execute", status);
  require_success(library_.api().stream_wait(library_.stream()), "dnnl_stream_wait");
}

}  // namespace gemmery::host::onednn
