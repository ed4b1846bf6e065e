#!/usr/bin/env python3
"""Checks what the compiler does not: which folder of src may include which, that every header can be included
twice, and that platforms differ by file, not by #ifdef.

usage: check_includes.py [ROOT]      (the repository; by default the one this script lies in)
"""
import re
import sys
from pathlib import Path

# From left to right: a folder includes itself and the folders of earlier groups, never its own group's others.
LAYERS = (("base",), ("io", "gpu", "media"), ("gguf", "kernels"), ("graph",), ("text", "model"), ("run",), ("api",))
LEVEL = {folder: level for level, group in enumerate(LAYERS) for folder in group}

INCLUDE = re.compile(r'\s*#\s*include\s*"([^"]+)"')
PLATFORM_TEST = re.compile(r"\s*#\s*(?:ifdef|ifndef|(?:el)?if\b.*\bdefined|elifdef|elifndef)\b")
WASM_GUARD = re.compile(r"\s*#\s*(?:ifdef|ifndef|if\s+!?\s*defined\s*\(?)\s*__wasm(?:__|32__)?\s*\)?\s*(?://.*)?$")
PLATFORM_FILE = re.compile(r"_(?:native|web)(?:_test|_fuzz)?\.(?:cc|h)$")
COMMENT_OR_STRING = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"([^()\\\s]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
SUFFIXES = (".h", ".cc")


def blank(match):
    """Spaces instead of comments and raw strings, on as many lines; plain strings hold the names of includes."""
    text = match.group()
    return re.sub(r"[^\n]", " ", text) if text.startswith(("/", "R")) else text


def check_include(folder, target):
    """Why a file of `folder` may not include "target", or None."""
    other = target.split("/")[0] if "/" in target else None
    if ".." in target.split("/"):
        return f'"{target}" climbs out of its folder; write the path from src'
    if other is None:
        return None  # shared by tests: support.h
    if other not in LEVEL:
        return f'"{target}" is in no folder of src that may be included'
    if other == folder or LEVEL[other] < LEVEL[folder]:
        return None
    relation = "beside" if LEVEL[other] == LEVEL[folder] else "above"
    return f"{folder} includes {target}, but {other} lies {relation} {folder}"


def check_file(path, root):
    """All findings in one file, as (line, why)."""
    text = COMMENT_OR_STRING.sub(blank, path.read_text(encoding="utf-8"))
    lines = text.split("\n")
    folder = path.relative_to(root / "src").parts[0]
    is_test = path.name.endswith("_test.cc")
    if folder not in LEVEL:
        yield 1, f"src/{folder} has no place in the order of folders"
        return
    if path.suffix == ".h" and not any(re.match(r"\s*#\s*pragma\s+once\b", line) for line in lines):
        yield 1, "the header has no #pragma once"
    for number, line in enumerate(lines, 1):
        include = INCLUDE.match(line)
        if include:
            why = check_include(folder, include.group(1))
            if why is None and "/" not in include.group(1) and not is_test:
                why = f'"{include.group(1)}" is no path from src'
            if why:
                yield number, why
        if PLATFORM_TEST.match(line) and not PLATFORM_FILE.search(path.name):
            if not (is_test and WASM_GUARD.match(line)):
                yield number, "a platform test; put what differs into files named _native and _web"


def check(root):
    """All findings below root/src, as sorted lines of text."""
    findings = []
    for path in sorted((root / "src").rglob("*")):
        if path.suffix in SUFFIXES and path.is_file():
            for line, why in check_file(path, root):
                findings.append(f"{path.relative_to(root)}:{line}: {why}")
    return findings


def main(arguments):
    if len(arguments) > 1:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    if not (root / "src").is_dir():
        print(f"{root} has no folder src.", file=sys.stderr)
        return 2
    findings = check(root)
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
