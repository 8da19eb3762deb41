# SPDX-License-Identifier: Apache-2.0
"""The provider of kernels written in Triton."""

from gemmery.providers.provider import Provider, needs, register_provider
from gemmery.status import Status

__all__ = ["TritonProvider"]


@register_provider("triton")
class TritonProvider(Provider):
    """Kernels written in Triton."""

    @classmethod
    def availability(cls) -> Status:
        return needs("triton", "triton")
