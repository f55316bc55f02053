"""Basic blocks of a kernel, its natural loops, and the path that a loop takes in mid-stream.

A loop is what dominators and back edges say, not a range of addresses: a body laid out in several pieces is found
whole, and straight-line code is not mistaken for a loop. Back edges to one header make one loop.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterator

from sass.listing import Instruction

Weight = tuple[int, ...]


@dataclasses.dataclass
class Loop:
    header: int  # block
    latches: set[int]  # blocks that end with a back edge
    body: set[int]


@dataclasses.dataclass
class Flow:
    blocks: list[list[Instruction]]  # in the order of the text; the kernel begins with the first
    successors: list[list[int]]

    def instructions(self, blocks: set[int] | list[int]) -> Iterator[Instruction]:
        for block in sorted(blocks) if isinstance(blocks, set) else blocks:
            yield from self.blocks[block]


def flow_of(code: list[Instruction]) -> Flow:
    index = {instruction.address: i for i, instruction in enumerate(code)}
    meetings: dict[str, set[int]] = collections.defaultdict(set)  # where a BSYNC on a barrier goes on
    for instruction in code:
        if instruction.name == "BSSY" and instruction.target in index:
            meetings[instruction.operands.partition(",")[0]].add(index[instruction.target])

    def after(i: int) -> list[int]:
        instruction = code[i]
        following = [i + 1] if i + 1 < len(code) else []
        if instruction.never_executes:
            return following
        target = [index[instruction.target]] if instruction.target in index else []
        conditional = not instruction.always_executes
        match instruction.name:
            case "BRA" | "JMP":
                conditions = [operand.strip() for operand in instruction.operands.split(",")[:-1]]
                conditional |= any(condition not in ("PT", "UPT") for condition in conditions)
                conditional |= ".DIV" in instruction.opcode or ".CONV" in instruction.opcode
                return target + (following if conditional else [])
            case "CALL":
                return target + following
            case "BRX" | "JMX" | "BRXU" | "JMXU" | "EXIT" | "RET" | "KILL":
                return following if conditional else []
            case "BSYNC":
                meeting = meetings[instruction.operands.partition(",")[0]]
                return following if not meeting or meeting & {i, *following} else sorted(meeting)
        return following

    jumps = {i: successors for i in range(len(code)) if (successors := after(i)) != [i + 1]}
    starts = {0, *(i + 1 for i in jumps if i + 1 < len(code)), *(s for successors in jumps.values() for s in successors)}
    bounds = [*sorted(starts), len(code)]
    number = {start: block for block, start in enumerate(bounds[:-1])}
    return Flow(blocks=[code[begin:end] for begin, end in zip(bounds, bounds[1:])],
                successors=[[number[s] for s in after(end - 1)] for end in bounds[1:]])


def postorder(successors: list[list[int]], start: int, within: set[int] | None = None) -> list[int]:
    """Of the blocks that `start` reaches; successors come first, but for those of back edges."""
    order: list[int] = []
    seen = {start}
    stack = [(start, iter(successors[start]))]
    while stack:
        block, rest = stack[-1]
        for successor in rest:
            if successor not in seen and (within is None or successor in within):
                seen.add(successor)
                stack.append((successor, iter(successors[successor])))
                break
        else:
            order.append(block)
            stack.pop()
    return order


def dominators(successors: list[list[int]]) -> tuple[dict[int, int], dict[int, list[int]]]:
    """The immediate dominator of each block that is reached, and its predecessors. Cooper, Harvey, Kennedy 2001."""
    order = postorder(successors, 0)[::-1]
    position = {block: i for i, block in enumerate(order)}
    predecessors: dict[int, list[int]] = collections.defaultdict(list)
    for block in order:
        for successor in successors[block]:
            predecessors[successor].append(block)

    def common(a: int, b: int) -> int:
        while a != b:
            while position[a] > position[b]:
                a = dominator[a]
            while position[b] > position[a]:
                b = dominator[b]
        return a

    dominator = {0: 0}
    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            known = [p for p in predecessors[block] if p in dominator]
            new = known[0]
            for p in known[1:]:
                new = common(p, new)
            if dominator.get(block) != new:
                dominator[block] = new
                changed = True
    return dominator, predecessors


def loops_of(flow: Flow) -> list[Loop]:
    dominator, predecessors = dominators(flow.successors)

    def dominates(a: int, b: int) -> bool:
        while b != a and b != dominator[b]:
            b = dominator[b]
        return a == b

    latches: dict[int, set[int]] = collections.defaultdict(set)
    for block in dominator:
        for successor in flow.successors[block]:
            if dominates(successor, block):
                latches[successor].add(block)
    loops = []
    for header, ends in latches.items():
        body = {header}
        pending = list(ends)
        while pending:
            block = pending.pop()
            if block not in body:
                body.add(block)
                pending += predecessors[block]
        loops.append(Loop(header, ends, body))
    return sorted(loops, key=lambda loop: loop.header)


def heaviest_path(flow: Flow, loop: Loop, weights: list[Weight]) -> list[int]:
    """Of the paths from the header to a latch the one whose blocks weigh most together; inner loops are passed once."""
    order = postorder(flow.successors, loop.header, loop.body)
    rank = {block: i for i, block in enumerate(order)}
    best: dict[int, tuple[Weight, list[int]]] = {}
    for block in order:
        own = weights[block]
        tails = [best[s] for s in flow.successors[block] if s in best and rank[s] < rank[block]]
        if block in loop.latches:
            tails.append((tuple(0 for _ in own), []))
        if tails:
            value, path = max(tails, key=lambda tail: tail[0])
            best[block] = (tuple(map(sum, zip(own, value))), [block, *path])
    return best[loop.header][1]
