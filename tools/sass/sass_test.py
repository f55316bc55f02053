#!/usr/bin/env python3
"""Reading listings, finding loops, counting: on machine code small enough to be counted by hand."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from sass import flow, listing, mix

HEADER = """        .target        sm_{arch}
//--------------------- .text.{name} --------------------------
        .section        .text.{name},"ax",@progbits
        .align        128
        .global         {name}
.text.{name}:
"""


def kernel_text(code, name="_Z4gatePf", arch="80"):
    """What nvdisasm prints of instructions; a line that ends with a colon is a label."""
    lines = [HEADER.format(name=name, arch=arch)]
    address = 0
    for line in filter(None, map(str.strip, code.splitlines())):
        if line.endswith(":"):
            lines.append(f"{line}\n")
        else:
            guard, _, rest = line.partition(" ") if line.startswith("@") else ("", "", line)
            lines.append(f"        /*{address:04x}*/{guard:>20} {rest} ;\n")
            address += 16
    return "".join(lines)


def analyse(code):
    kernel, = listing.read(kernel_text(code).splitlines())
    return mix.analyse(kernel)


# Prefetch, tensor cores and softmax, twice the same body: first peeled off the loop, as compilers do.
BODY = """
    LDSM.16.M88.4 R4, [R2]
    HMMA.16816.F32.BF16 R4, R4, R6, R8
    HMMA.16816.F32.BF16 R8, R4, R6, R8
    FFMA R5, R4, R3, -R6
    MUFU.EX2 R5, R5
    F2FP.BF16.PACK_AB R4, R5, R4
    IMAD.MOV.U32 R9, RZ, RZ, R4
    IADD3 R2, R2, 0x10, RZ
"""
LOOP = f"""
    MOV R1, c[0x0][0x28]
    {BODY}
    STL [R1], R4
.L_x_0:
    @!P1 BRA `(.L_x_1)
    LDGSTS.E.BYPASS.LTC128B.128 [R2], [R4.64]
.L_x_1:
    {BODY}
    @!P2 BRA `(.L_x_2)
    FSEL R4, R4, -INF, P3
    FSEL R5, R5, -INF, P3
    LDL R6, [R1]
.L_x_2:
    FSETP.GT.AND P4, PT, R4, R5, PT
    @P0 BRA `(.L_x_0)
    LDL R4, [R1]
    EXIT
.L_x_3:
    BRA `(.L_x_3)
"""


class ListingTest(unittest.TestCase):
    def test_kernels_and_instructions(self):
        text = kernel_text("MOV R1, R2\nEXIT", "_Z1fv", "75")
        text += kernel_text("@!P0 BRA `(.L_x_0)\n.L_x_0:\nEXIT", "_Z1gv", "90a")
        first, second = listing.read(text.splitlines())
        self.assertEqual((first.name, first.arch, [i.opcode for i in first.code]), ("_Z1fv", "75", ["MOV", "EXIT"]))
        self.assertEqual((second.name, second.arch), ("_Z1gv", "90a"))
        branch = second.code[0]
        self.assertEqual((branch.guard, branch.target, branch.stall), ("!P0", 0x10, None))

    def test_text_of_cuobjdump(self):
        text = """
                code for sm_80
                Function : _Z4gatePf
        .headerflags        @"EF_CUDA_TEXMODE_UNIFIED EF_CUDA_64BIT_ADDRESS EF_CUDA_SM80"
        /*0000*/                   UIADD3 UR4, UR4, 0x1, URZ ;  /* 0x0000000104047890 */
                                                                /* 0x000fe4000fffe03f */
        /*0010*/              @!UP0 BRA 0x0 ;                   /* 0xfffffff000007947 */
                                                                /* 0x000fea000383ffff */
"""
        kernel, = listing.read(text.splitlines())
        self.assertEqual((kernel.name, kernel.arch), ("_Z4gatePf", "80"))
        self.assertEqual([(i.name, i.guard, i.target, i.stall) for i in kernel.code],
                         [("UIADD3", "", None, 2), ("BRA", "!UP0", 0, 5)])

    def test_nothing_to_read(self):
        self.assertEqual(listing.read(["no machine code"]), [])


class FlowTest(unittest.TestCase):
    def loops(self, code):
        kernel, = listing.read(kernel_text(code).splitlines())
        graph = flow.flow_of(kernel.code)
        return [[i.address for i in graph.instructions(loop.body)] for loop in flow.loops_of(graph)]

    def test_straight_code_has_no_loop(self):
        self.assertEqual(self.loops("MOV R1, R2\n@P0 EXIT\nMOV R2, R1\nEXIT"), [])

    def test_body_in_two_pieces(self):
        self.assertEqual(self.loops("""
            BRA `(.L_x_1)
        .L_x_0:
            MOV R1, R2
            BRA `(.L_x_2)
        .L_x_1:
            @P1 BRA `(.L_x_0)
        .L_x_2:
            @P0 BRA `(.L_x_1)
            EXIT"""), [[0x10, 0x20, 0x30, 0x40]])

    def test_two_back_edges_make_one_loop_and_inner_loops_are_found(self):
        self.assertEqual(self.loops("""
        .L_x_0:
            @P0 BRA `(.L_x_0)
        .L_x_1:
            MOV R1, R2
            @P1 BRA `(.L_x_1)
            @P2 BRA `(.L_x_0)
            EXIT"""), [[0x00, 0x10, 0x20, 0x30], [0x10, 0x20]])

    def test_what_never_jumps_and_where_threads_meet(self):
        self.assertEqual(self.loops(".L_x_0:\n@!PT BRA `(.L_x_0)\nEXIT"), [])
        self.assertEqual(self.loops("""
        .L_x_0:
            BSSY B0, `(.L_x_1)
            BSYNC B0
            EXIT
        .L_x_1:
            @P0 BRA `(.L_x_0)
            EXIT"""), [[0x00, 0x10, 0x30]])


class MixTest(unittest.TestCase):
    def test_steady_pass_prefetches_and_does_not_mask(self):
        analysis = analyse(LOOP)
        self.assertEqual(analysis.unit_text, "2 HMMA")
        self.assertEqual(analysis.steady.total, 2 + 8 + 1 + 2)
        self.assertEqual(analysis.body.total, 2 + 8 + 4 + 2)
        self.assertEqual(analysis.figures(), {
            "loop": 6.5, "fp32": 0.5, "compare": 0.5, "mufu": 0.5, "pack": 0.5, "ldsm": 0.5, "ldgsts": 0.5, "lds": 0.0,
            "integer": 1.0, "spills_loop": 1, "spills_outside": 2})
        self.assertEqual(tuple(analysis.figures()), mix.COLUMNS)
        self.assertEqual(analysis.notes, [])

    def test_main_loop_is_the_innermost_of_most_units(self):
        def loop(label, inside):
            return f".L_x_{label}:\n{inside}\n@P0 BRA `(.L_x_{label})\n"

        mma = "HMMA.16816.F32 R4, R4, R6, R8\n"
        inner = loop(0, mma) + loop(1, mma * 3 + "NOP") + loop(2, mma * 3)
        analysis = analyse(loop(3, mma * 4 + inner) + "EXIT")
        self.assertEqual((analysis.unit_text, analysis.steady.total), ("3 HMMA", 4))

    def test_ffma_counts_where_there_is_no_matrix_instruction_in_a_loop(self):
        analysis = analyse("""
            HMMA.16816.F32 R4, R4, R6, R8
        .L_x_0:
            FFMA R1, R2, R3, R1
            LDS.128 R4, [R5]
            FFMA R1, R2, R3, R1
            @P0 BRA `(.L_x_0)
            EXIT""")
        self.assertEqual(analysis.unit_text, "2 FFMA")
        self.assertEqual((analysis.figures()["loop"], analysis.figures()["lds"]), (2.0, 0.5))

    def test_without_a_loop_only_spills_count(self):
        figures = analyse("FFMA R1, R2, R3, R1\nSTL [R1], R2\nEXIT").figures()
        self.assertEqual((figures.pop("spills_loop"), figures.pop("spills_outside")), (0, 1))
        self.assertEqual(set(figures.values()), {None})

    def test_classes(self):
        for text, kind in {
            "IMAD.MOV.U32 R1, RZ, RZ, R2": "move",
            "IMAD.U32 R1, RZ, RZ, UR4": "move",
            "IMAD.WIDE R2, R1, 0x4, R2": "integer",
            "HFMA2.MMA R1, -RZ, RZ, 1, 1": "move",
            "HFMA2.BF16_V2 R1, R2, R3, R4": "half",
            "UIADD3 UR4, UR4, 0x1, URZ": "integer",
            "@!PT LDS RZ, [RZ]": "control",
            "FROB R1, R2": "other",
        }.items():
            kernel, = listing.read(kernel_text(text).splitlines())
            self.assertEqual(mix.class_of(kernel.code[0]), kind, text)
        self.assertEqual(analyse("FROB R1, R2\nBRX R2\nEXIT").notes,
                         ["opcodes without a class: FROB", "has indirect branches, which are not followed"])


if __name__ == "__main__":
    unittest.main()
