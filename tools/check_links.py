#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: check_links.py [ROOT] [--without FOLDER]…

Checks that every link of the Markdown pages under ROOT (this repository) leads to a file and a heading. Links into a FOLDER that ROOT does
not have are left out: an installation has no tests.
"""

import argparse
import functools
import os
import re
import subprocess
import sys
from pathlib import Path

LINK = re.compile(r"!?\[[^\]]*\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"`[^`\n]*`")
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)


def without_code(text: str) -> str:
    return FENCE.sub("", text)


def anchor_of(heading: str) -> str:
    """The fragment that GitHub gives a heading."""
    plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


@functools.cache
def anchors(page: Path) -> set[str]:
    seen: dict[str, int] = {}
    result = set()
    for heading in HEADING.findall(without_code(page.read_text(encoding="utf-8"))):
        anchor = anchor_of(heading)
        count = seen.get(anchor, 0)
        seen[anchor] = count + 1
        result.add(f"{anchor}-{count}" if count else anchor)
    return result


def links(page: Path) -> list[str]:
    return LINK.findall(CODE.sub("", without_code(page.read_text(encoding="utf-8"))))


def fault_of(page: Path, link: str) -> str | None:
    """The fault of a relative link of a page, or None."""
    path, _, fragment = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists():
        return "no such file"
    if fragment and target.suffix == ".md" and fragment not in anchors(target):
        return "no such heading"
    return None


def check(root: Path, pages: list[Path], without: list[str]) -> list[str]:
    absent = [root / folder for folder in without]
    faults = []
    for page in pages:
        for link in links(page):
            target = Path(os.path.normpath(page.parent / link.partition("#")[0]))
            if re.match(r"[a-z]+:", link) or any(target.is_relative_to(folder) for folder in absent):
                continue
            if fault := fault_of(page, link):
                faults.append(f"{page.relative_to(root)}: {link}: {fault}")
    return faults


def pages_of(root: Path) -> list[Path]:
    """The pages that git tracks; all if there is no git."""
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=root, capture_output=True, text=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        return [root / name for name in listed.stdout.splitlines() if not name.startswith("tests/data/")]
    return sorted(root.rglob("*.md"))


def main() -> int:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--without", action="append", default=[])
    options = parser.parse_args()
    root = options.root.resolve()
    pages = pages_of(root)
    faults = check(root, pages, options.without)
    for fault in faults:
        print(fault)
    print(f"links: {len(pages)} pages, {len(faults)} faults")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
