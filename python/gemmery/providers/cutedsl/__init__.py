# SPDX-License-Identifier: Apache-2.0
"""Kernels written in the CuTe DSL, if that package is installed."""

from gemmery.providers.cutedsl import kernel
from gemmery.providers.cutedsl.provider import CuTeDSLProvider

__all__ = ["CuTeDSLProvider", "kernel"]
