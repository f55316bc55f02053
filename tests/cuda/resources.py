#!/usr/bin/env python3
"""Compares what every kernel takes of a GPU with the checked-in table: registers of a thread, static shared memory of a
block, per architecture. Nothing may spill, whatever the table says; no compiler process may need more than 3 GiB.

    resources.py --compiler 13.0.88 --objects a.cu.o ...                            as a test
    resources.py --compiler 13.0.88 --objects a.cu.o ... --update [--reason WHY]    rewrites the table

A number may rise only together with a reason, which stands in its row from then on. Numbers belong to a compiler: with
another nvcc than that of a table, only spills and memory are checked. tests/cuda/log_ptxas.py made OBJECT.ptxas.
"""

import argparse
import csv
import os
import pathlib
import re
import subprocess
import sys

MOST_MEMORY_MIB = 3 * 1024
FIELDS = ("kernel", "arch", "registers", "shared", "reason")
RISING = ("registers", "shared")


def short_names(mangled):
    """void sorot::v0::attention::simt<sorot::v0::float16, 64, (bool)1>(Params) -> simt<float16, 64, 1>"""
    listing = subprocess.run(["c++filt", *mangled], check=True, capture_output=True, text=True).stdout.splitlines()
    names = {}
    for key, name in zip(mangled, listing):
        name = re.sub(r"\((?:unsigned )?\w+\)(?=-?\d)", "", name)
        name = re.sub(r"\b(?:\w+::)+", "", name.replace("(anonymous namespace)::", ""))
        name = name.removeprefix("void ")
        end = name.rfind(">") + 1 or name.find("(")
        names[key] = name[:end] if end > 0 else name
    return names


def measured(objects):
    """Rows {(mangled kernel, arch): {registers, shared, spills}} of the logs, and the largest process in MiB."""
    rows = {}
    memory = 0
    for path in objects:
        row = None
        for line in pathlib.Path(path + ".ptxas").read_text().splitlines():
            if match := re.search(r"Compiling entry function '(\w+)' for 'sm_(\w+)'", line):
                row = rows.setdefault(match.groups(), {"registers": 0, "shared": 0, "spills": 0})
            elif match := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line):
                row["spills"] += int(match[1]) + int(match[2])
            elif match := re.search(r"Used (\d+) registers", line):
                shared = re.search(r"(\d+) bytes smem", line)
                row["registers"] = int(match[1])
                row["shared"] = int(shared[1]) if shared else 0
            elif match := re.match(r"peak memory (\d+) MiB", line):
                memory = max(memory, int(match[1]))
    names = short_names(sorted({kernel for kernel, _ in rows})) if rows else {}
    return {(names[kernel], arch): row for (kernel, arch), row in rows.items()}, memory


def read_table(path):
    if not path.exists():
        return None
    with path.open(newline="") as file:
        return {(row["kernel"], row["arch"]): {**row, "registers": int(row["registers"]), "shared": int(row["shared"])}
                for row in csv.DictReader(file)}


def write_table(path, table):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        for (kernel, arch), row in sorted(table.items(), key=lambda item: (item[0][0], int(item[0][1]))):
            writer.writerow({"kernel": kernel, "arch": arch, **{field: row[field] for field in FIELDS[2:]}})


def spilling(rows):
    return [f"{kernel} sm_{arch}: spills {row['spills']} bytes (stores and loads), and may spill none"
            for (kernel, arch), row in sorted(rows.items()) if row["spills"]]


def risen(rows, table):
    return [f"{kernel} sm_{arch}: {field} {table[kernel, arch][field]} -> {row[field]}"
            for (kernel, arch), row in sorted(rows.items()) if (kernel, arch) in table
            for field in RISING if row[field] > table[kernel, arch][field]]


def compare(rows, table):
    """Problems, and remarks that are none."""
    archs = {arch for _, arch in rows}
    problems = [f"{rise}: make it less, or --update with a --reason" for rise in risen(rows, table)]
    problems += [f"{kernel} sm_{arch}: not in the table; --update" for kernel, arch in sorted(rows.keys() - table.keys())]
    problems += [f"{kernel} sm_{arch}: in the table, but not in the build; --update"
                 for kernel, arch in sorted(table.keys() - rows.keys()) if arch in archs]
    fallen = sum(row[field] < table[key][field] for key, row in rows.items() if key in table for field in RISING)
    return problems, [f"{fallen} numbers are lower than in the table: --update takes them down"] if fallen else []


def updated(rows, table, reason):
    """The new table; rows of architectures that this build lacks stay."""
    archs = {arch for _, arch in rows}
    new = {key: row for key, row in table.items() if key[1] not in archs}
    for key, row in rows.items():
        before = table.get(key)
        rises = before is not None and any(row[field] > before[field] for field in RISING)
        new[key] = {**row, "reason": reason if rises else before["reason"] if before else ""}
    return new


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--compiler", required=True, help="version of nvcc")
    parser.add_argument("--objects", nargs="+", required=True, help="objects of the kernel files")
    parser.add_argument("--tables", type=pathlib.Path, default=pathlib.Path(__file__).parent, help="folder of the tables")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--reason", default=os.environ.get("REASON", ""), help="why numbers had to rise")
    options = parser.parse_args()

    version = ".".join(options.compiler.split(".")[:2])
    path = options.tables / f"resources_nvcc_{version}.csv"
    rows, memory = measured(options.objects)
    table = read_table(path)
    problems = spilling(rows)
    remarks = []
    if not rows:
        problems.append("no kernel in the logs of the build")
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
    sys.exit(main())
