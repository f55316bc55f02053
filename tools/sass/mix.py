"""Counts of instructions by class, and the main loop of a kernel.

The unit of work is the matrix instruction, or FFMA in a kernel without any. The main loop is the innermost one with the
most units; of several, the one with the fewest other instructions. What is counted is its steady pass: of all paths
through the loop the one with the most units, then the most copies into shared memory, then the fewest instructions.
That is an iteration in mid-stream, which prefetches, and passes by the masks of edge tiles.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import re
from collections.abc import Iterable

from sass.flow import Flow, Loop, flow_of, heaviest_path, loops_of
from sass.listing import Instruction, Kernel

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
    "shared": "LDS STS STSM ATOMS STAS",
    "ldgsts": "LDGSTS",
    "tensor memory": "UTMALDG UTMASTG UTMAREDG UTMAPF UTMACCTL UTMACMDFLUSH UBLKCP UBLKRED UBLKPF UTCCP LDT STT LDTM STTM",
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
    classes: collections.Counter[str]
    opcodes: collections.Counter[str]
    stall: int | None  # sum of the stall fields: cycles of one warp alone that never waits for a result

    @staticmethod
    def of(code: Iterable[Instruction]) -> Mix:
        code = list(code)
        stalls = [instruction.stall for instruction in code]
        return Mix(len(code), collections.Counter(map(class_of, code)),
                   collections.Counter(instruction.opcode for instruction in code),
                   None if None in stalls else sum(stalls))


@dataclasses.dataclass
class Analysis:
    kernel: Kernel
    flow: Flow
    unit: str  # "HMMA" and the like, "FFMA", or "" if there is no loop with either
    units: int  # of the steady pass
    main: Loop | None
    steady: Mix
    body: Mix
    whole: Mix
    notes: list[str]

    def figures(self) -> dict[str, float | None]:
        """The columns of the table: of the steady pass per unit, except for the spills, which are instructions."""
        spills = self.body.classes["spill"]
        counts = {
            "loop": self.steady.total,
            **{kind: self.steady.classes[kind] for kind in ("fp32", "compare", "mufu", "pack", "ldsm", "ldgsts", "shared")},
            "integer": sum(self.steady.classes[kind] for kind in ("integer", "move", "predicate")),
        }
        return {**{name: round(count / self.units, 3) if self.units else None for name, count in counts.items()},
                "spills_loop": spills, "spills_outside": self.whole.classes["spill"] - spills}


COLUMNS = ("loop", "fp32", "compare", "mufu", "pack", "ldsm", "ldgsts", "shared", "integer", "spills_loop",
           "spills_outside")


def is_unit(unit: str, instruction: Instruction) -> bool:
    return class_of(instruction) == "mma" if unit == "mma" else instruction.name == unit


def count(unit: str, code: Iterable[Instruction]) -> int:
    return sum(is_unit(unit, instruction) for instruction in code)


def weight(unit: str, block: list[Instruction]) -> tuple[int, int, int]:
    return count(unit, block), sum(instruction.name in COPIES for instruction in block), -len(block)


def main_loop(flow: Flow, loops: list[Loop], unit: str) -> Loop | None:
    working = [loop for loop in loops if count(unit, flow.instructions(loop.body))]
    innermost = [loop for loop in working if not any(other.body < loop.body for other in working)]

    def rank(loop: Loop) -> tuple[int, int]:
        return count(unit, flow.instructions(loop.body)), -sum(1 for _ in flow.instructions(loop.body))

    return max(innermost, key=rank, default=None)


def analyse(kernel: Kernel) -> Analysis:
    flow = flow_of(kernel.code)
    loops = loops_of(flow)
    unit, main = next(((unit, loop) for unit in ("mma", "FFMA") if (loop := main_loop(flow, loops, unit))), ("", None))
    steady = body = Mix.of([])
    units = 0
    name = unit
    if main:
        path = heaviest_path(flow, main, functools.partial(weight, unit))
        code = list(flow.instructions(path))
        steady, body, units = Mix.of(code), Mix.of(flow.instructions(main.body)), count(unit, code)
        name = next(instruction.name for instruction in code if is_unit(unit, instruction))
    whole = Mix.of(kernel.code)
    notes = []
    if others := sorted({i.name for i in kernel.code if class_of(i) == "other"}):
        notes.append("opcodes without a class: " + " ".join(others))
    if any(i.name in ("BRX", "JMX", "BRXU", "JMXU") for i in kernel.code):
        notes.append("indirect branches, which are not followed")
    return Analysis(kernel, flow, name, units, main, steady, body, whole, notes)
