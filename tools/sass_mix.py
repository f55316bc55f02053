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


def print_table(analyses: list[mix.Analysis], labels: dict[str, str]) -> None:
    width = max(len(labels[analysis.kernel.name]) for analysis in analyses)
    titles = [name.replace("spills_", "sp_") for name in mix.COLUMNS]
    print(f"{'kernel':<{width}} arch  units      {' '.join(f'{title:>7}' for title in titles)}  stall")
    for analysis in analyses:
        figures = ["" if value is None else f"{value:.3f}" if isinstance(value, float) else f"{value}"
                   for value in analysis.figures().values()]
        stall = f"{analysis.steady.stall / analysis.units:.2f}" if analysis.units and analysis.steady.stall else ""
        units = f"{analysis.units} {analysis.unit}" if analysis.unit else "no loop"
        print(f"{labels[analysis.kernel.name]:<{width}} {analysis.kernel.arch:>4}  {units:<10} "
              f"{' '.join(f'{figure:>7}' for figure in figures)}  {stall:>5}")
        for note in analysis.notes:
            print(f"  note: {note}")


def print_opcodes(analysis: mix.Analysis) -> None:
    for kind, number in analysis.steady.classes.most_common():
        opcodes = [f"{opcode} {n}" for opcode, n in analysis.steady.opcodes.most_common()
                   if mix.CLASS_OF.get(opcode.partition(".")[0], "other") == kind]
        print(f"    {kind:<14} {number:>5}  {', '.join(opcodes)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=pathlib.Path, help="cubins, objects, listings, or folders of a build")
    parser.add_argument("-k", "--kernel", default="", help="only kernels whose name contains this")
    parser.add_argument("-a", "--arch", default="", help="only this architecture, such as 80")
    parser.add_argument("--opcodes", action="store_true", help="list what the main loops issue, opcode by opcode")
    options = parser.parse_args()

    kernels = cubin.kernels_of(options.files, arch=options.arch)
    labels = names.short_names([kernel.name for kernel in kernels])
    kernels = [kernel for kernel in kernels if options.kernel in kernel.name or options.kernel in labels[kernel.name]]
    if not kernels:
        print("no such kernel", file=sys.stderr)
        return 1
    analyses = sorted((mix.analyse(kernel) for kernel in kernels), key=lambda a: (labels[a.kernel.name], a.kernel.arch))
    if options.opcodes:
        for analysis in analyses:
            print_table([analysis], labels)
            print_opcodes(analysis)
    else:
        print_table(analyses, labels)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:  # the reader, head or less, went away
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
