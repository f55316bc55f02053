"""Counts of instructions by class, and the main loop of a kernel.

The unit of work is the matrix instruction, or FFMA in a kernel without any. The main loop is the innermost one with the
most units; of several, the one with the fewest other instructions. What is counted is its steady pass: of all paths
through the loop the one with the most units, then the most copies into shared memory, then the fewest instructions.
That is an iteration in mid-stream, which prefetches, and passes by the masks of edge tiles.
"""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Iterable

from sass.flow import Flow, Loop, Weight, flow_of, heaviest_path, loops_of
from sass.listing import Instruction, Kernel

Figure = float | int | None
COLUMNS = ("loop", "fp32", "compare", "mufu", "pack", "ldsm", "ldgsts", "lds", "integer", "spills_loop",
           "spills_outside")

COPIES = ("LDGSTS", "UTMALDG", "UBLKCP")
CLASSES = {
    "mma": "HMMA IMMA DMMA BMMA QMMA OMMA HGMMA IGMMA QGMMA BGMMA UTCHMMA UTCIMMA UTCQMMA UTCOMMA UTCMXQMMA",
    "fp32": "FFMA FMUL FADD FMNMX FMNMX3 FFMA32I FMUL32I FADD32I FFMA2 FMUL2 FADD2 FHADD FHFMA",
    "compare": "FSETP FSEL FSET FCHK",
    "mufu": "MUFU",
    "pack": "F2FP",
    "convert": "F2F F2I I2F I2FP I2I FRND F2IP I2IP",
    "half": "HADD2 HMUL2 HFMA2 HMNMX2 HSETP2 HSET2 HADD2_32I HFMA2_32I HMUL2_32I",
    "double": "DADD DMUL DFMA DSETP",
    "ldsm": "LDSM",
    "lds": "LDS STS STSM ATOMS STAS",
    "ldgsts": "LDGSTS",
    "tensor memory": "UTMALDG UTMASTG UTMAREDG UTMAPF UTMACCTL UTMACMDFLUSH UBLKCP UBLKRED UBLKPF UTCCP LDT STT LDTM"
                     " STTM",
    "global": "LDG STG LD ST LDC LDCU ULDC RED REDG ATOM ATOMG CCTL CCTLL QSPC",
    "spill": "LDL STL",
    "shuffle": "SHFL VOTE VOTEU MATCH REDUX CREDUX",
    "sync": "BAR BARRIER DEPBAR LDGDEPBAR MEMBAR ERRBAR SYNCS WARPGROUP WARPSYNC FENCE ARRIVES UCGABAR_ARV UCGABAR_WAIT"
            " ACQBULK ACQSHMINIT UTCBAR UTCATOMSWS ELECT USETMAXREG PREEXIT",
    "integer": "IADD IADD3 IADD32I IADD64 IMAD IMAD32I IMUL LEA LOP LOP3 LOP32I SHF SHL SHR ISETP ISETP64 IMNMX IMNMX3"
               " SEL PRMT VIADD VIADDMNMX VIMNMX VIMNMX3 VHMNMX IABS POPC FLO BREV BMSK SGXT IDP IDP4A LEPC VABSDIFF"
               " VABSDIFF4",
    "move": "MOV MOV32I MOV64IUR UMOV CS2R S2R S2UR R2UR UR2R CS2UR R2B B2R MOVM",
    "predicate": "R2P P2R PLOP3 UPLOP3 PSETP UP2UR UR2UP R2UP UP2R UPSETP",
    "control": "BRA BRX BRXU JMP JMX JMXU CALL RET EXIT BSSY BSYNC BREAK BMOV NOP YIELD NANOSLEEP KILL BPT RPCMOV"
               " COLLECTIVE ENDCOLLECTIVE",
}
CLASS_OF = {name: kind for kind, names in CLASSES.items() for name in names.split()}


def class_of(instruction: Instruction) -> str:
    if instruction.never_executes:
        return "control"  # padding, but it takes an issue slot
    if instruction.opcode.startswith(("IMAD.MOV", "IMAD.U32")) and "RZ, RZ" in instruction.operands:
        return "move"
    if instruction.name == "HFMA2" and re.search(r"-?RZ, -?RZ,", instruction.operands):
        return "move"  # of a constant
    return CLASS_OF.get(instruction.name, "integer" if instruction.name.startswith("U") else "other")


@dataclasses.dataclass
class Mix:
    """Counts over some instructions."""

    total: int
    opcodes: collections.Counter[tuple[str, str]]  # (class, opcode)
    classes: collections.Counter[str]
    stall: int | None  # sum of the stall fields: cycles of one warp alone that never waits for a result

    @staticmethod
    def of(code: Iterable[Instruction]) -> Mix:
        code = list(code)
        opcodes = collections.Counter((class_of(instruction), instruction.opcode) for instruction in code)
        classes: collections.Counter[str] = collections.Counter()
        for (kind, _), number in opcodes.items():
            classes[kind] += number
        stalls = [instruction.stall for instruction in code if instruction.stall is not None]
        return Mix(len(code), opcodes, classes, sum(stalls) if stalls else None)


@dataclasses.dataclass
class Analysis:
    kernel: Kernel
    unit: str  # "HMMA" and the like, "FFMA", or "" if there is no loop with either
    units: int  # of the steady pass
    steady: Mix
    body: Mix  # all of the main loop, both sides of a branch
    whole: Mix
    notes: list[str] = dataclasses.field(default_factory=list)

    @property
    def unit_text(self) -> str:
        return f"{self.units} {self.unit}" if self.unit else ""

    def figures(self) -> dict[str, Figure]:
        """By column: what the steady pass issues per unit, None without a main loop; of spills how many there are."""
        def per_unit(*kinds: str) -> Figure:
            return round(sum(self.steady.classes[kind] for kind in kinds) / self.units, 3) if self.units else None

        spills = self.body.classes["spill"]
        return {
            "loop": per_unit(*self.steady.classes),
            **{kind: per_unit(kind) for kind in ("fp32", "compare", "mufu", "pack", "ldsm", "ldgsts", "lds")},
            "integer": per_unit("integer", "move", "predicate"),
            "spills_loop": spills,
            "spills_outside": self.whole.classes["spill"] - spills,
        }


def text_of(figure: Figure | str) -> str:
    return "" if figure is None else f"{figure:.3f}" if isinstance(figure, float) else str(figure)


def weights_of(flow: Flow, unit: str) -> list[Weight]:
    """Of each block: units, copies, and the other instructions, which weigh against it."""
    def weight(block: list[Instruction]) -> Weight:
        units = sum(class_of(i) == "mma" if unit == "mma" else i.name == unit for i in block)
        return units, sum(i.name in COPIES for i in block), -len(block)

    return [weight(block) for block in flow.blocks]


def main_loop(loops: list[Loop], weights: list[Weight]) -> Loop | None:
    def rank(loop: Loop) -> tuple[int, int]:
        return sum(weights[block][0] for block in loop.body), sum(weights[block][2] for block in loop.body)

    working = [loop for loop in loops if rank(loop)[0]]
    innermost = [loop for loop in working if not any(other.body < loop.body for other in working)]
    return max(innermost, key=rank, default=None)


def analyse(kernel: Kernel) -> Analysis:
    flow = flow_of(kernel.code)
    loops = loops_of(flow)
    result = Analysis(kernel, "", 0, Mix.of([]), Mix.of([]), Mix.of(kernel.code))
    for unit in ("mma", "FFMA"):
        weights = weights_of(flow, unit)
        if main := main_loop(loops, weights):
            path = heaviest_path(flow, main, weights)
            result.steady = Mix.of(flow.instructions(path))
            result.body = Mix.of(flow.instructions(main.body))
            result.units = sum(weights[block][0] for block in path)
            result.unit = next(i.name for i in flow.instructions(path) if unit in (i.name, class_of(i)))
            break
    if result.whole.classes["other"]:
        unknown = {i.name for i in kernel.code if class_of(i) == "other"}
        result.notes.append("opcodes without a class: " + " ".join(sorted(unknown)))
    if any(i.name in ("BRX", "JMX", "BRXU", "JMXU") for i in kernel.code):
        result.notes.append("has indirect branches, which are not followed")
    return result
