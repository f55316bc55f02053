#!/usr/bin/env python3
"""resources.py must be able to fail: on a rise, on a spill, over a limit, on a kernel that it does not know."""

import contextlib
import io
import os
import pathlib
import tempfile
import unittest
from unittest import mock

import resources

LOG = """ptxas info    : Compiling entry function '_Z4gateIfLi64EEvT_' for 'sm_{arch}'
ptxas info    : Function properties for _Z4gateIfLi64EEvT_
    0 bytes stack frame, {stores} bytes spill stores, {loads} bytes spill loads
ptxas info    : Used {registers} registers, used 1 barriers, {shared} bytes smem, 360 bytes cmem[0]
peak memory {memory} MiB
"""
LISTING = """        .target        sm_{arch}
        .section        .text._Z4gateIfLi64EEvT_,"ax",@progbits
        /*0000*/                   MOV R1, c[0x0][0x28] ;
.L_x_0:
        /*0010*/                   HMMA.16816.F32 R4, R4, R6, R8 ;
        /*0020*/                   HMMA.16816.F32 R4, R4, R6, R8 ;
        /*0030*/                   {inside} ;
        /*0040*/               @P0 BRA `(.L_x_0) ;
        /*0050*/                   {outside} ;
        /*0060*/                   EXIT ;
"""
# They stand for NVIDIA's: the listing beside the object is its only "cubin".
TOOLS = {"cuobjdump": '#!/bin/sh\ncp "$3.listing" gate.sm_0.cubin\n', "nvdisasm": '#!/bin/sh\ncat "$2"\n'}
LIMITS = "kernel,arch,column,most,mark\n*,*,spill_bytes,0,\n*,*,spills_loop,0,\n"


class ResourcesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.table = self.folder / "resources_nvcc_13.0.csv"
        self.tools = self.folder / "tools"
        self.tools.mkdir()
        for name, script in TOOLS.items():
            (self.tools / name).write_text(script)
            (self.tools / name).chmod(0o755)
        self.limit("")
        self.build()
        self.assertEqual(self.run_tool("--update"), (0, "1 kernels x architectures, largest compiler process 200 MiB, "
                                                        "0 problem(s)\n"))

    def build(self, **figures):
        standard = {"arch": 80, "stores": 0, "loads": 0, "registers": 40, "shared": 16, "memory": 200, "inside": "NOP",
                    "outside": "NOP"}
        (self.folder / "gate.cu.o.ptxas").write_text(LOG.format(**{**standard, **figures}))
        (self.folder / "gate.cu.o.listing").write_text(LISTING.format(**{**standard, **figures}))

    def limit(self, rows):
        (self.folder / "limits.csv").write_text(LIMITS + rows)

    def run_tool(self, *options, compiler="13.0.88"):
        output = io.StringIO()
        with mock.patch.dict(os.environ, {"SOROT_CUDA_TOOLS": str(self.tools), "REASON": ""}), \
                contextlib.redirect_stdout(output):
            code = resources.main(["--compiler", compiler, "--objects", str(self.folder / "gate.cu.o"),
                                   "--tables", str(self.folder), *options])
        return code, output.getvalue()

    def assert_fails(self, message, *options, **keywords):
        code, output = self.run_tool(*options, **keywords)
        self.assertEqual(code, 1, output)
        self.assertIn(message, output)

    def assert_passes(self, *options):
        code, output = self.run_tool(*options)
        self.assertEqual(code, 0, output)
        return output

    def test_table(self):
        self.assertEqual(self.table.read_text(), """\
kernel,arch,registers,shared,pass,loop,fp32,compare,mufu,pack,ldsm,ldgsts,lds,integer,spills_loop,spills_outside,reason
"gate<float, 64>",80,40,16,2 HMMA,2.000,0.000,0.000,0.000,0.000,0.000,0.000,0.000,0.000,0,0,
""")
        self.assert_passes()

    def test_rise_fails_and_needs_a_reason(self):
        for field in ("registers", "shared"):
            self.build(**{field: 41})
            self.assert_fails(f"gate<float, 64> sm_80: {field}")
            self.assert_fails("a rise needs a --reason", "--update")
        self.assert_passes("--update", "--reason", "wider loads")
        self.assertIn("80,40,41,2 HMMA", self.table.read_text())
        self.assertIn(",wider loads\n", self.table.read_text())
        self.assert_passes()

    def test_rise_in_the_main_loop(self):
        self.build(inside="IADD3 R1, R1, 0x1, RZ")
        self.assert_fails("gate<float, 64> sm_80: integer 0.000 -> 0.500")
        self.assert_fails("integer 0.000 -> 0.500", "--only", "code")
        self.assert_passes("--only", "ptxas")
        self.assert_fails("a rise needs a --reason", "--update")
        self.assert_passes("--update", "--reason", "pointers run")
        self.assert_passes()
        self.build()
        self.assertIn("1 numbers are lower", self.assert_passes())
        self.build(inside="HMMA.16816.F32 R4, R4, R6, R8")
        self.assert_fails("gate<float, 64> sm_80: pass is '3 HMMA', in the table '2 HMMA'")

    def test_fall_passes_and_is_taken_down(self):
        self.build(registers=39)
        self.assertIn("1 numbers are lower", self.assert_passes())
        self.assert_passes("--update")
        self.build()
        self.assert_fails("registers 39 -> 40")

    def test_spills_over_the_limit_always_fail(self):
        for figures in ({"stores": 4}, {"loads": 8}, {"inside": "LDL R1, [R2]"}):
            self.build(**figures)
            self.assert_fails("at most 0 (limits.csv)")
            self.assert_fails("at most 0 (limits.csv)", "--update", "--reason", "no excuse")
            self.assert_fails("at most 0 (limits.csv)", compiler="14.1.2")
        self.build(outside="STL [R2], R1")
        self.assert_fails("spills_outside 0 -> 1")

    def test_limits(self):
        for limit in ("*,*,loop,2,", "*,90,loop,1,", '"gate<float, *>",80,loop,2.0,\n*,*,loop,1.0,', "gate*,*,loop,2,"):
            self.limit(limit + "\nlinear*,*,loop,1,planned\n")
            if limit.endswith("1.0,"):
                self.assert_fails("limit of loop for * sm_*: decides nothing")
            else:
                self.assert_passes()
        for limit, message in {
            "gate*,80,loop,1.9,": "gate<float, 64> sm_80: loop is 2.0, at most 1.9",
            "gate*,*,spills_outside,-1,": "spills_outside is 0, at most -1",
            "gata*,*,loop,3,": "limit of loop for gata* sm_*: decides nothing",
            "gate*,*,loop,3,planned": "take away the mark",
            "gate*,*,loop,3,some day": "mark is 'some day'",
            "gate*,*,loops,3,": "no column loops",
        }.items():
            self.limit(limit + "\n")
            self.assert_fails(message)
        self.limit("gate*,80,loop,1.9,\n")
        self.assertEqual(self.run_tool(compiler="14.1.2")[0], 0)

    def test_without_a_disassembler(self):
        (self.tools / "nvdisasm").unlink()
        self.assertEqual(self.run_tool("--only", "code")[0], 77)  # CTest calls the test skipped
        self.assert_passes("--only", "ptxas")
        self.assert_fails("there is no nvdisasm", "--update")

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
        self.assert_fails("no kernel in the build", "--only", "ptxas")
        (self.folder / "gate.cu.o.listing").write_text("")
        self.assert_fails("no kernel in the build", "--only", "code")


if __name__ == "__main__":
    unittest.main()
