# SPDX-License-Identifier: Apache-2.0
"""Cached lists of kernels, and metadata that is read on demand."""

import numpy
import pytest

import gemmery
from gemmery.metadata import KernelMetadata


@pytest.fixture
def args():
    return gemmery.GemmArguments(*(numpy.ones((256, 256), numpy.float16) for _ in range(3)))


def test_a_list_that_is_asked_for_again_is_the_callers_own(args):
    first = gemmery.get_kernels(args, cc="h200")
    names = [kernel.name for kernel in first]
    first.clear()
    assert [kernel.name for kernel in gemmery.get_kernels(args, cc="h200")] == names


def test_a_filter_and_a_target_have_their_own_answers(args):
    whole = gemmery.get_kernels(args, cc="h200")
    wide = gemmery.get_kernels(args, lambda metadata: metadata.design.tile_shape[1] >= 128, cc="h200")
    assert 0 < len(wide) < len(whole) and set(wide) < set(whole)
    assert len(gemmery.get_kernels(args, cc="a100")) < len(whole)
    assert gemmery.get_kernels(args, cc="h200") == whole


def test_metadata_that_is_read_late_is_whole(args):
    kernel = gemmery.get_kernels(args, cc="h200")[0]
    metadata = kernel.metadata
    assert isinstance(metadata, KernelMetadata) and metadata == kernel.metadata
    assert metadata.kernel_name == kernel.name and metadata.provider == "templates"
    assert metadata.min_cc == 90 and metadata.supported_targets == ("sm_90a",)
    assert metadata.operands.A.dtype == gemmery.float16 and metadata.epilogue is None
    assert metadata.design.tile_shape == metadata.design.tile
    copy = KernelMetadata(**{name: getattr(metadata, name) for name in KernelMetadata.__dataclass_fields__})
    assert copy == metadata and hash(copy) == hash(metadata)
    assert repr(copy).split("(", 1)[1] == repr(metadata).split("(", 1)[1]
    with pytest.raises(AttributeError):
        metadata.kernel_name = "another"
