# SPDX-License-Identifier: Apache-2.0
"""What `make site` makes pages of: headers lose nothing, links follow, text stays text. `make site` itself is run by hand."""

import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools/site")]
import headers  # noqa: E402
import make_site  # noqa: E402
import markdown  # noqa: E402

HEADERS = sorted((ROOT / "include/gemmery").glob("*.h*"))
SAMPLE = """// SPDX-License-Identifier: Apache-2.0
// Sums. They are a * b.
#pragma once

#include <string>

namespace gemmery {

class Later;

// Adds <two> numbers:
//
//   add(1, 2)
GEMMERY_API int add(int a, int b);

struct Pair {
  int first = 0;

  int second = 0;  // after a blank line
};

}  // namespace gemmery
"""


def test_a_header_becomes_text_and_code():
    page = headers.page_of_header("gemmery/sum.hpp", SAMPLE)
    assert page.splitlines()[0] == "# `<gemmery/sum.hpp>`"
    assert "Sums. They are a \\* b." in page
    assert "## `add`\n\nAdds \\<two\\> numbers:\n\n    " in page and "add(1, 2)" in page
    assert "```cpp\nstruct Pair {\n  int first = 0;\n\n  int second = 0;  // after a blank line\n};\n```" in page
    assert "Later" not in page and "namespace" not in page
    assert headers.summary_of_header(SAMPLE) == "Sums."


@pytest.mark.parametrize("header", HEADERS, ids=lambda path: path.name)
def test_no_declaration_of_a_public_header_is_lost(header):
    text = header.read_text()
    page = headers.page_of_header(f"gemmery/{header.name}", text)
    declared = set(re.findall(r"^(?:GEMMERY_API|gemmery_\w+) .*?(\w+)\(", text, re.MULTILINE))
    declared |= set(
        re.findall(r"^(?:class|struct|enum class|concept) (?:GEMMERY_API )?(\w+)(?! *;)\b[^;\n]*[{=]", text, re.MULTILINE)
    )
    headings = " ".join(line for line in page.splitlines() if line.startswith("## "))
    assert {name for name in declared if f"`{name}`" not in headings} == set()


def test_relative_links_are_replaced_and_nothing_else():
    page = "[a](x.cpp#L1) `[b](y.cpp)` [`c`](z.cpp) [d](https://e.org)\n```python nvrtc\n[f](g.cpp)\n```\n"
    assert markdown.with_links(page, lambda link: f"new/{link}") == (
        "[a](new/x.cpp#L1) `[b](y.cpp)` [`c`](new/z.cpp) [d](https://e.org)\n```python\n[f](g.cpp)\n```\n"
    )


def test_text_with_fences_is_fenced_by_more():
    assert markdown.fenced("```\na\n```", "text") == "````text\n```\na\n```\n````\n"


def test_each_page_of_docs_has_its_place():
    named = {page for pages in make_site.CONTENTS.values() for page in pages}
    below = {str(path.relative_to(ROOT).with_suffix("")) for pattern in make_site.BELOW.values() if pattern.startswith("docs/")
             for path in ROOT.glob(pattern)}  # fmt: skip
    pages = {str(path.relative_to(ROOT).with_suffix("")) for path in ROOT.glob("docs/**/*.md")}
    assert pages - named - below == set(), "name it in CONTENTS of tools/make_site.py"


def test_a_dead_link_of_html_is_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<h1 id="here">A</h1><a href="b.html">b</a><a href="#here">h</a><a href="#there">t</a><a href="https://e.org">e</a>'
    )
    (tmp_path / "b.html").write_text('<a href="c.html">c</a>')
    assert sorted(make_site.dead_links(tmp_path)) == ["a.html: #there: no such heading", "b.html: c.html: no such file"]


def test_search_ranks_pages_for_users_before_those_for_makers():
    pattern = re.search(r"insidePages = /(.*)/;", (ROOT / "tools/site/scorer.js").read_text())[1]
    inside = re.compile(pattern.replace("\\/", "/"))
    for page in ("docs/rooms/cli", "docs/decisions/0006-help-is-the-manual", "bench/results/README", "CHANGELOG"):
        assert (ROOT / f"{page}.md").is_file() and inside.match(page)
    for page in make_site.CONTENTS["Begin"] + make_site.CONTENTS["Use"]:
        assert not inside.match(page)
