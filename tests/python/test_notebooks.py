# SPDX-License-Identifier: Apache-2.0
"""The display of kernels, lists and reports in notebooks, and completion."""

import html.parser
import re

import gemmery


class Checked(html.parser.HTMLParser):
    """Collects the text; fails if a tag is left open or closed twice."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open_tags: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open_tags == []

    def handle_starttag(self, tag, attrs):
        self.open_tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open_tags.pop() == tag

    def handle_data(self, data):
        self.text += data + "\n"


def shown(value) -> str:
    return Checked(value._repr_html_()).text


def test_kernels_lists_and_metadata_are_tables(gemm):
    args, _ = gemm()
    kernels = gemmery.get_kernels(args)
    kernel = kernels[0]
    assert kernel.name in shown(kernels)
    assert f"{len(kernels)} kernels" in shown(kernels)
    for view in (kernel, kernel.metadata):
        assert {kernel.name, kernel.family, "float32, any layout, aligned to 4 bytes"} <= set(shown(view).splitlines())
    hopper = gemmery.get_kernels(args, cc="h200")
    assert len(shown(hopper).splitlines()) < 60
    assert re.search(r"\d+ kernels, \d+ more", shown(hopper))
    names = [line for line in shown(hopper).splitlines() if line.startswith(("simt", "sm90"))]
    listed = [next(kernel for kernel in hopper if kernel.name == name) for name in names]
    designs = {(kernel.family, repr(kernel.metadata.design)) for kernel in listed}
    assert 1 < len(designs) == len(listed) <= 10
    assert listed[0] == hopper[0]
    assert "µs (predicted)" in shown(hopper[0])


def test_filtered_and_limited_answers_are_lists_that_show_themselves(gemm):
    args, _ = gemm()
    assert "1 kernel\n" in shown(gemmery.get_kernels(args, limit=1))
    assert "0 kernels" in shown(gemmery.get_kernels(args, lambda metadata: False))
    assert gemmery.get_kernels(args) == list(gemmery.get_kernels(args))


def test_explanations_and_results_are_tables(gemm):
    args, _ = gemm()
    kernel = gemmery.get_kernels(args)[0]
    assert "device: expected a GPU, got the CPU" in shown(gemmery.explain(args))
    assert "passed" in shown(gemmery.verify(kernel, args))
    assert "median_us" in shown(gemmery.measure(kernel, args, samples=1, sample_ms=0.01))
    report = gemmery.doctor()
    assert shown(report).strip() == report.strip()


def test_text_is_escaped(gemm):
    args, _ = gemm(epilogue=gemmery.EpilogueArguments("D = where(accum < 0, 0, accum)"))
    assert "accum < 0" in shown(gemmery.get_kernels(args)[0])


def test_dir_names_what_is_public():
    assert set(dir(gemmery)) == {*gemmery.__all__, "__doc__", "__version__"}


def test_dir_of_a_part_names_what_is_its_own():
    assert dir(gemmery.cache) == ["clear", "entries", "prune", "report", "verify"]
    assert {"tune", "entries"} <= set(dir(gemmery.tuning)) and not {"Any", "Callable", "dataclasses"} & set(dir(gemmery.tuning))
    assert "TensorLike" in dir(gemmery.typing)
    assert {"relu", "gelu", "trace"} <= set(dir(gemmery.fusion)) and "kept" not in dir(gemmery.fusion)
    for name in dir(gemmery):
        part = getattr(gemmery, name)
        if getattr(part, "__name__", "").startswith("gemmery.") and hasattr(part, "__path__"):
            assert all(hasattr(part, word) for word in dir(part))
