# SPDX-License-Identifier: Apache-2.0
"""Kernels written in the CuTe DSL, where that package is installed."""
