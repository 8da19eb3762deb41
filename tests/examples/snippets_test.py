#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The documentation must match the code: code blocks are parts of examples, link targets exist,
every environment variable is in its table, and every room has its page."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
VARIABLE = re.compile(r'"(GEMMERY_[A-Z_]+)"')


def text_of(path):
    return path.read_text(encoding="utf-8")


class Pages(unittest.TestCase):
    def test_cpp_snippets_are_parts_of_examples(self):
        examples = [text_of(path) for path in (ROOT / "examples").glob("*.cpp")]
        count = 0
        for page in PAGES:
            for snippet in re.findall(r"^```cpp\n(.*?)^```", text_of(page), re.MULTILINE | re.DOTALL):
                count += 1
                self.assertTrue(any(snippet in example for example in examples), f"{page.relative_to(ROOT)}:\n{snippet}")
        self.assertGreater(count, 0)

    def test_links_lead_to_files(self):
        for page in PAGES:
            for link in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", text_of(page)):
                if "://" not in link:
                    self.assertTrue((page.parent / link).exists(), f"{page.relative_to(ROOT)}: {link}")

    def test_every_room_has_a_page(self):
        rooms = re.findall(r"^([a-z]+)[a-z/]*:", text_of(ROOT / "layers.txt"), re.MULTILINE)
        for room in set(rooms) - {"examples", "bench", "tests"}:
            self.assertTrue((ROOT / "docs" / "rooms" / f"{room}.md").is_file(), room)

    def test_the_table_of_environment_variables_is_that_of_the_tree(self):
        def named_in(*folders):
            files = [path for folder in folders for path in (ROOT / folder).rglob("*")]
            return {
                name
                for path in files
                if path.suffix in {".cpp", ".hpp", ".py"}
                for name in VARIABLE.findall(text_of(path))
            }

        page = text_of(ROOT / "docs" / "environment.md")
        table = set(re.findall(r"^\| `(GEMMERY_[A-Z_]+)`", page, re.MULTILINE))
        self.assertEqual(named_in("src", "cli", "tools") - table, set(), "missing in the table")
        self.assertEqual(table - named_in("src", "cli", "tools", "tests"), set(), "in no source")

    def test_decisions_are_numbered_without_gaps(self):
        numbers = [int(path.name[:4]) for path in sorted((ROOT / "docs" / "decisions").glob("*.md"))]
        self.assertEqual(numbers, list(range(1, len(numbers) + 1)))


if __name__ == "__main__":
    unittest.main()
