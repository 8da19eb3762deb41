# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# # 6. A residual block, forward and backward
#
# The basic block of a ResNet: two 3x3 convolutions, each with a bias and a relu, and the input added before the second relu.
#
#     h = relu(conv(x, w1) + b1)
#     y = relu(conv(h, w2) + b2 + x)
#
# Forward it is two kernels, backward four: biases, the addition, both relus, their masks and the sums over pixels are
# epilogues of the convolutions. [docs/convolution.md](../docs/convolution.md) has what each kind computes, with a picture.

# %%
import numpy as np

import gemmery

rng = np.random.default_rng(6)
N, H, W, C = 4, 14, 14, 32


def channels_last(shape, values=None):
    """An array (N, C, H, W) in torch's order whose memory is (N, H, W, C)."""
    memory = np.empty((shape[0], *shape[2:], shape[1]), np.float32) if values is None else values
    return np.moveaxis(memory, -1, 1)


x = channels_last((N, C, H, W), rng.standard_normal((N, H, W, C), dtype=np.float32))
w1, w2 = (channels_last((C, C, 3, 3), rng.standard_normal((C, 3, 3, C), dtype=np.float32) / 17) for _ in range(2))
b1, b2 = (rng.standard_normal((C, 1, 1), dtype=np.float32) for _ in range(2))

# %% [markdown]
# ## One call
#
# `ConvArguments` has the kind, the two operands, the result and an epilogue; the first kernel of `get_kernels` is the fastest.
# Operands of an epilogue broadcast to the result by NumPy's rule: a bias is (C, 1, 1).


# %%
def convolve(kind, a, b, shape, program, **operands):
    out = channels_last(shape)
    epilogue = gemmery.EpilogueArguments(program, **operands)
    args = gemmery.ConvArguments(kind, a, b, out, padding=1, epilogue=epilogue)
    gemmery.get_kernels(args)[0].run(args)
    return out


# %% [markdown]
# ## Forward

# %%
h = convolve("fprop", x, w1, x.shape, "D = relu(accum + bias)", bias=b1)
y = convolve("fprop", h, w2, x.shape, "D = relu(accum + bias + x)", bias=b2, x=x)
print("y", y.shape, "positive:", round(float((y > 0).mean()), 2))

# %% [markdown]
# ## Backward
#
# The gradient of y enters through the second relu, an elementwise kernel that adds up the gradient of b2 as well. Then each
# convolution has two gradients: wgrad for its filters, dgrad for its images. The first dgrad applies the mask of the first
# relu and sums the gradient of b1 over pixels; the second adds the gradient that came around the block.

# %%
dy = channels_last(y.shape, rng.standard_normal((N, H, W, C), dtype=np.float32))


def masked(gradient, activation):
    """gradient where the activation is positive, and its sums over all pixels."""
    rows, of = (np.moveaxis(one, 1, -1).reshape(-1, C) for one in (gradient, activation))
    out, sums = np.empty_like(rows), np.empty((1, C), np.float32)
    epilogue = gemmery.EpilogueArguments("D = where(B > 0, A, 0); sums = sum(D)", A=rows, B=of, sums=sums)
    args = gemmery.ElementwiseArguments(rows, of, out, epilogue=epilogue)
    gemmery.get_kernels(args)[0].run(args)
    return channels_last(gradient.shape, out.reshape(N, H, W, C)), sums.reshape(C, 1, 1)


dz2, db2 = masked(dy, y)
dw2 = convolve("wgrad", dz2, h, w2.shape, "D = accum")
db1 = np.empty((C, 1, 1), np.float32)
dz1 = convolve("dgrad", dz2, w2, h.shape, "D = where(h > 0, accum, 0); db1 = sum(D)", h=h, db1=db1)
dw1 = convolve("wgrad", dz1, x, w1.shape, "D = accum")
dx = convolve("dgrad", dz1, w1, x.shape, "D = accum + around", around=dz2)

# %% [markdown]
# ## Checked against the definition
#
# A convolution is a sum over taps of products of shifted images. In float64 that is the reference of each result; the
# differences are those of float32.


# %%
def shifted(images, r, s):
    """What tap (r, s) of a 3x3 filter sees, with zeros beyond the edges."""
    return np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))[:, :, r : r + H, s : s + W]


TAPS = [(r, s) for r in range(3) for s in range(3)]


def forward(images, filters):
    return sum(np.einsum("nchw,kc->nkhw", shifted(images, r, s), filters[:, :, r, s]) for r, s in TAPS)


def of_images(gradient, filters):
    return sum(np.einsum("nkhw,kc->nchw", shifted(gradient, 2 - r, 2 - s), filters[:, :, r, s]) for r, s in TAPS)


def of_filters(gradient, images):
    each = [np.einsum("nkhw,nchw->kc", gradient, shifted(images, r, s)) for r, s in TAPS]
    return np.stack(each, -1).reshape(C, C, 3, 3)


X, W1, W2, B1, B2, DY = (one.astype(np.float64) for one in (x, w1, w2, b1, b2, dy))
H1 = np.maximum(forward(X, W1) + B1, 0)
Y = np.maximum(forward(H1, W2) + B2 + X, 0)
# The masks are those of the computed activations: a sum that is 0 but for rounding may be on either side.
DZ2 = DY * (y > 0)
DZ1 = of_images(DZ2, W2) * (h > 0)
expected = {
    "y": (y, Y),
    "dx": (dx, of_images(DZ1, W1) + DZ2),
    "dw1": (dw1, of_filters(DZ1, X)),
    "dw2": (dw2, of_filters(DZ2, H1)),
    "db1": (db1, DZ1.sum((0, 2, 3))[:, None, None]),
    "db2": (db2, DZ2.sum((0, 2, 3))[:, None, None]),
}
for name, (got, exact) in expected.items():
    error = np.abs(got - exact).max() / np.abs(exact).max()
    print(f"{name:4} largest difference, relative: {error:.0e}")
    assert error < 1e-5, name

# %% [markdown]
# ## The same on a GPU
#
# Tensors of torch on a GPU take the place of the arrays, in `memory_format=torch.channels_last`; everything else stays.
# Which kernels would run there, and how fast, needs no GPU:

# %%
args = gemmery.ConvArguments("dgrad", dy, w1, channels_last(x.shape), padding=1)
for kernel in gemmery.get_kernels(args, cc="h200", limit=3):
    print(f"{kernel.predicted_us:6.1f} us  {kernel.name}")
