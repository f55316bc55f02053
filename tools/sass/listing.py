"""Reads the text of `nvdisasm -c [-hex]` or of `cuobjdump -sass`: kernels and their instructions."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable

FUNCTION = re.compile(r"\s*Function\s*:\s*(\S+)|\s*\.section\s+\.text\.([^\s,]+)")
ARCHITECTURE = re.compile(r"code for sm_(\w+)|EF_CUDA_SM(\d+)|\.target\s+sm_(\w+)")
LABEL = re.compile(r"\s*(\.L[\w.$]*|\$?[\w.$]+):\s*$")
INSTRUCTION = re.compile(r"\s*/\*([0-9a-fA-F]{4,})\*/\s+(?:\{\s*)?(?:@(!?U?P(?:T|\d+))\s+)?"
                         r"([A-Z][A-Z0-9_]*(?:\.\w+)*)\s*([^;]*);")
SECOND_HALF = re.compile(r"\s*/\*\s*0x([0-9a-f]{16})\s*\*/\s*$")
ALWAYS = ("", "PT", "UPT")
NEVER = ("!PT", "!UPT")


@dataclasses.dataclass(slots=True)
class Instruction:
    address: int
    guard: str  # predicate in front of it, "" if none
    opcode: str  # with modifiers: HMMA.16816.F32.BF16
    operands: str
    target: int | None = None  # of a branch, BSSY or call, where the text gives it
    stall: int | None = None  # cycles until the next one may issue, the least; with -hex only
    name: str = dataclasses.field(init=False)  # the opcode without modifiers

    def __post_init__(self) -> None:
        self.name = self.opcode.partition(".")[0]

    @property
    def never_executes(self) -> bool:
        return self.guard in NEVER

    @property
    def always_executes(self) -> bool:
        return self.guard in ALWAYS


@dataclasses.dataclass
class Kernel:
    name: str  # mangled
    arch: str  # 80, 90a; "" if the text does not say
    code: list[Instruction]


def read(lines: Iterable[str]) -> list[Kernel]:
    kernels: list[Kernel] = []
    labels: dict[str, int] = {}
    waiting: list[str] = []  # labels of the instruction to come
    jumps: list[tuple[Instruction, str]] = []
    arch = ""

    def resolve() -> None:
        for instruction, label in jumps:
            instruction.target = labels.get(label)
        labels.clear()
        waiting.clear()
        jumps.clear()

    for line in lines:
        if match := INSTRUCTION.match(line):
            if not kernels:
                kernels.append(Kernel("(unnamed)", arch, []))
            instruction = Instruction(int(match[1], 16), match[2] or "", match[3], match[4].strip())
            kernels[-1].code.append(instruction)
            labels.update((label, instruction.address) for label in waiting)
            waiting.clear()
            if label := re.search(r"`\(([^)]+)\)", instruction.operands):
                jumps.append((instruction, label[1]))
            elif instruction.name in ("BRA", "JMP", "CALL", "BSSY"):
                if address := re.search(r"(?<![\w\[])0x([0-9a-f]+)$", instruction.operands):
                    instruction.target = int(address[1], 16)
        elif match := SECOND_HALF.match(line):
            if kernels and kernels[-1].code:
                kernels[-1].code[-1].stall = int(match[1], 16) >> 41 & 15
        elif match := ARCHITECTURE.search(line):
            arch = match[1] or match[2] or match[3]
            if kernels and not kernels[-1].code:
                kernels[-1].arch = arch
        elif match := FUNCTION.match(line):
            resolve()
            kernels.append(Kernel(match[1] or match[2], arch, []))
        elif match := LABEL.match(line):
            waiting.append(match[1])
    resolve()
    return [kernel for kernel in kernels if kernel.code]
