#!/usr/bin/env python3
import contextlib
import io
import os
import tempfile
import unittest
from pathlib import Path

import embed_wgsl

KERNEL = """// y = s * x.
struct Params {
  count: u32,  // of elements: all of them
  shift: i32,
  s: f32,
}
/* @group(0) @binding(7) var<storage, read> old: array<u32>; */
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@binding(2) @group(0)
var<storage, read_write> y: array<vec4<f32>, 4>;
var<workgroup> sums: array<f32, 64>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) { y[id.x] = p.s * x[id.x]; }
"""

HEAD = "// A.\nstruct Params { a: u32 }\n@group(0) @binding(0) var<uniform> p: Params;\n"


class EmbedWgslTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.source = Path(folder.name) / "kernels"
        self.out = Path(folder.name) / "out" / "kernels"
        self.source.mkdir()

    def embed(self, name, text):
        (self.source / name).write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        return embed_wgsl.embed(self.source, self.out)

    def refused(self, text, line, why):
        findings = self.embed("k.wgsl", text)
        self.assertEqual(len(findings), 1, text)
        self.assertTrue(findings[0].startswith(f"{self.source / 'k.wgsl'}:{line}: "), findings[0])
        self.assertIn(why, findings[0])
        self.assertFalse((self.out / "k.wgsl.h").exists())

    def test_a_kernel_gives_its_source_and_its_types(self):
        self.assertEqual(self.embed("scale.wgsl", KERNEL), [])
        self.assertEqual((self.out / "scale.wgsl.h").read_text(encoding="utf-8"), f"""\
// Made from scale.wgsl by tools/embed_wgsl.py.
#pragma once
#include <array>
#include <string_view>

#include "base/types.h"
#include "gpu/binding.h"

namespace bezel::wgsl::scale {{

struct Params {{
  u32 count;
  i32 shift;
  f32 s;
}};

struct Io {{
  BufferView x;
  BufferView y;

  static constexpr bool kWritten[] = {{false, true}};
  auto views() const {{ return std::array{{x, y}}; }}
}};

inline constexpr std::string_view source = R"wgsl({KERNEL})wgsl";

}}  // namespace bezel::wgsl::scale
""")

    def test_parts_of_kernels_give_only_their_source(self):
        for name in ("lib_a.wgsl", "format_a.wgsl"):
            self.assertEqual(self.embed(name, KERNEL), [])
        self.assertEqual(self.embed("plain.wgsl", "// A part: no struct Params { }.\nconst A = 1;\n"), [])
        for name in ("lib_a", "format_a", "plain"):
            text = (self.out / f"{name}.wgsl.h").read_text(encoding="utf-8")
            self.assertIn(f"namespace bezel::wgsl::{name} {{", text)
            self.assertIn('source = R"wgsl(// ', text)
            self.assertNotIn("BufferView", text)
            self.assertNotIn("gpu/", text)
        self.assertEqual(len(list(self.out.glob("*.wgsl.h"))), 3)

    def test_a_header_is_written_only_if_it_changes(self):
        self.embed("k.wgsl", KERNEL)
        header = self.out / "k.wgsl.h"
        os.utime(header, (1, 1))
        self.embed("k.wgsl", KERNEL)
        self.assertEqual(header.stat().st_mtime, 1)
        self.embed("k.wgsl", KERNEL.replace("y = s * x", "y = x * s"))
        self.assertNotEqual(header.stat().st_mtime, 1)

    def test_the_digest_changes_with_every_file(self):
        digests = set()
        for name, text in (("k.wgsl", KERNEL), ("k.wgsl", KERNEL.replace("y = s * x", "y = x * s")), ("lib_a.wgsl", "// A.\n")):
            self.embed(name, text)
            digests.add((self.out / "digest.h").read_text(encoding="utf-8"))
        self.assertEqual(len(digests), 3)

    def test_params_are_scalars_of_four_bytes(self):
        for kind in ("vec2f", "f16", "array<u32, 4>", "bool"):
            self.refused(KERNEL.replace("shift: i32", f"shift: {kind}"), 4, "in Params is not a plain")
        self.refused(KERNEL.replace("shift: i32", "@align(16) shift: i32"), 4, "@align(16) shift: i32")
        self.refused("// A.\nstruct Params {\n}\n", 2, "no fields")

    def test_params_may_end_with_an_array_of_structs(self):
        def kernel(item, before="a: u32, b: u32, c: u32, d: f32,", items="\n  items: array<Item, 3>,\n"):
            return (f"// A.\nstruct Item {{ {item} }}\nstruct Params {{\n  {before}{items}}}\n"
                    "@group(0) @binding(0) var<uniform> p: Params;\n@group(0) @binding(1) var<storage> x: array<f32>;\n")
        four = "x: u32, y: f32, z: u32, w: i32"
        self.assertEqual(self.embed("k.wgsl", kernel(four)), [])
        text = (self.out / "k.wgsl.h").read_text(encoding="utf-8")
        self.assertIn("struct Item {\n  u32 x;\n  f32 y;\n  u32 z;\n  i32 w;\n};\n", text)
        self.assertIn("struct Params {\n  u32 a;\n  u32 b;\n  u32 c;\n  f32 d;\n  std::array<Item, 3> items;\n};\n", text)
        (self.out / "k.wgsl.h").unlink()
        self.refused(kernel("x: u32, y: f32"), 5, "'items' must be an array of structs of whole 16 bytes")
        self.refused(kernel(four, "a: u32,"), 5, "'items' must be an array of structs of whole 16 bytes")
        self.refused(kernel("x: vec4f"), 2, "'x: vec4f' in Item is not a plain")
        self.refused(kernel(four, items="\n  items: array<u32, 4>,\n"), 5, "'items' must be an array of structs")

    def test_bindings_count_up_from_the_uniform(self):
        self.refused(KERNEL.replace("@binding(2)", "@binding(3)"), 10, "'y' has @binding(3) where 2 is next")
        self.refused(KERNEL.replace("@binding(2)", "@binding(1)"), 10, "'y' has @binding(1) where 2 is next")
        self.refused(KERNEL.replace("@binding(2) ", ""), 10, "'y' has @binding() where 2 is next")
        self.refused(KERNEL.replace("@group(0) @binding(1)", "@group(1) @binding(1)"), 9, "'x' must be in @group(0)")
        self.refused(KERNEL.replace(" p: Params", " q: Params"), 8, "var<uniform> p: Params")
        self.refused(KERNEL.replace("var<uniform>", "var<storage>"), 8, "var<uniform> p: Params")
        self.refused(KERNEL.replace("<storage, read>", "<uniform>", 2), 9, "'x' must be var<storage")
        self.refused(HEAD, 1, "no storage")

    def test_a_kernel_has_at_most_eight_storage_bindings(self):
        def kernel(count):
            return HEAD + "".join(
                f"@group(0) @binding({i}) var<storage> b{i}: array<u32>;\n" for i in range(1, count + 1))
        self.refused(kernel(9), 12, "'b9' is storage binding 9; a kernel may have 8")
        self.assertEqual(self.embed("k.wgsl", kernel(8)), [])

    def test_the_file_must_begin_with_a_comment_and_fit_into_a_string(self):
        self.refused("\n" + KERNEL, 1, "first line must be a comment")
        self.refused("", 1, "first line must be a comment")
        self.refused('// A.\n// )wgsl"\n', 2, "would end the string")
        self.refused(b"// \xff\n", 1, "not UTF-8 at byte 3")
        (self.source / "k.wgsl").unlink()
        self.assertIn("cannot name a namespace", self.embed("a-b.wgsl", KERNEL)[0])

    def test_exit_status(self):
        self.embed("k.wgsl", KERNEL)
        with contextlib.redirect_stderr(io.StringIO()) as errors:
            self.assertEqual(embed_wgsl.main([str(self.source), str(self.out)]), 0)
            self.assertEqual(errors.getvalue(), "")
            (self.source / "bad.wgsl").write_text("fn f() {}\n", encoding="utf-8")
            self.assertEqual(embed_wgsl.main([str(self.source), str(self.out)]), 1)
            self.assertIn("bad.wgsl:1:", errors.getvalue())
            self.assertEqual(embed_wgsl.main([str(self.source)]), 2)
            self.assertEqual(embed_wgsl.main([str(self.source / "none"), str(self.out)]), 2)


if __name__ == "__main__":
    unittest.main()
