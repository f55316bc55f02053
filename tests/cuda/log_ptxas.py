#!/usr/bin/env python3
"""Runs a compilation of a kernel file and keeps what ptxas says of it: OBJECT.ptxas beside OBJECT.

    log_ptxas.py nvcc ... -o OBJECT

A compiler launcher of CMake. Asks ptxas for its figures, takes them out of the compiler's output, and adds the memory
of the largest process. tests/cuda/resources.py reads the file.
"""

import pathlib
import re
import resource
import subprocess
import sys

FIGURES = re.compile(r"ptxas info|\s+\d+ bytes stack frame, |Compiling entry function")


def main(command):
    target = pathlib.Path(command[command.index("-o") + 1] + ".ptxas")
    target.unlink(missing_ok=True)
    compiled = subprocess.run([*command, "-Xptxas=-v"], stderr=subprocess.PIPE, text=True)
    lines = compiled.stderr.splitlines(keepends=True)
    sys.stderr.writelines(line for line in lines if not FIGURES.match(line))
    kilobytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    figures = [line for line in lines if FIGURES.match(line)]
    target.write_text("".join([*figures, f"peak memory {kilobytes // 1024} MiB\n"]))
    return compiled.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
