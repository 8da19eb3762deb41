# SPDX-License-Identifier: Apache-2.0
"""Views of tensors of any framework, memory of our own, streams of our own."""

from gemmery._core import Stream, Tensor, as_tensor, empty, synchronize

__all__ = ["Stream", "Tensor", "as_tensor", "empty", "synchronize"]
