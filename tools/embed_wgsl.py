#!/usr/bin/env python3
"""Makes a C++ header of every WGSL file: its source, and for a kernel the types of what it is given.

usage: embed_wgsl.py SRC_DIR OUT_DIR

SRC_DIR/<stem>.wgsl becomes OUT_DIR/<stem>.wgsl.h, written only if it changes; OUT_DIR/digest.h has a digest of all. A kernel is a file with `struct Params`:
binding 0 is `var<uniform> p: Params`, bindings 1, 2, ... are storage. Params has plain numbers, and may end with an array of
structs of them. Files lib_* and format_* are parts of kernels and only give their source.
"""
import hashlib
import re
import sys
from pathlib import Path

MAX_STORAGE = 8  # what every WebGPU device offers to one shader stage
SCALARS = ("u32", "i32", "f32")
RAW_END = ')wgsl"'
DIGEST = """// Made by tools/embed_wgsl.py: it changes with every kernel.
#pragma once
#include <string_view>

namespace bezel::wgsl {{

inline constexpr std::string_view kDigest = "{}";

}}  // namespace bezel::wgsl
"""

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
STRUCT = r"\bstruct\s+{}\s*\{{([^}}]*)\}}"
FIELD = re.compile(r"\s*(\w+)\s*:\s*(\w+)\s*")
ITEMS = re.compile(r"\n\s*(\w+)\s*:\s*array<(\w+), (\d+)>,?\s*$")
RESOURCE = re.compile(r"((?:@\w+\s*\([^)]*\)\s*)+)var\s*(?:<([^>]*)>)?\s*(\w+)\s*:\s*([^;]*?)\s*;")
ATTRIBUTE = re.compile(r"@(\w+)\s*\(\s*(\w+?)u?\s*,?\s*\)")


class Problem(Exception):
    def __init__(self, line, why):
        super().__init__(why)
        self.line = line


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def parse_struct(text, struct_name):
    """The fields of such a struct as (name, type) in order, or None where there is none."""
    struct = re.search(STRUCT.format(struct_name), text)
    if struct is None:
        return None
    fields = []
    at = struct.start(1)
    items = ITEMS.search(struct.group(1))
    for declaration in struct.group(1)[:items.start() if items else None].split(","):
        line = line_of(text, at + len(declaration) - len(declaration.lstrip()))
        at += len(declaration) + 1
        if not declaration.strip():
            continue
        field = FIELD.fullmatch(declaration)
        if field is None or field.group(2) not in SCALARS:
            raise Problem(line, f"'{' '.join(declaration.split())}' in {struct_name} is not a plain u32, i32 or f32")
        fields.append(field.groups())
    if not fields:
        raise Problem(line_of(text, struct.start()), f"{struct_name} has no fields")
    return fields


def check_uniform(line, space, name, kind):
    if space != ["uniform"] or (name, kind) != ("p", "Params"):
        raise Problem(line, f"binding 0 must be var<uniform> p: Params, not '{name}: {kind}'")


def parse_bindings(text):
    """The storage bindings as (name, whether it is written) in order."""
    storage = []
    expected = 0
    for resource in RESOURCE.finditer(text):
        line = line_of(text, resource.start())
        attributes = dict(ATTRIBUTE.findall(resource.group(1)))
        space = [word.strip() for word in (resource.group(2) or "").split(",") if word.strip()]
        name, kind = resource.group(3), resource.group(4)
        if attributes.get("group") != "0":
            raise Problem(line, f"'{name}' must be in @group(0)")
        if attributes.get("binding") != str(expected):
            raise Problem(line, f"'{name}' has @binding({attributes.get('binding', '')}) where {expected} is next;"
                                " bindings count up from 0 in the order of the file")
        if expected == 0:
            check_uniform(line, space, name, kind)
        elif space not in (["storage"], ["storage", "read"], ["storage", "read_write"]):
            raise Problem(line, f"'{name}' must be var<storage, read> or var<storage, read_write>")
        elif expected > MAX_STORAGE:
            raise Problem(line, f"'{name}' is storage binding {expected}; a kernel may have {MAX_STORAGE}")
        else:
            storage.append((name, space[-1] == "read_write"))
        expected += 1
    if not storage:
        raise Problem(1, "the kernel has no storage binding")
    return storage


def source_lines(source):
    return ['inline constexpr std::string_view source = R"wgsl(' + source + RAW_END + ";"]


def parse_items(text, fields):
    """(name, struct, its fields, count) of the array that Params ends with, or None. As a uniform wants it: in steps of 16 bytes."""
    struct = re.search(STRUCT.format("Params"), text)
    items = ITEMS.search(struct.group(1))
    if items is None:
        return None
    name, item, count = items.groups()
    line = line_of(text, struct.start(1) + items.start(1))
    item_fields = parse_struct(text, item)
    if item_fields is None or len(item_fields) % 4 != 0 or len(fields) % 4 != 0:
        raise Problem(line, f"'{name}' must be an array of structs of whole 16 bytes, after as many")
    return name, item, item_fields, count


def struct_lines(name, fields, more=()):
    return [f"struct {name} {{", *(f"  {kind} {field};" for field, kind in fields), *more, "};", ""]


def kernel_lines(fields, items, storage):
    """What C++ must fill in to run the kernel."""
    names = [name for name, _ in storage]
    written = ["true" if is_written else "false" for _, is_written in storage]
    lines = []
    if items is not None:
        name, item, item_fields, count = items
        lines += struct_lines(item, item_fields)
        lines += struct_lines("Params", fields, [f"  std::array<{item}, {count}> {name};"])
    else:
        lines += struct_lines("Params", fields)
    return [*lines, "struct Io {", *(f"  BufferView {name};" for name in names), "",
            f"  static constexpr bool kWritten[] = {{{', '.join(written)}}};",
            f"  auto views() const {{ return std::array{{{', '.join(names)}}}; }}", "};", ""]


def header(name, source):
    """The header for the file `name` with this source. Raises Problem."""
    stem = name.removesuffix(".wgsl")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", stem):
        raise Problem(1, f"'{stem}' cannot name a namespace; use a-z, 0-9 and _")
    if not source.startswith("//"):
        raise Problem(1, "the first line must be a comment that says what the file computes")
    if RAW_END in source:
        raise Problem(line_of(source, source.index(RAW_END)), f"{RAW_END} would end the string it is put in")
    text = COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), source)
    fields = None if stem.startswith(("lib_", "format_")) else parse_struct(text, "Params")
    kernel = []
    if fields is not None:
        kernel = kernel_lines(fields, parse_items(text, fields), parse_bindings(text))
    lines = [f"// Made from {name} by tools/embed_wgsl.py.", "#pragma once"]
    lines += ["#include <array>", "#include <string_view>", "", '#include "base/types.h"', '#include "gpu/binding.h"'
              ] if kernel else ["#include <string_view>"]
    lines += ["", f"namespace bezel::wgsl::{stem} {{", "", *kernel, *source_lines(source), "",
              f"}}  // namespace bezel::wgsl::{stem}", ""]
    return "\n".join(lines)


def write_if_changed(path, text):
    """A header that keeps its time of change makes nothing compile again."""
    data = text.encode("utf-8")
    if not path.is_file() or path.read_bytes() != data:
        path.write_bytes(data)


def embed(source_dir, out_dir):
    """Writes the headers. Returns the findings as lines of text; a file with one gets no header."""
    findings = []
    digest = hashlib.sha256()
    out_dir.mkdir(parents=True, exist_ok=True)
    for path in sorted(source_dir.glob("*.wgsl")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
        try:
            text = header(path.name, path.read_text(encoding="utf-8"))
        except Problem as problem:
            findings.append(f"{path}:{problem.line}: {problem}")
        except UnicodeDecodeError as problem:
            findings.append(f"{path}:1: the file is not UTF-8 at byte {problem.start}")
        else:
            write_if_changed(out_dir / f"{path.name}.h", text)
    write_if_changed(out_dir / "digest.h", DIGEST.format(digest.hexdigest()[:16]))
    return findings


def main(arguments):
    if len(arguments) != 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    source_dir, out_dir = map(Path, arguments)
    if not source_dir.is_dir():
        print(f"{source_dir} is not a folder.", file=sys.stderr)
        return 2
    findings = embed(source_dir, out_dir)
    for finding in findings:
        print(finding, file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
