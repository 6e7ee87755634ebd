"""bench/compiler_digest.py beside the build's script, which it must equal."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import compiler_digest


class CompilerDigestTest(unittest.TestCase):

    def test_is_that_of_the_build(self):
        with tempfile.TemporaryDirectory() as folder:
            output = pathlib.Path(folder) / "digest.cc"
            subprocess.run(
                ["cmake", f"-DROOT={ROOT}", f"-DOUTPUT={output}", "-P",
                 str(ROOT / "jit" / "compile" / "compiler_digest.cmake")],
                check=True)
            built = re.search("[0-9a-f]{64}", output.read_text()).group()
        self.assertEqual(compiler_digest.of_tree(ROOT), built)

    def test_is_of_code_alone(self):
        code = b"// Adds.\nint Add(int a,\n        int b);\n"
        same = b"int Add(int a, int b);\n  // Not what it says.\n"
        other = b"// Adds.\nint Add(int a, int c);\n"
        digest = compiler_digest.code_of
        self.assertEqual(digest(code), digest(same))
        self.assertNotEqual(digest(code), digest(other))
        # A string's slashes and a directive are code.
        self.assertNotEqual(digest(b'x("// a");'), digest(b'x("// b");'))
        self.assertNotEqual(digest(b"#define A 1"), digest(b"#define A 2"))


if __name__ == "__main__":
    unittest.main()
