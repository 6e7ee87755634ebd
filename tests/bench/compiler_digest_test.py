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


if __name__ == "__main__":
    unittest.main()
