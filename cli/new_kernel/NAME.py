"""Registers NAME, whose source is beside this file: which problems it takes, and how it is launched.

Import it, and `gemmery.get_kernels` lists the kernel with those of the library. What each field means:
help(gemmery.own_kernels.register_source).
"""

import pathlib

from gemmery import own_kernels

SOURCE = pathlib.Path(__file__).with_name("NAME.cu").read_text()

kernel = own_kernels.register_source(
    "NAME",
    SOURCE,
    entry="NAME",
    # The parameters of the entry, in its order.
    parameters=["A", "B", "out", "m", "n", "k", "A.leading", "B.leading", "out.leading", "alpha"],
    grid=("n/64", "m/64"),
    block=128,
    # Problems that do not meet these rules are refused with the reason.
    A=own_kernels.Operand("float16", "row"),
    B=own_kernels.Operand("float16", "row"),
    out=own_kernels.Operand("float32", "row"),
    accumulator_type="float32",
    targets=["sm_80", "sm_86", "sm_89", "sm_90"],
    design={"tile": "64x64x16", "instruction": "mma"},
)
