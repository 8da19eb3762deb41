// SPDX-License-Identifier: Apache-2.0
#include <gemmery/dlpack.hpp>
#include <gemmery/error.hpp>

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <thread>

#include <gemmery/dlpack_abi.hpp>

namespace gemmery {
namespace {

// A producer whose deleter counts its calls.
struct Producer {
  std::array<float, 64> memory{};
  std::array<std::int64_t, 6> shape{3, 4, 1, 1, 1, 1};
  std::array<std::int64_t, 6> strides{8, 2, 1, 1, 1, 1};
  dlpack::ManagedVersionedLayout managed{};
  int deleted = 0;

  Producer() {
    managed.version = {1, 1};
    managed.context = this;
    managed.deleter = [](dlpack::ManagedVersionedLayout* self) {
      ++static_cast<Producer*>(self->context)->deleted;
    };
    managed.tensor = {memory.data(), {dlpack::device_cpu, 0}, 2, {2, 32, 1},
                      shape.data(),  strides.data(),          0};
  }
  DLManagedTensorVersioned* handle() {
    return reinterpret_cast<DLManagedTensorVersioned*>(&managed);
  }
  const DLTensor& view() const { return reinterpret_cast<const DLTensor&>(managed.tensor); }
};

TEST(Dlpack, view_has_the_producers_shape_strides_and_offset) {
  Producer producer;
  producer.managed.tensor.byte_offset = 8;
  const Tensor tensor = from_dlpack(producer.view());
  EXPECT_EQ(tensor.data(), &producer.memory[2]);
  EXPECT_EQ(tensor.stride(0), 8);
  EXPECT_EQ(tensor.extent(1), 4);
}

TEST(Dlpack, missing_strides_mean_row_major) {
  Producer producer;
  producer.managed.tensor.strides = nullptr;
  EXPECT_EQ(from_dlpack(producer.view()).stride(0), 4);
}

TEST(Dlpack, every_type_of_the_table_comes_through) {
  for (const DTypeFacts& row : dtype_table) {
    Producer producer;
    producer.strides[1] = 1;  // whole bytes of packed types
    producer.managed.tensor.dtype = {static_cast<std::uint8_t>(row.dlpack_code),
                                     static_cast<std::uint8_t>(row.bits), 1};
    EXPECT_EQ(from_dlpack(producer.view()).dtype(), row.dtype);
  }
}

TEST(Dlpack, elements_of_two_lanes_are_two_elements) {
  Producer producer;
  producer.managed.tensor.dtype = {17, 4, 2};  // torch.float4_e2m1fn_x2
  producer.strides = {8, 1, 1, 1, 1, 1};
  const Tensor tensor = from_dlpack(producer.view());
  EXPECT_EQ(to_string(tensor), "float4_e2m1fn (3, 8) strides (16, 1) on cpu");
  producer.managed.tensor.strides = nullptr;
  EXPECT_EQ(to_string(from_dlpack(producer.view())), "float4_e2m1fn (3, 8) strides (8, 1) on cpu");
  producer.shape = {4, 3, 1, 1, 1, 1};
  producer.strides = {1, 4, 1, 1, 1, 1};
  producer.managed.tensor.strides = producer.strides.data();
  EXPECT_EQ(to_string(from_dlpack(producer.view())), "float4_e2m1fn (8, 3) strides (1, 8) on cpu");
  producer.strides[0] = 2;
  EXPECT_THROW(from_dlpack(producer.view()), Error);
  producer.managed.tensor.dtype = {2, 32, 2};
  EXPECT_THROW(from_dlpack(producer.view()), Error);
}

TEST(Dlpack, elements_that_are_padded_to_bytes_are_refused) {
  Producer producer;
  producer.managed.tensor.dtype = {0, 4, 1};
  EXPECT_EQ(DlpackTensor(producer.handle()).tensor().dtype(), DType::int4);
  producer.managed.flags = dlpack::flag_padded_elements;
  EXPECT_THROW(DlpackTensor{producer.handle()}, Error);
}

TEST(Dlpack, negative_strides_and_empty_tensors_are_legal) {
  Producer producer;
  producer.strides[0] = -8;
  EXPECT_EQ(from_dlpack(producer.view()).stride(0), -8);
  producer.shape[0] = 0;
  producer.managed.tensor.data = nullptr;
  EXPECT_EQ(from_dlpack(producer.view()).element_count(), 0);
}

TEST(Dlpack, deleter_is_called_once_by_the_last_owner_on_any_thread) {
  Producer producer;
  {
    const DlpackTensor first(producer.handle());
    std::thread([copy = first] { EXPECT_EQ(copy.tensor().rank(), 2); }).join();
    EXPECT_EQ(producer.deleted, 0);
  }
  EXPECT_EQ(producer.deleted, 1);
}

TEST(Dlpack, another_major_version_is_refused_and_its_deleter_called_once) {
  Producer producer;
  producer.managed.version = {2, 0};
  producer.managed.tensor.rank = -7;  // must not be read
  EXPECT_THROW(DlpackTensor{producer.handle()}, Error);
  EXPECT_EQ(producer.deleted, 1);
}

TEST(Dlpack, later_minor_versions_are_taken) {
  Producer producer;
  producer.managed.version = {1, 99};
  EXPECT_EQ(DlpackTensor(producer.handle()).tensor().rank(), 2);
}

TEST(Dlpack, malformed_tensors_are_refused_and_released) {
  const std::function<void(dlpack::TensorLayout&)> faults[] = {
      [](auto& tensor) { tensor.rank = 6; },
      [](auto& tensor) { tensor.rank = -1; },
      [](auto& tensor) { tensor.shape = nullptr; },
      [](auto& tensor) { tensor.data = nullptr; },
      [](auto& tensor) { tensor.dtype.lanes = 4; },
      [](auto& tensor) { tensor.dtype.code = 77; },
      [](auto& tensor) { tensor.dtype.bits = 31; },
      [](auto& tensor) { tensor.device.type = 7; },
      [](auto& tensor) { tensor.byte_offset = 1; },
      [](auto& tensor) { tensor.byte_offset = ~std::uint64_t{63}; },  // around, to just before it
      [](auto& tensor) { tensor.byte_offset = std::uint64_t{1} << 63; },
      [](auto& tensor) { tensor.shape[0] = -1; },
      [](auto& tensor) { tensor.strides[0] = INT64_MIN; },
  };
  for (const auto& plant : faults) {
    Producer producer;
    plant(producer.managed.tensor);
    try {
      const DlpackTensor tensor(producer.handle());
      ADD_FAILURE() << "a fault was taken";
    } catch (const Error& error) {
      EXPECT_FALSE(error.operand().empty() || error.expected().empty() || error.got().empty())
          << error.what();
    }
    EXPECT_EQ(producer.deleted, 1);
  }
}

TEST(Dlpack, null_handles_are_refused) {
  EXPECT_THROW(DlpackTensor{static_cast<DLManagedTensorVersioned*>(nullptr)}, Error);
  EXPECT_THROW(DlpackTensor{static_cast<DLManagedTensor*>(nullptr)}, Error);
}

}  // namespace
}  // namespace gemmery
