// SPDX-License-Identifier: Apache-2.0
// A product's descriptors in cuBLASLt's own objects.
#pragma once

#include <memory>
#include <type_traits>

#include "providers/cublaslt/library.hpp"
#include "providers/cublaslt/product.hpp"

namespace gemmery::cublaslt {

template <class Object>
struct Destroy {
  Result (*destroy)(Object*);
  void operator()(Object* object) const noexcept { destroy(object); }
};
template <class Pointer>
using Owned =
    std::unique_ptr<std::remove_pointer_t<Pointer>, Destroy<std::remove_pointer_t<Pointer>>>;

// Memory of an epilogue that a descriptor names; nullptr where it has none.
struct Addresses {
  const void* first_scale = nullptr;
  const void* second_scale = nullptr;
  const void* bias = nullptr;
};

// Addresses with the alignment of a problem's, for questions that read no memory.
Addresses sample_addresses(const Product& product) noexcept;

Owned<MatmulDescriptor> make_operation(const Library& library, const Product& product,
                                       const Addresses& addresses);
void set_addresses(const Library& library, MatmulDescriptor operation, const Product& product,
                   const Addresses& addresses);

Owned<MatrixLayout> make_layout(const Library& library, const Matrix& matrix, std::int64_t batches);

// The descriptors of a product's matrices; shared by any number of threads.
struct Layouts {
  Layouts(const Library& library, const Product& product);

  Owned<MatrixLayout> first, second, c, out;
};

// How heuristics are restricted.
Owned<MatmulPreference> make_preference(const Library& library, const Product& product,
                                        std::size_t most_workspace_bytes);

}  // namespace gemmery::cublaslt
