// SPDX-License-Identifier: Apache-2.0
// Whether two functions are called the same way.
#pragma once

#include <type_traits>

namespace gemmery {

// Equal number of parameters, each passed the same way.
template <class Ours, class Theirs>
struct is_same_call : std::false_type {};
template <class R, class... P, class S, class... Q>
requires(sizeof...(P) == sizeof...(Q)) struct is_same_call<R (*)(P...), S (*)(Q...)>
    : std::bool_constant<((sizeof(P) == sizeof(Q) &&
                           std::is_pointer_v<P> == std::is_pointer_v<Q>)&&... &&
                          (sizeof(R) == sizeof(S)))> {
};

}  // namespace gemmery
