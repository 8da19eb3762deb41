# SPDX-License-Identifier: Apache-2.0
"""NVRTC and nvdisasm from wheels, for machines without a CUDA toolkit. Used only if the library found none itself."""

from __future__ import annotations

import importlib.util
import pathlib

# Where the wheels nvidia-cuda-nvrtc (13) and nvidia-cuda-nvrtc-cu12 put it, below the package `nvidia`.
_LIBRARIES = ("cu13/lib/libnvrtc.so.13", "cuda_nvrtc/lib/libnvrtc.so.13", "cuda_nvrtc/lib/libnvrtc.so.12")
# The same of nvidia-cuda-nvdisasm.
_DISASSEMBLERS = ("cu13/bin/nvdisasm", "cuda_nvdisasm/bin/nvdisasm")


def find_library() -> str:
    """The path of libnvrtc in this Python's packages; "" if there is none."""
    return _find(_LIBRARIES)


def find_disassembler() -> str:
    """The path of nvdisasm in this Python's packages; "" if there is none."""
    return _find(_DISASSEMBLERS)


def _find(places: tuple[str, ...]) -> str:
    found = importlib.util.find_spec("nvidia")
    roots = list(found.submodule_search_locations or []) if found is not None else []
    for root in roots:
        for place in places:
            path = pathlib.Path(root, place)
            if path.is_file():
                return str(path)
    return ""
