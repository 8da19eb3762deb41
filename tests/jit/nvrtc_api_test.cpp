// SPDX-License-Identifier: Apache-2.0
// Compares the library's declarations of NVRTC with the toolkit's header, if that is installed.
#include "jit/nvrtc_api.hpp"

#include <gtest/gtest.h>

#include <type_traits>

#if __has_include(<nvrtc.h>)
#include <nvrtc.h>

namespace gemmery::jit {
namespace {

template <class Ours, class Theirs>
struct is_same_call : std::false_type {};
template <class R, class... P, class S, class... Q>
requires(sizeof...(P) == sizeof...(Q)) struct is_same_call<R (*)(P...), S (*)(Q...)>
    : std::bool_constant<((sizeof(P) == sizeof(Q) &&
                           std::is_pointer_v<P> == std::is_pointer_v<Q>)&&... &&
                          (sizeof(R) == sizeof(S)))> {
};

TEST(NvrtcApi, every_function_is_called_as_the_toolkit_declares_it) {
#define GEMMERY_COMPARE(name, result, parameters) \
  EXPECT_TRUE((is_same_call<decltype(NvrtcApi::name), decltype(&::name)>::value)) << #name;
  GEMMERY_NVRTC_FUNCTIONS(GEMMERY_COMPARE)
#undef GEMMERY_COMPARE
  EXPECT_TRUE((is_same_call<decltype(NvrtcApi::nvrtcSetFlowCallback),
                            decltype(&::nvrtcSetFlowCallback)>::value));
}

TEST(NvrtcApi, values_are_those_of_the_toolkit) {
  EXPECT_EQ(static_cast<int>(nvrtc::Result::success), NVRTC_SUCCESS);
  EXPECT_EQ(static_cast<int>(nvrtc::Result::out_of_memory), NVRTC_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(static_cast<int>(nvrtc::Result::invalid_option), NVRTC_ERROR_INVALID_OPTION);
  EXPECT_EQ(static_cast<int>(nvrtc::Result::compilation), NVRTC_ERROR_COMPILATION);
  EXPECT_EQ(static_cast<int>(nvrtc::Result::cancelled), NVRTC_ERROR_CANCELLED);
}

}  // namespace
}  // namespace gemmery::jit
#else
TEST(NvrtcApi, is_compared_where_the_toolkit_is_installed) { GTEST_SKIP() << "no nvrtc.h here"; }
#endif
