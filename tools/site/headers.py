# SPDX-License-Identifier: Apache-2.0
"""Pages from C++ headers: comments become text, and what they stand above becomes code. Nothing is parsed but comments, blank lines and
braces."""

import re

from markdown import escaped, fenced

_NAMES = [
    re.compile(r"^(?:class|struct|enum class|enum|union|concept)\s+(?:\[\[\w+\]\]\s*)?(?:GEMMERY_API\s+)?(\w+)"),
    re.compile(r"^(?:template <.*>\s*)?(?:class|struct|concept)\s+(?:\[\[\w+\]\]\s*)?(?:GEMMERY_API\s+)?(\w+)"),
    re.compile(r"^using\s+(\w+)\s*="),
    re.compile(r"^#define\s+(\w+)"),
    re.compile(r"^(?:inline |static )?constexpr\s[^(=]*?(\w+)\s*="),
    re.compile(r"(operator[^\s(]+|~?\w+)\s*\("),
]
_LEFT_OUT = re.compile(r"^(#define \w+_H|#(pragma|include|if|endif|else|ifdef|ifndef)\b.*|(inline )?namespace \w.*\{|\}  // namespace.*|extern \"C\" \{|\}  // extern.*)$")
_FORWARD = re.compile(r"^(class|struct|enum class) \w+;$")


def _chunks(lines: list[str]) -> list[list[str]]:
    """Runs of lines between blank lines that are outside of all braces."""
    chunks: list[list[str]] = [[]]
    depth = 0
    for line in lines:
        if depth == 0 and _LEFT_OUT.match(line):
            line = ""
        if line or depth:
            chunks[-1].append(line)
        else:
            chunks.append([])
        code = re.sub(r"\"(\\.|[^\"\\])*\"|'.'", "", line.partition("//")[0])
        depth += sum(code.count(opening) for opening in "{(") - sum(code.count(closing) for closing in "})")
    return [chunk for chunk in chunks if chunk and not all(_FORWARD.match(line) for line in chunk)]


def _is_comment(line: str) -> bool:
    return line.startswith("//")


def _text_of(comment: list[str]) -> str:
    stripped = [re.sub(r"^///? ?", "", line) for line in comment]
    stripped = [re.sub(r"^-+ (.*?) -+$", r"\1:", line) for line in stripped]  # the name of a part
    # Examples stand two spaces in; Markdown takes four for code.
    return escaped("\n".join(f"    {line}" if line.startswith("  ") else line for line in stripped))


def _split(chunk: list[str]) -> tuple[list[str], list[str]]:
    count = next((index for index, line in enumerate(chunk) if not _is_comment(line)), len(chunk))
    return chunk[:count], chunk[count:]


def _names(code: list[str]) -> list[str]:
    """The names that a chunk declares, in order, each once."""
    names: dict[str, None] = {}
    for line in code:
        if line.startswith((" ", "//", "}", "template", "requires", "static_assert", "friend", ")")):
            continue
        for pattern in _NAMES:
            if found := pattern.search(line):
                names.setdefault(found[1])
                break
    return list(names)


def _lines(text: str) -> list[str]:
    """The lines without the licence; comments of C that begin a line, as those of C++."""

    def as_slashes(comment: re.Match[str]) -> str:
        return "\n".join(re.sub(r"^( \*)? ?", "// ", line).rstrip() for line in comment[1].strip().split("\n"))

    text = re.sub(r"^/\*(.*?)\*/$", as_slashes, text, flags=re.DOTALL | re.MULTILINE)
    return [line.rstrip() for line in text.splitlines() if "SPDX-License" not in line]


def page_of_header(path: str, text: str) -> str:
    """The page of a public header, such as gemmery/device.hpp."""
    intro, rest = _split(_lines(text))
    page = [f"# `<{path}>`", _text_of(intro), fenced(f"#include <{path}>", "cpp")]
    for chunk in _chunks(rest):
        comment, code = _split(chunk)
        if names := _names(code):
            page.append("## " + ", ".join(f"`{name}`" for name in names))
        if comment:
            page.append(_text_of(comment))
        if code:
            page.append(fenced("\n".join(code), "cpp"))
    return "\n\n".join(page) + "\n"


def summary_of_header(text: str) -> str:
    """The first sentence of what a header says about itself."""
    intro = " ".join(re.sub(r"^///? ?", "", line) for line in _split(_lines(text))[0])
    return escaped(re.split(r"(?<=\.) ", intro)[0])
