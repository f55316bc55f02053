#!/usr/bin/env python3
"""resources.py must be able to fail: on a rise, on a spill, on a kernel that it does not know."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).with_name("resources.py")
LOG = """ptxas info    : Compiling entry function '_Z4gateIfLi64EEvT_' for 'sm_{arch}'
ptxas info    : Function properties for _Z4gateIfLi64EEvT_
    0 bytes stack frame, {stores} bytes spill stores, {loads} bytes spill loads
ptxas info    : Used {registers} registers, used 1 barriers, {shared} bytes smem, 360 bytes cmem[0]
peak memory {memory} MiB
"""


class ResourcesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.table = self.folder / "resources_nvcc_13.0.csv"
        self.build()
        self.assertEqual(self.run_tool("--update")[0], 0)

    def build(self, **figures):
        standard = {"arch": 80, "stores": 0, "loads": 0, "registers": 40, "shared": 16, "memory": 200}
        (self.folder / "gate.cu.o.ptxas").write_text(LOG.format(**{**standard, **figures}))

    def run_tool(self, *options, compiler="13.0.88"):
        done = subprocess.run([sys.executable, TOOL, "--compiler", compiler, "--objects", self.folder / "gate.cu.o",
                               "--tables", self.folder, *options], capture_output=True, text=True)
        return done.returncode, done.stdout

    def assert_fails(self, message, *options):
        code, output = self.run_tool(*options)
        self.assertEqual(code, 1, output)
        self.assertIn(message, output)

    def test_table(self):
        self.assertEqual(self.table.read_text(), 'kernel,arch,registers,shared,reason\n"gate<float, 64>",80,40,16,\n')
        self.assertEqual(self.run_tool()[0], 0)

    def test_rise_fails_and_needs_a_reason(self):
        for field in ("registers", "shared"):
            self.build(**{field: 41})
            self.assert_fails(f"gate<float, 64> sm_80: {field}")
            self.assert_fails("a rise needs a --reason", "--update")
        self.assertEqual(self.run_tool("--update", "--reason", "wider loads")[0], 0)
        self.assertIn('80,40,41,wider loads', self.table.read_text())
        self.assertEqual(self.run_tool()[0], 0)

    def test_fall_passes_and_is_taken_down(self):
        self.build(registers=39)
        code, output = self.run_tool()
        self.assertEqual(code, 0)
        self.assertIn("1 numbers are lower", output)
        self.assertEqual(self.run_tool("--update")[0], 0)
        self.build()
        self.assert_fails("registers 39 -> 40")

    def test_spills_always_fail(self):
        for figures in ({"stores": 4}, {"loads": 8}):
            self.build(**figures)
            self.assert_fails("spills")
            self.assert_fails("spills", "--update", "--reason", "no excuse")
            self.assertIn("spills", self.run_tool(compiler="14.1.2")[1])

    def test_unknown_and_vanished_kernels_fail(self):
        self.build(arch=90)
        self.assert_fails("gate<float, 64> sm_90: not in the table")
        self.table.write_text(self.table.read_text().replace("64>", "32>"))
        self.build()
        self.assert_fails("gate<float, 32> sm_80: in the table, but not in the build")

    def test_memory_of_the_compiler(self):
        self.build(memory=3073)
        self.assert_fails("3073 MiB")

    def test_another_compiler_has_its_own_numbers(self):
        self.build(registers=99)
        self.assertEqual(self.run_tool(compiler="13.1.2")[0], 0)

    def test_nothing_measured_fails(self):
        (self.folder / "gate.cu.o.ptxas").write_text("peak memory 10 MiB\n")
        self.assert_fails("no kernel in the logs")


if __name__ == "__main__":
    unittest.main()
