# SPDX-License-Identifier: Apache-2.0
"""Where kernels come from: the library's own providers, and those of Python classes.

@gemmery.Provider.register
class MyKernel(gemmery.Kernel): ...

@gemmery.providers.register_provider("mine")
class MyProvider(gemmery.Provider): ...
"""

from gemmery.providers import cutedsl
from gemmery.providers.cutedsl.provider import CuTeDSLProvider
from gemmery.providers.provider import LibraryProvider, Provider, available_providers, provider_of, register_provider
from gemmery.providers.triton import TritonProvider

__all__ = [
    "CuTeDSLProvider",
    "LibraryProvider",
    "Provider",
    "TritonProvider",
    "available_providers",
    "cutedsl",
    "provider_of",
    "register_provider",
]
