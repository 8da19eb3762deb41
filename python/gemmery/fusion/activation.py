# SPDX-License-Identifier: Apache-2.0
"""Activations as callables: on traced values, torch tensors, NumPy arrays and numbers alike."""

from gemmery.fusion.functions import Function

identity = Function("identity")
relu = Function("relu")
leaky_relu = Function("leaky_relu")
tanh = Function("tanh")
sigmoid = Function("sigmoid")
silu = Function("silu")
hardswish = Function("hardswish")
gelu = Function("gelu")
gelu_tanh = Function("gelu_tanh")
softplus = Function("softplus")
