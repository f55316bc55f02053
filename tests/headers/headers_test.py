"""Compiles every public header by itself, twice included, and the cases of refused.cpp, in C++17 and C++20."""

import argparse
import os
import pathlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

STANDARDS = ("c++17", "c++20")
FLAGS = ("-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wsign-conversion", "-Werror")


def compile_text(options, standard, text, *flags):
    """(succeeded, messages) for a source text."""
    command = [options.compiler, f"-std={standard}", *FLAGS, "-I", str(options.include), *flags, "-x", "c++", "-"]
    result = subprocess.run(command, input=text, capture_output=True, text=True)
    return result.returncode == 0, result.stderr


def header_alone(options, standard, header):
    include = f'#include "{header.relative_to(options.include)}"\n'
    good, messages = compile_text(options, standard, include * 2)
    return None if good else f"{header.name} does not compile alone as {standard}:\n{messages}"


def refused_case(options, standard, number, expected):
    """The same source compiles as case 0 and must not compile as this one, for the reason its comment gives."""
    good, messages = compile_text(options, standard, options.refused.read_text(), f"-DREFUSED={number}")
    if number == 0:
        return None if good else f"{options.refused.name} should compile as {standard}:\n{messages}"
    if good:
        return f"{options.refused.name}: case {number} should not compile as {standard}"
    if not re.search(expected, messages):
        return f"{options.refused.name}: case {number} fails, but not by /{expected}/:\n{messages}"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--include", type=pathlib.Path, required=True)
    parser.add_argument("--refused", type=pathlib.Path, required=True)
    options = parser.parse_args()

    headers = sorted(options.include.rglob("*.h"))
    refused = re.findall(r"REFUSED == (\d+)\s+// fails by: (.*)", options.refused.read_text())
    if not headers or not refused:
        sys.exit("found no headers or no refused cases")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        tasks = [pool.submit(header_alone, options, s, header) for s in STANDARDS for header in headers]
        tasks += [pool.submit(refused_case, options, s, int(number), expected)
                  for s in STANDARDS for number, expected in [(0, ""), *refused]]
        problems = [problem for problem in (task.result() for task in tasks) if problem]
    print("\n".join(problems))
    print(f"{len(tasks)} compilations, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
