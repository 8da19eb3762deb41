# SPDX-License-Identifier: Apache-2.0
"""The provider of kernels written in the CuTe DSL."""

from gemmery.providers.provider import Provider, needs, register_provider
from gemmery.status import Status

__all__ = ["CuTeDSLProvider"]


@register_provider("cutedsl")
class CuTeDSLProvider(Provider):
    """Kernels written in the CuTe DSL; derive them from gemmery.providers.cutedsl.kernel.CuteDslKernel."""

    @classmethod
    def availability(cls) -> Status:
        return needs("cutlass.cute", "nvidia-cutlass-dsl")
