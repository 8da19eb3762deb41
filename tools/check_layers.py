#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks every #include of the tree against layers.txt, the map of the rooms.

usage: check_layers.py [ROOT]        exit status 0: no violation; 1: each is printed as `file:line: what is wrong`
"""

import dataclasses
import pathlib
import re
import sys

SOURCE_SUFFIXES = {".hpp", ".cpp", ".h", ".c", ".cuh", ".cu", ".def", ".inl"}
# Folders outside src/ that layers.txt gives one line each.
OUTER_ROOMS = ("cli", "examples", "bench", "tests", "python")
PUBLIC_ONLY = "include/gemmery"
ANYTHING = "anything"

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">\n]+)[">]', re.MULTILINE)
# Comments and raw strings may contain text like an #include; ordinary literals are matched so that a // in one does not count as a comment.
NOT_CODE = re.compile(
    r'(?P<raw>R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)")|(?P<comment>//[^\n]*|/\*.*?\*/)|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'',
    re.DOTALL,
)
TOOLKIT = re.compile(r"^(cuda|nvrtc|nvJitLink|nvml|nvPTX|cublas|cudnn|cusparse|nccl|device_launch|vector_types|crt/|cooperative_groups|cub/|thrust/|cutlass/|cute/)")
VENDOR = re.compile(r"^(dnnl|oneapi/|cblas|openblas|mkl)")
HEADER_ONLY = re.compile(r"^(fmt/|xxhash|nlohmann/|CLI/)")
C_STANDARD = {"assert.h", "float.h", "inttypes.h", "limits.h", "math.h", "stdalign.h", "stdbool.h", "stddef.h", "stdint.h", "string.h"}


@dataclasses.dataclass
class Map:
    """layers.txt: what each room may include, and which room each public header belongs to."""

    allowed: dict = dataclasses.field(default_factory=dict)
    header_room: dict = dataclasses.field(default_factory=dict)

    def room_of(self, path):
        """The innermost room that contains a path relative to src/, or None."""
        parts = pathlib.PurePosixPath(path).parts[:-1]
        for length in range(len(parts), 0, -1):
            name = "/".join(parts[:length])
            if name in self.allowed:
                return name
        return None

    def may_include(self, room, other):
        return room == other or other in self.allowed[room] or ANYTHING in self.allowed[room]


class Checker:
    def __init__(self, root):
        self.root = root
        self.map = Map()
        self.violations = []
        self.file_count = 0
        self.include_count = 0

    def run(self):
        self.read_map()
        self.check_public_headers_are_listed()
        for path in self.sources():
            self.check_file(path)
        return self.violations

    def complain(self, path, line, message):
        self.violations.append(f"{path}:{line}: {message}")

    # --- the map ---------------------------------------------------------------------------------

    def read_map(self):
        text = (self.root / "layers.txt").read_text(encoding="utf-8")
        for number, line in enumerate(text.splitlines(), 1):
            line = line.split("#")[0].strip()
            if line.startswith("header "):
                self.read_header_line(number, line)
            elif ":" in line:
                self.read_room_line(number, line)
            elif line:
                self.complain("layers.txt", number, f"neither `room: rooms` nor `header path = room`: {line}")

    def read_room_line(self, number, line):
        names, others = line.split(":", 1)
        others = others.replace(",", " ").split()
        for room in (name.strip() for name in names.split(",")):
            if room in self.map.allowed:
                self.complain("layers.txt", number, f"room {room} is defined twice")
            for other in others:
                if other not in self.map.allowed and other not in (PUBLIC_ONLY, ANYTHING):
                    self.complain("layers.txt", number, f"room {room} names {other} before {other} is defined")
            self.map.allowed[room] = set(others)

    def read_header_line(self, number, line):
        match = re.fullmatch(r"header\s+(\S+)\s*=\s*(\S+)", line)
        if not match:
            self.complain("layers.txt", number, f"a header line reads `header include/gemmery/NAME = ROOM`, not: {line}")
            return
        path, room = match.groups()
        if room not in self.map.allowed:
            self.complain("layers.txt", number, f"{path} belongs to {room}, which is no room")
        if path in self.map.header_room:
            self.complain("layers.txt", number, f"{path} is listed twice")
        if not (self.root / path).is_file():
            self.complain("layers.txt", number, f"{path} is listed but does not exist")
        self.map.header_room[path] = room

    def check_public_headers_are_listed(self):
        for path in self.files_under("include"):
            if path not in self.map.header_room:
                self.complain(path, 1, f"public header without a line `header {path} = ROOM` in layers.txt")

    # --- the files -------------------------------------------------------------------------------

    def files_under(self, folder):
        for path in sorted((self.root / folder).rglob("*")):
            if path.suffix in SOURCE_SUFFIXES and path.is_file():
                yield path.relative_to(self.root).as_posix()

    def sources(self):
        for folder in ("src", "include", *OUTER_ROOMS):
            yield from self.files_under(folder)

    def check_file(self, path):
        self.file_count += 1
        room = self.room_of_file(path)
        if room is None:
            if not path.startswith("include/"):  # a public header without a line was reported before
                self.complain(path, 1, "lies in no room of layers.txt")
            return
        if room not in self.map.allowed:
            return  # reported when the map was read
        code = without_comments_and_raw_strings((self.root / path).read_text(encoding="utf-8"))
        for match in INCLUDE.finditer(code):
            self.include_count += 1
            line = code.count("\n", 0, match.start()) + 1
            is_quoted, name = match.group(1) == '"', match.group(2)
            reason = self.why_forbidden(path, room, is_quoted, name)
            if reason:
                self.complain(path, line, f'#include {"<" if not is_quoted else chr(34)}{name}{">" if not is_quoted else chr(34)}: {reason}')

    def room_of_file(self, path):
        if path.startswith("src/"):
            return self.map.room_of(path.removeprefix("src/"))
        if path.startswith("include/"):
            return self.map.header_room.get(path)
        return self.map.room_of(path)

    # --- one #include ----------------------------------------------------------------------------

    def why_forbidden(self, path, room, is_quoted, name):
        """The reason why the file at `path` of `room` may not include `name`, or None."""
        if "." in pathlib.PurePosixPath(name).parts or ".." in pathlib.PurePosixPath(name).parts:
            return "relative; name it from the include root"
        if name.startswith("gemmery/"):
            return self.why_public_forbidden(room, is_quoted, name)
        if is_device(room):
            return self.why_device_forbidden(room, is_quoted, name)
        if self.map.room_of(name) and not self.is_own_file(path, name):
            return self.why_room_forbidden(path, room, self.map.room_of(name))
        if is_quoted:
            return None if self.is_own_file(path, name) else "no file of the tree; spell it room/file from src/"
        return why_foreign_forbidden(path, name)

    def why_public_forbidden(self, room, is_quoted, name):
        if is_quoted:
            return "a public header is included with <…>"
        owner = self.map.header_room.get("include/" + name)
        if owner is None:
            return "no public header of layers.txt"
        if PUBLIC_ONLY in self.map.allowed[room] or self.map.may_include(room, owner):
            return None
        return f"it belongs to {owner}, which {room} may not include"

    def why_device_forbidden(self, room, is_quoted, name):
        other = self.map.room_of(name)
        if is_quoted:
            return "device code includes with <…> only"
        if other is None or not is_device(other):
            return "device code includes device code only"
        return None if self.map.may_include(room, other) else f"{room} may not include {other}"

    def why_room_forbidden(self, path, room, other):
        if path.startswith("include/"):
            return "a public header includes public headers only"
        if PUBLIC_ONLY in self.map.allowed[room] and other not in self.map.allowed[room]:
            return f"{room} includes public headers only"
        if is_device(other) and other != "device/abi" and ANYTHING not in self.map.allowed[room]:
            return "of device code the host includes device/abi only"
        return None if self.map.may_include(room, other) else f"{room} may not include {other}"

    def is_own_file(self, path, name):
        """True if a file outside src/ includes a neighbour, by a path from the root of the tree or from its own folder."""
        if path.startswith(("src/", "include/")):
            return False
        folder = pathlib.PurePosixPath(path).parent
        return (self.root / folder / name).is_file() or (name.startswith(folder.parts[0] + "/") and (self.root / name).is_file())


def is_device(room):
    return room == "device" or room.startswith("device/")


def why_foreign_forbidden(path, name):
    """The rules for headers of other projects."""
    may_name_vendors = path.startswith(("bench/peers/", "tests/"))
    if TOOLKIT.match(name) and not may_name_vendors:
        return "no toolkit header is needed to build: declare what is used; only bench/peers and tests may include it"
    if VENDOR.match(name) and not may_name_vendors:
        return "a vendor's header: declare what is used; only bench/peers and tests may include it"
    if path.startswith("include/") and (HEADER_ONLY.match(name) or "/" in name or ("." in name and name not in C_STANDARD)):
        return "a public header includes the standard library and public headers only"
    if HEADER_ONLY.match(name) and path.startswith("src/") and not path.endswith(".cpp"):
        return "third-party headers are included by .cpp files only"
    if name.startswith("CLI/") and path.startswith("src/"):
        return "CLI11 belongs to cli only"
    return None


def without_comments_and_raw_strings(text):
    """The text without them, but with their line breaks, so that line numbers do not change."""

    def blank(match):
        if match.group("raw") or match.group("comment"):
            return " " + "\n" * match.group().count("\n")
        return match.group()

    return NOT_CODE.sub(blank, text)


def main(arguments):
    root = pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).resolve().parent.parent
    checker = Checker(root)
    for violation in checker.run():
        print(violation)
    print(f"layers: {checker.file_count} files, {checker.include_count} includes, {len(checker.violations)} violations")
    return 1 if checker.violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
