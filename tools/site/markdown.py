# SPDX-License-Identifier: Apache-2.0
"""Markdown, piece by piece: what is code and what is text, links, and text that must not be taken for Markdown."""

import re
from collections.abc import Callable

_FENCE = re.compile(r"^( *)(```+|~~~+)")
_INLINE_CODE = re.compile(r"(`+[^`]*`+)")
_LINK = re.compile(r"(?<=\]\()([^)\s]+)(?=\))")
_SPECIAL = re.compile(r"([\\*_<>\[\]#|])")
LANGUAGES = {
    ".c": "c", ".h": "c", ".hpp": "cpp", ".cpp": "cpp", ".def": "cpp", ".cu": "cuda", ".cuh": "cuda", ".py": "python", ".pyi": "python",
    ".sh": "bash", ".cmake": "cmake", ".toml": "toml", ".json": "json",
}  # fmt: skip


def _outside_fences(text: str, change: Callable[[str], str], change_fence: Callable[[str], str]) -> str:
    closing = None
    lines = []
    for line in text.splitlines():
        fence = _FENCE.match(line)
        if closing is None and fence:
            closing = fence[2]
            line = change_fence(line)
        elif closing is not None:
            if line.strip() == closing:
                closing = None
        else:
            line = change(line)
        lines.append(line)
    return "\n".join(lines) + "\n"


def _outside_code(line: str, change: Callable[[str], str]) -> str:
    return "".join(piece if piece.startswith("`") else change(piece) for piece in _INLINE_CODE.split(line))


def with_links(text: str, new_link: Callable[[str], str]) -> str:
    """The page with each relative link replaced. Fences keep the language of their info string alone."""

    def replace(match: re.Match[str]) -> str:
        return match[1] if re.match(r"[a-z]+:", match[1]) else new_link(match[1])

    def change(line: str) -> str:
        pieces = _INLINE_CODE.split(line)
        # Code inside of a link's text splits a link in two, of which the second begins with "](".
        return "".join(piece if piece.startswith("`") else _LINK.sub(replace, piece) for piece in pieces)

    return _outside_fences(text, change, lambda line: re.sub(r"^( *[`~]+\w*) .*", r"\1", line))


def escaped(text: str) -> str:
    """Plain text with `code` and indented blocks of code, as Markdown that shows it so."""
    lines = []
    for line in text.splitlines():
        is_code = line.startswith("    ")
        lines.append(line if is_code else _outside_code(line, lambda piece: _SPECIAL.sub(r"\\\1", piece)))
    return "\n".join(lines)


def fenced(code: str, language: str) -> str:
    longest = max((len(run) for run in re.findall(r"`{3,}", code)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{code.rstrip()}\n{fence}\n"
