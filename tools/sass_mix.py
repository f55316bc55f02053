#!/usr/bin/env python3
"""Prints what the main loop of each kernel issues per matrix instruction, from its machine code.

    sass_mix.py build-cuda                       all kernels of a build
    sass_mix.py kernel.cubin -k sm80 --opcodes   one file (cubin, object, nvdisasm text), names that contain sm80
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys

from sass import cubin, mix, names


def print_table(analyses: list[mix.Analysis], labels: dict[str, str], opcodes: bool) -> None:
    width = max(len(labels[analysis.kernel.name]) for analysis in analyses)
    titles = "".join(f"{name:>{max(len(name) + 2, 7)}}" for name in mix.COLUMNS)
    print(f"{'kernel':<{width}}  arch  pass       {titles}  stall")
    for analysis in analyses:
        figures = analysis.figures()
        cells = "".join(f"{mix.text_of(figures[name]):>{max(len(name) + 2, 7)}}" for name in mix.COLUMNS)
        stall = f"{analysis.steady.stall / analysis.units:.2f}" if analysis.units and analysis.steady.stall else ""
        print(f"{labels[analysis.kernel.name]:<{width}}  {analysis.kernel.arch:>4}  {analysis.unit_text:<11}{cells}"
              f"  {stall:>5}")
        if opcodes:
            print_opcodes(analysis)
        for note in analysis.notes:
            print(f"    note: {note}")


def print_opcodes(analysis: mix.Analysis) -> None:
    for kind, number in analysis.steady.classes.most_common():
        opcodes = [f"{opcode} {n}" for (own, opcode), n in analysis.steady.opcodes.most_common() if own == kind]
        print(f"    {kind:<14} {number:>5}  {', '.join(opcodes)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=pathlib.Path, help="cubins, objects, listings, or folders of a build")
    parser.add_argument("-k", "--kernel", default="", help="only kernels whose name contains this")
    parser.add_argument("-a", "--arch", default="", help="only this architecture, such as 80")
    parser.add_argument("--opcodes", action="store_true", help="list what the main loops issue, opcode by opcode")
    options = parser.parse_args()

    kernels = cubin.kernels_of(options.files, arch=options.arch, stalls=True)
    labels = names.short_names([kernel.name for kernel in kernels])
    kernels = [kernel for kernel in kernels if options.kernel in kernel.name or options.kernel in labels[kernel.name]]
    if not kernels:
        print("no such kernel", file=sys.stderr)
        return 1
    analyses = sorted((mix.analyse(kernel) for kernel in kernels), key=lambda a: (labels[a.kernel.name], a.kernel.arch))
    print_table(analyses, labels, options.opcodes)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:  # the reader, head or less, went away
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
