"""Tests of NAME with no GPU, on emulated ones: python -m pytest

Every element is compared with its proven bound, and the emulator finds races, missing waits and accesses out of bounds.
"""

import gemmery
import NAME
import pytest

PROBLEMS = ["gemm 64x64x16", "gemm 100x72x40", "gemm 1x1x1", "gemm 65x8x33"]


@pytest.mark.parametrize("device", ["emulated:a100", "emulated:h100"])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_element_is_within_its_bound(problem, device):
    report = gemmery.verify(NAME.kernel, f"{problem} a=f16 out=f32 alpha=0.5", device=device)
    assert report.passed, report.first_failure


def test_other_types_are_refused():
    with pytest.raises(gemmery.UnsupportedError, match="A: expected element type float16"):
        gemmery.verify(NAME.kernel, "gemm 64x64x16 a=f32", device="emulated:a100")
