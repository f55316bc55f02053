#!/usr/bin/env python3
"""Compares what every kernel takes of a GPU with the checked-in table, per architecture, and with absolute limits.

    resources.py --compiler 13.0.88 --objects a.cu.o ... [--only ptxas|code]        as a test
    resources.py --compiler 13.0.88 --objects a.cu.o ... --update [--reason WHY]    rewrites the table

Figures have two sources. `ptxas` is what the compiler said, which tests/cuda/log_ptxas.py keeps in OBJECT.ptxas:
registers of a thread, static shared memory of a block, spilled bytes. `code` is the machine code, taken out of the
objects (tools/sass): what one pass through the main loop issues per HMMA, or per FFMA where there is none, and the
instructions that spill. Besides, no compiler process may need more than 3 GiB.

A number may rise only together with a reason, which stands in its row from then on. Nothing may exceed limits.csv,
whatever the table says. Numbers belong to a compiler: with another nvcc than that of a table, only spills and memory are
checked.
"""

from __future__ import annotations

import argparse
import csv
import os
import pathlib
import re
import sys

import figures
import limits
from figures import Figure, Key, Row
from sass import cubin, mix

MOST_MEMORY_MIB = 3 * 1024
SOURCES = {"ptxas": ("registers", "shared"), "code": ("pass", *mix.COLUMNS)}
COLUMNS = tuple(column for columns in SOURCES.values() for column in columns)
LIMITED = (*(column for column in COLUMNS if column != "pass"), "spill_bytes")
SKIPPED = 77  # what CTest is told


def parse(column: str, text: str) -> Figure:
    if column == "pass":
        return text
    return None if text == "" else float(text) if "." in text else int(text)


def read_table(path: pathlib.Path) -> dict[Key, Row] | None:
    if not path.exists():
        return None
    with path.open(newline="") as file:
        return {(row["kernel"], row["arch"]): {**{c: parse(c, row[c]) for c in COLUMNS}, "reason": row["reason"]}
                for row in csv.DictReader(file)}


def natural(key: Key) -> tuple[str, int, str]:
    number = re.match(r"\d+", key[1])  # 90 before 100, and 90a between them
    return key[0], int(number[0]) if number else 0, key[1]


def write_table(path: pathlib.Path, table: dict[Key, Row]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["kernel", "arch", *COLUMNS, "reason"])
        for key in sorted(table, key=natural):
            writer.writerow([*key, *(mix.text_of(table[key].get(column)) for column in COLUMNS), table[key]["reason"]])


def pairs(rows: dict[Key, Row], table: dict[Key, Row]) -> list[tuple[str, Figure, Figure]]:
    """Name, figure of the table, figure of the build."""
    return [(f"{key[0]} sm_{key[1]}: {column}", table[key].get(column), rows[key][column])
            for key in sorted(rows.keys() & table.keys(), key=natural) for column in COLUMNS if column in rows[key]]


def growth(before: Figure, now: Figure) -> float | None:
    """None where one of them is no number."""
    return now - before if isinstance(before, (int, float)) and isinstance(now, (int, float)) else None


def risen(rows: dict[Key, Row], table: dict[Key, Row]) -> list[str]:
    return [f"{name} {mix.text_of(before)} -> {mix.text_of(now)}"
            for name, before, now in pairs(rows, table) if (growth(before, now) or 0) > 0]


def compare(rows: dict[Key, Row], table: dict[Key, Row]) -> tuple[list[str], list[str]]:
    """Problems, and remarks that are none."""
    archs = {arch for _, arch in rows}
    problems = [f"{rise}: make it less, or --update with a --reason" for rise in risen(rows, table)]
    problems += [f"{name} is '{mix.text_of(now)}', in the table '{mix.text_of(before)}'; --update"
                 for name, before, now in pairs(rows, table) if growth(before, now) is None and now != before]
    problems += [f"{kernel} sm_{arch}: not in the table; --update"
                 for kernel, arch in sorted(rows.keys() - table.keys())]
    problems += [f"{kernel} sm_{arch}: in the table, but not in the build; --update"
                 for kernel, arch in sorted(table.keys() - rows.keys()) if arch in archs]
    fallen = sum((growth(before, now) or 0) < 0 for _, before, now in pairs(rows, table))
    return problems, [f"{fallen} numbers are lower than in the table: --update takes them down"] if fallen else []


def updated(rows: dict[Key, Row], table: dict[Key, Row], reason: str) -> dict[Key, Row]:
    """The new table; what this build lacks of architectures and of figures stays."""
    archs = {arch for _, arch in rows}
    new = {key: row for key, row in table.items() if key[1] not in archs}
    for key, row in rows.items():
        before = table.get(key, {"reason": ""})
        rises = risen({key: row}, table)
        new[key] = {**before, **row, "reason": reason if rises else before["reason"]}
    return new


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--compiler", required=True, help="version of nvcc")
    parser.add_argument("--objects", nargs="+", required=True, help="objects of the kernel files")
    parser.add_argument("--tables", type=pathlib.Path, default=pathlib.Path(__file__).parent, help="folder of the tables")
    parser.add_argument("--only", choices=SOURCES, help="figures of this source alone")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--reason", default=os.environ.get("REASON", ""), help="why numbers had to rise")
    options = parser.parse_args(arguments)

    rows: dict[Key, Row] = {}
    memory = 0
    if options.only != "code":
        rows, memory = figures.of_ptxas(options.objects)
    if options.only != "ptxas":
        try:
            code = figures.of_code(options.objects)
        except cubin.MissingTool as missing:
            print(missing)
            return SKIPPED if not options.update else 1
        rows = {key: {**rows.get(key, {}), **code.get(key, {})} for key in rows.keys() | code.keys()}

    version = ".".join(options.compiler.split(".")[:2])
    path = options.tables / f"resources_nvcc_{version}.csv"
    table = read_table(path)
    bounds = limits.read(options.tables / "limits.csv")
    columns = {column for row in rows.values() for column in row}
    if table is None and not options.update:
        columns = {column for column in columns if column.startswith("spill")}
    problems = [f"{bound}: there is no column {bound.column}" for bound in bounds if bound.column not in LIMITED]
    problems += limits.problems(rows, bounds, columns)
    remarks = []
    if not rows:
        problems.append("no kernel in the build")
    if memory > MOST_MEMORY_MIB:
        problems.append(f"a compiler process took {memory} MiB, at most {MOST_MEMORY_MIB}")

    if options.update:
        rises = risen(rows, table or {})
        if rises and not options.reason:
            problems += [f"{rise}: a rise needs a --reason" for rise in rises]
        if not problems:
            write_table(path, updated(rows, table or {}, options.reason))
    elif table is None:
        remarks.append(f"there is no table for nvcc {version}: only spills are checked")
    else:
        found, remarks = compare(rows, table)
        problems += found

    for line in problems + remarks:
        print(line)
    print(f"{len(rows)} kernels x architectures, largest compiler process {memory} MiB, {len(problems)} problem(s)")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
