# SPDX-License-Identifier: Apache-2.0
"""The names of PyCUTLASS's cutlass.gemm: modes and sizes."""

from gemmery._core import GemmMode as Mode
from gemmery.describe.coordinates import GemmCoord

__all__ = ["GemmCoord", "Mode"]
