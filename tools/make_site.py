#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: make_site.py [--out build/site]

Builds the documentation as a site: the Markdown pages of this repository, a reference of the C++ headers and of the Python package, and a
page for every source that they link to. OUT/html/index.html is its first page; every page lies beside it as Markdown, too. Links that lead
nowhere are errors. What builds it is pinned and hash-checked (tools/site-requirements.txt) and installed into OUT/environment, once;
after that nothing is downloaded.
"""

import argparse
import filecmp
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "tools/site"
REQUIREMENTS = ROOT / "tools/site-requirements.txt"
# Pages by section, in their order.
CONTENTS = {
    "Begin": ["docs/python-install", "docs/python", "docs/cli", "docs/problems", "docs/python-coming-from", "docs/environment"],
    "Use": [
        "docs/epilogues", "docs/python-epilogues", "docs/grouped", "docs/scaled", "docs/operand-programs", "docs/checkpoints", "docs/convolution", "docs/python-torch", "docs/own-kernels",
        "docs/python-own-kernels", "docs/emulator", "docs/emulator-programs", "docs/emulator-faults", "docs/describe", "docs/python-describe", "docs/artifacts", "docs/c-api", "docs/cache", "docs/tuning",
        "docs/numerics",
    ],
    "Reference": ["python/index", "include/index", "examples/index", "docs/glossary"],
    "Speed and proof": [
        "docs/performance", "docs/performance-sm80", "docs/performance-simt", "docs/performance-skinny", "docs/boards",
        "bench/results/README", "tests/results/README",
    ],
    "Inside": ["docs/rooms/index", "docs/how-to-add", "docs/decisions/index", "CONTRIBUTING", "CHANGELOG", "sources"],
}  # fmt: skip
# Pages below a page. What is named nowhere is a source that some page links to, below `sources`.
BELOW = {
    "python/index": "python/*.md",
    "include/index": "include/gemmery/*.md",
    "examples/index": "examples/**/*.md",
    "bench/results/README": "bench/results/*.md",
    "tests/results/README": "tests/results/*.md",
    "docs/rooms/index": "docs/rooms/*.md",
    "docs/decisions/index": "docs/decisions/*.md",
    "docs/grouped": "docs/grouped-*.md",
    "docs/scaled": "docs/scaled-*.md",
    "docs/describe": "docs/describe-*.md",
    "sources": "**/*.md",
}

FOLDERS = {"docs/rooms": "Rooms", "docs/decisions": "Decisions", "examples": "Examples"}


# --- the environment --------------------------------------------------------------------------------------------------


def environment(folder: Path) -> Path:
    """The Python that has what builds the site."""
    kept = folder / "requirements.txt"
    python = folder / "bin/python"
    if not kept.exists() or not filecmp.cmp(kept, REQUIREMENTS, shallow=False):
        print("site: installing what builds it", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:"]
        subprocess.run([*install, "--require-hashes", "--requirement", REQUIREMENTS], check=True)
        shutil.copy(REQUIREMENTS, kept)
    return python


# --- the pages --------------------------------------------------------------------------------------------------------


class Stage:
    """The folder of Markdown pages from which Sphinx builds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
        self.linked: set[str] = set()

    def write(self, name: str, text: str) -> None:
        place = self.folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")

    def copy(self, name: str) -> None:
        place = self.folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, place)

    def new_link(self, page: str, link: str) -> str:
        """The link of a staged page for one of a page of the tree: sources and folders have pages of their own here."""
        path, mark, fragment = link.partition("#")
        name = os.path.normpath(Path(page).parent / path) if path else page
        if (ROOT / name).is_dir():
            self.linked.add(name)
            return f"{path.rstrip('/')}/{'README' if (ROOT / name / 'README.md').exists() else 'index'}.md{mark}{fragment}"
        self.linked.add(name)
        if not path or name.endswith(".md"):
            return link
        return f"{path}.md" if is_source(name) else link

    def title(self, name: str) -> str:
        """What a folder's page calls a file."""
        if not name.endswith(".md"):
            return f"`{name}`"
        return (ROOT / name).read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")

    def add_page(self, name: str) -> None:
        text = (ROOT / name).read_text(encoding="utf-8")
        self.write(name, markdown.with_links(text, lambda link: self.new_link(name, link)))

    def add_source(self, name: str) -> None:
        text = (ROOT / name).read_text(encoding="utf-8")
        if name.startswith("include/") and name.endswith((".hpp", ".h")):
            self.write(f"{name}.md", headers.page_of_header(name.removeprefix("include/"), text))
        else:
            self.write(f"{name}.md", f"# `{name}`\n\n" + markdown.fenced(text, markdown.LANGUAGES.get(Path(name).suffix, "text")))

    def add_folder(self, name: str) -> None:
        held = [file for file in self.tracked if file.startswith(f"{name}/")]
        if f"{name}/README.md" in held:
            return
        rows = []
        for file in held:
            self.linked.add(file)
            inside = file.removeprefix(f"{name}/")
            rows.append(f"- [{self.title(file)}]({inside + '.md' if is_source(file) else inside})")
        self.write(f"{name}/index.md", f"# {FOLDERS.get(name, f'`{name}`')}\n\n" + "\n".join(rows) + "\n")


def is_source(name: str) -> bool:
    """Text that gets a page of its own; pictures, records and notebooks are files."""
    return not name.endswith((".md", ".svg", ".png", ".jsonl", ".csv", ".rec", ".ipynb"))


def stage_reference(stage: Stage) -> None:
    rows = ["# C++", "", "Each public header, as `#include <gemmery/gemmery.hpp>` brings them all.", ""]
    for name in sorted(name for name in stage.tracked if re.fullmatch(r"include/gemmery/\w+\.(hpp|h)", name)):
        stage.add_source(name)
        summary = headers.summary_of_header((ROOT / name).read_text(encoding="utf-8"))
        rows.append(f"- [`<{name.removeprefix('include/')}>`]({name.removeprefix('include/')}.md): {summary}")
    stage.write("include/index.md", "\n".join(rows) + "\n")
    rows = ["# Python", "", "The modules of the package, and what they export.", ""]
    for module, page in package.pages_of_package(ROOT / "python").items():
        stage.write(f"python/{module}.md", page)
        rows.append(f"- [`{module}`]({module}.md): {package.summary_of_module(page)}")
    stage.write("python/index.md", "\n".join(rows) + "\n")


def stage_linked(stage: Stage) -> None:
    """Pages of sources and folders; a folder's page links to further sources."""
    done: set[str] = set()
    while remaining := stage.linked - done:
        for name in sorted(remaining):
            done.add(name)
            if (ROOT / name).is_dir():
                stage.add_folder(name)
            elif name.endswith(".md"):
                if not (stage.folder / name).exists():
                    stage.add_page(name)
            elif not is_source(name):
                stage.copy(name)
            elif not (stage.folder / f"{name}.md").exists():
                stage.add_source(name)


def toctree(entries: list[str], caption: str = "") -> str:
    lines = "\n".join(f"/{entry}" for entry in entries)
    return "\n```{toctree}\n:hidden:\n" + (f":caption: {caption}\n" if caption else "") + f"\n{lines}\n```\n"


def add_contents(folder: Path) -> None:
    """Adds the tables of contents, which each page shows at its side. A page of docs/ that is named nowhere is an error of Sphinx."""

    def append(page: str, text: str) -> None:
        with (folder / f"{page}.md").open("a", encoding="utf-8") as file:
            file.write(text)

    named = {"README", *(page for pages in CONTENTS.values() for page in pages)}
    append("README", "".join(toctree(pages, section) for section, pages in CONTENTS.items()))
    for page, pattern in BELOW.items():
        found = {str(path.relative_to(folder).with_suffix("")) for path in folder.glob(pattern)}
        below = sorted(name for name in found - named if page != "sources" or not name.startswith("docs/"))
        append(page, toctree(below))
        named.update(below)


def stage_all(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    stage = Stage(folder)
    for name in stage.tracked:
        if name.endswith(".md") and not name.startswith((".", "tests/data/")):
            stage.add_page(name)
    stage_reference(stage)
    stage.linked.update(["examples", "docs/rooms", "docs/decisions"])
    stage_linked(stage)
    stage.write("sources.md", "# Sources\n\nThe files of the repository that pages link to.\n")


# --- HTML -------------------------------------------------------------------------------------------------------------


class Links(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if value and name in ("href", "src") and not re.match(r"[a-z]+:|//", value):
                self.links.append(value)
            if value and name in ("id", "name"):
                self.anchors.add(value)


def dead_links(html: Path) -> list[str]:
    pages = {path: Links(path.read_text(encoding="utf-8")) for path in html.rglob("*.html")}
    faults = []
    for path, page in pages.items():
        for link in page.links:
            target, _, fragment = link.partition("#")
            place = Path(os.path.normpath(path.parent / unquote(target.partition("?")[0]))) if target else path
            if not place.exists():
                faults.append(f"{path.relative_to(html)}: {link}: no such file")
            elif fragment and place in pages and unquote(fragment) not in pages[place].anchors:
                faults.append(f"{path.relative_to(html)}: {link}: no such heading")
    return faults


def build(folder: Path, html: Path) -> None:
    # Beside HTML, pages without tables of contents.
    for path in folder.rglob("*.md"):
        place = html / path.relative_to(folder)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)
    add_contents(folder)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-j", "auto", "-c", SITE, folder, html]
    subprocess.run(command, check=True)
    shutil.copy(html / "README.html", html / "index.html")


def main() -> int:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "build/site")
    out = parser.parse_args().out.resolve()
    python = environment(out / "environment")
    if Path(sys.prefix) != out / "environment":
        os.execv(python, [python, __file__, "--out", str(out)])
    html = out / "html"
    shutil.rmtree(html, ignore_errors=True)
    stage_all(out / "pages")
    build(out / "pages", html)
    if faults := dead_links(html):
        print(*faults, sep="\n")
        return 1
    print(f"site: {sum(1 for _ in html.rglob('*.html'))} pages: {html.relative_to(Path.cwd()) if html.is_relative_to(Path.cwd()) else html}/index.html")
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(SITE))
    try:
        import headers
        import markdown
        import package
    except ModuleNotFoundError:  # outside of the environment, which main enters
        pass
    sys.exit(main())
