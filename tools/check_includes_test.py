#!/usr/bin/env python3
import contextlib
import io
import tempfile
import unittest
from pathlib import Path

import check_includes


class CheckIncludesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        (self.root / "src").mkdir()

    def findings(self, path, text):
        file = self.root / "src" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        found = check_includes.check(self.root)
        file.unlink()
        return found

    def test_folders_to_the_left_and_the_own_one_are_allowed(self):
        for path, target in (("io/a.cc", "base/types.h"), ("io/a.cc", "io/source.h"), ("graph/a.cc", "kernels/k.h"),
                             ("gguf/a.cc", "gpu/g.h"), ("kernels/a.cc", "io/source.h"), ("api/a.cc", "run/r.h")):
            self.assertEqual(self.findings(path, f'#include "{target}"\n#include <vector>\n'), [])

    def test_folders_to_the_right_and_beside_are_not(self):
        for path, target, relation in (("base/a.cc", "io/source.h", "above"), ("io/a.cc", "gpu/g.h", "beside"),
                                       ("gguf/a.cc", "kernels/k.h", "beside"), ("text/a.cc", "model/m.h", "beside"),
                                       ("graph/a.cc", "text/t.h", "above"), ("run/a.cc", "api/cli.h", "above")):
            folder, other = path.split("/")[0], target.split("/")[0]
            self.assertEqual(self.findings(path, f'// first line\n  #  include "{target}"\n'),
                             [f"src/{path}:2: {folder} includes {target}, but {other} lies {relation} {folder}"])

    def test_paths_start_at_src(self):
        self.assertIn("climbs out", self.findings("io/a.cc", '#include "../base/types.h"\n')[0])
        self.assertIn("no path from src", self.findings("io/a.cc", '#include "source.h"\n')[0])
        self.assertIn("no folder of src", self.findings("io/a.cc", '#include "other/x.h"\n')[0])
        self.assertIn("no place", self.findings("strange/a.cc", "")[0])

    def test_tests_share_headers_of_the_tests_folder(self):
        self.assertEqual(self.findings("io/a_test.cc", '#include "support.h"\n'), [])

    def test_comments_and_raw_strings_do_not_count(self):
        text = '// #include "api/x.h"\n/*\n#include "api/x.h"\n#ifdef A\n*/\nauto s = R"(\n#include "api/x.h"\n)";\n'
        self.assertEqual(self.findings("base/a.cc", text), [])
        self.assertEqual(len(self.findings("base/a.cc", text + '#include "api/x.h"  // why\n')), 1)

    def test_a_comment_inside_a_string_hides_nothing(self):
        text = 'auto url = "http://x"; auto open = "/*";\n#include "api/x.h"\n'
        self.assertIn("src/base/a.cc:2:", self.findings("base/a.cc", text)[0])

    def test_headers_need_pragma_once(self):
        self.assertEqual(self.findings("io/a.h", "// why\n#pragma once\n"), [])
        self.assertEqual(self.findings("io/a.h", "// #pragma once\n"),
                         ["src/io/a.h:1: the header has no #pragma once"])

    def test_platform_tests_only_in_platform_files(self):
        for line in ("#ifdef __linux__", "#ifndef NDEBUG", "# if defined(__wasm__)", "#if !defined(X) || Y",
                     "#elif defined X"):
            self.assertIn("src/io/a.cc:1: a platform test", self.findings("io/a.cc", line + "\n")[0])
            self.assertEqual(self.findings("io/a_native.cc", line + "\n"), [])
            self.assertEqual(self.findings("io/a_web.h", "#pragma once\n" + line + "\n"), [])
        self.assertEqual(self.findings("io/a.cc", "#if 1\n#endif\n"), [])

    def test_wasm_guards_only_in_tests(self):
        for line in ("#ifdef __wasm__", "#ifndef __wasm__", "#if defined(__wasm__)", "#if !defined(__wasm__)  // threads"):
            self.assertEqual(self.findings("io/a_test.cc", line + "\n"), [])
            self.assertEqual(len(self.findings("io/a.cc", line + "\n")), 1)
        self.assertEqual(len(self.findings("io/a_test.cc", "#ifdef __linux__\n")), 1)
        self.assertEqual(len(self.findings("io/a_test.cc", "#if defined(__wasm__) || defined(__linux__)\n")), 1)

    def test_exit_codes(self):
        def run(*arguments):
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                return check_includes.main(list(arguments))

        self.assertEqual(run(str(self.root)), 0)
        (self.root / "src/io").mkdir()
        (self.root / "src/io/a.h").write_text("")
        self.assertEqual(run(str(self.root)), 1)
        self.assertEqual(run(str(self.root / "nowhere")), 2)
        self.assertEqual(run("a", "b"), 2)


if __name__ == "__main__":
    unittest.main()
