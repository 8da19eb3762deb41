# SPDX-License-Identifier: Apache-2.0
"""Every Python block of the documentation runs, page by page, in its order.

A word after ```python names a requirement of the block: torch, nvrtc, gpu.
"""

import importlib.util
import linecache
import pathlib
import re

import pytest

import gemmery

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"^```python ?(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def pages():
    return [page for page in sorted(DOCS.rglob("*.md")) if BLOCK.search(page.read_text())]


def lacks(need):
    if need == "torch":
        return importlib.util.find_spec("torch") is None
    if need == "gpu":
        return not any(device.startswith("cuda") for device in gemmery.devices())
    return False


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_the_blocks_of_a_page_run(page):
    namespace = {"__name__": page.stem}
    text = page.read_text()
    left_out = set()
    ran = 0
    for block in BLOCK.finditer(text):
        if lacks(block[1]):
            left_out.add(block[1])
            continue
        name = f"{page.name}[{block.start()}]"
        source = block[2]
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        ran += 1
        try:
            exec(compile(source, name, "exec"), namespace)
        except gemmery.UnavailableError as error:
            if block[1] != "nvrtc":
                raise
            left_out.add(f"nvrtc ({error})")
    if left_out:
        print(f"blocks left out for want of {', '.join(sorted(left_out))}")
    if ran == 0:
        pytest.skip(f"for want of {', '.join(sorted(left_out))}")
