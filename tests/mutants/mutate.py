#!/usr/bin/env python3
"""Makes a copy of the kernels in which every mutant of them sleeps, and a table of the mutants.

    mutate.py SOURCE_TREE OUTPUT_FOLDER [--mutants FILE]

A mutant is one small mistake. All of them go into one copy, so that one compilation serves them all: an expression
becomes `(mutants::is(7) ? (mistake) : (text))`, a statement `{ if (mutants::is(7)) { mistake } else { text } }`, and the
program wakes one at a time. There are two kinds:

  by hand     of mutants.txt, whose head says how it is written; a text must be there exactly once
  mechanical  every barrier, wait, commit and fence in cuda/attention and cuda/tile: deleted, and replaced by a weaker one

Writes cuda/attention and cuda/tile below OUTPUT_FOLDER, lines numbered as in the original, and mutants.tsv: number,
name, kind, kernels that it may be in, file:line, text, mistake.
"""

import argparse
import pathlib
import re
import shutil
import sys

FOLDERS = ("attention", "tile")
HERE = pathlib.Path(__file__).resolve().parent

SYNC = re.compile(r"machine::(sync_block_or|sync_block|sync_warp|sync_named|arrive_named|cp_async_wait<[^>]*>"
                  r"|cp_async_commit|fence_block|fence_device)\(")


class Mutant:
    """`begin` .. `end` of a file becomes `mistake`; nothing there: `mistake` is put in."""

    def __init__(self, name, kind, kernel, file, begin, end, mistake):
        self.name, self.kind, self.kernel, self.file = name, kind, kernel, file
        self.begin, self.end, self.mistake = begin, end, mistake
        self.number = 0


def fail(message):
    sys.exit(f"mutate.py: {message}")


def blocks_of(path):
    """The entries of mutants.txt: (line, {name, kind, kernel, file, text, with})."""
    entry, key = None, None
    for number, line in enumerate(path.read_text().split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if head := re.fullmatch(r"(\w+): (.+?), (attention_\w+|any)", line):
            if entry:
                yield entry
            entry, key = {"line": number, "name": head[1], "kind": head[2], "kernel": head[3]}, None
        elif field := re.fullmatch(r"  (file|text|with) *(.*)", line):
            key = field[1]
            if entry is None or key in entry:
                fail(f"{path.name}:{number}: '{key}' out of place")
            entry[key] = field[2]
        elif entry and key and line.startswith("    "):
            entry[key] += "\n" + line.strip()
        else:
            fail(f"{path.name}:{number}: expected 'name: kind, kernel', or an indented 'file', 'text' or 'with'")
    if entry:
        yield entry


def pattern_of(text):
    """The text, with any white space where it has some."""
    return r"\s+".join(re.escape(word) for word in text.split())


def by_hand(sources, path):
    for entry in blocks_of(path):
        where = f"{path.name}:{entry['line']}: {entry['name']}"
        for key in ("file", "text", "with"):
            if key not in entry:
                fail(f"{where} has no '{key}'")
        if entry["file"] not in sources:
            fail(f"{where}: there is no cuda/{entry['file']}")
        if entry["text"].count("@") != 2:
            fail(f"{where}: the text has {entry['text'].count('@')} marks '@', expected two")
        before, marked, after = entry["text"].split("@")
        # White space belongs to the context, not to what is between the marks.
        glue = lambda a, b: r"\s+" if a[-1:].isspace() or b[:1].isspace() else r"\s*"
        pattern = re.compile("".join((
            pattern_of(before), glue(before, marked) if before.strip() else "", f"({pattern_of(marked)})",
            glue(marked, after) if after.strip() else "", pattern_of(after))))
        found = list(pattern.finditer(sources[entry["file"]]))
        if len(found) != 1:
            fail(f"{where}: its text is {len(found)} times in cuda/{entry['file']}, expected once: {entry['text']!r}")
        begin, end = found[0].span(1)
        yield Mutant(entry["name"], entry["kind"], entry["kernel"], entry["file"], begin, end, entry["with"])


def function_at(text, position):
    """Name of the function that a position is in."""
    name = "?"
    for head in re.finditer(r"^ *(?:template *<|(?:static |inline )*(?:__device__|__global__))[^{;]*\{", text[:position], re.M):
        declarator = re.sub(r"__launch_bounds__\((?:[^()]|\([^()]*\))*\)", "", head[0])
        if found := re.search(r"(\w+)\(", declarator):
            name = found[1]
    return name


def closing(text, opening):
    """The position behind the parenthesis that closes the one at `opening`."""
    depth = 0
    for position in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        if depth == 0:
            return position + 1
    return fail("a parenthesis is never closed")


def weaker_calls(call, arguments):
    """What stands for a call: (what was done, expression of the same type)."""
    if call == "sync_block":
        return [("deleted", "void()"), ("is sync_warp", "machine::sync_warp()")]
    if call == "sync_block_or":  # its value must stay: that of the thread, of the warp, or the careful one
        return [("deleted, own predicate", f"static_cast<bool>({arguments})"),
                ("is any", f"machine::any({arguments})"),
                ("deleted, true", f"(static_cast<void>({arguments}), true)")]
    if call.startswith("cp_async_wait"):
        pending = call[len("cp_async_wait<"):-1]
        return [("deleted", "void()"), ("one group more pending", f"machine::cp_async_wait<({pending}) + 1>()")]
    return [("deleted", "void()")]


def mechanical(sources):
    for file, text in sources.items():
        counts = {}
        code = re.sub(r"//[^\n]*", lambda comment: " " * len(comment[0]), text)
        for match in SYNC.finditer(code):
            call, end = match[1], closing(text, match.end() - 1)
            function = function_at(code, match.start())
            counts[function, call] = counts.get((function, call), 0) + 1
            kernel = re.match(r"attention/(attention_simt|attention_sm80)", file)
            for done, mistake in weaker_calls(call, text[match.end():end - 1]):
                name = f"{file.split('/')[-1]}, {function}, {call} {counts[function, call]} {done}"
                yield Mutant(name, "mechanical", kernel[1] if kernel else "any", file, match.start(), end, mistake)


def switched(text, begin, end, mutants):
    """text[begin:end] with its mutants asleep in it. Mutants may lie within each other, but not across."""
    parts, position = [], begin
    spans = sorted({(m.begin, m.end) for m in mutants}, key=lambda span: (span[0], -span[1]))
    while spans:
        first, last = spans[0]
        inner = [m for m in mutants if first <= m.begin and m.end <= last and (m.begin, m.end) != (first, last)]
        across = [m for m in mutants if first < m.begin < last < m.end]
        if across:
            fail(f"'{across[0].name}' and another mutant overlap")
        original = switched(text, first, last, inner)
        for m in [m for m in mutants if (m.begin, m.end) == (first, last)]:
            mistake = " ".join(m.mistake.split("\n"))
            if first == last:
                original = f"if (::mutants::is({m.number})) {{ {mistake} }} {original}"
            elif text[last - 1] == ";":
                original = f"{{ if (::mutants::is({m.number})) {{ {mistake} }} else {{ {original} }} }}"
            else:
                original = f"(::mutants::is({m.number}) ? ({mistake}) : ({original}))"
        parts += [text[position:first], original]
        position = last
        spans = [span for span in spans if span[0] >= last and span != (first, last)]
        mutants = [m for m in mutants if (m.begin, m.end) in spans]
    parts.append(text[position:end])
    return "".join(parts)


def one_line(text):
    return " ".join(text.split())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tree", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--mutants", type=pathlib.Path, default=HERE / "mutants.txt")
    arguments = parser.parse_args()

    folder = arguments.tree / "cuda"
    files = sorted(f for name in FOLDERS for f in (folder / name).glob("*.*") if f.suffix in (".cuh", ".h"))
    sources = {f.relative_to(folder).as_posix(): f.read_text() for f in files}
    mutants = [*by_hand(sources, arguments.mutants), *mechanical(sources)]
    names = [m.name for m in mutants]
    for name in names:
        if names.count(name) > 1:
            fail(f"two mutants are called '{name}'")
    lines = []
    for number, m in enumerate(mutants, 1):
        m.number = number
        text = sources[m.file]
        line = text.count("\n", 0, m.begin) + 1
        lines.append("\t".join((str(number), m.name, m.kind, m.kernel, f"{m.file}:{line}",
                                one_line(text[m.begin:m.end]), one_line(m.mistake))))
    shutil.rmtree(arguments.output, ignore_errors=True)  # a file of before would hide the one it was copied from
    for file, text in sources.items():
        to = arguments.output / "cuda" / file
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(switched(text, 0, len(text), [m for m in mutants if m.file == file]))
    (arguments.output / "mutants.tsv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
