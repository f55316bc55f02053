"""What a build's kernels take of a GPU: rows {(kernel, arch): {column: figure}} out of its objects."""

from __future__ import annotations

import pathlib
import re
import sys
from collections.abc import Iterable, Mapping

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from sass import cubin, mix, names

Key = tuple[str, str]
Figure = float | int | str | None
Row = dict[str, Figure]


def named(rows: Mapping[Key, Mapping[str, Figure]]) -> dict[Key, Row]:
    short = names.short_names(kernel for kernel, _ in rows)
    return {(short[kernel], arch): dict(row) for (kernel, arch), row in rows.items()}


def of_ptxas(objects: Iterable[str]) -> tuple[dict[Key, Row], int]:
    """Registers, shared memory and spilled bytes from the logs beside the objects; the largest process in MiB."""
    rows: dict[Key, dict[str, int]] = {}
    memory = 0
    for path in objects:
        row: dict[str, int] = {}
        for line in pathlib.Path(path + ".ptxas").read_text().splitlines():
            if match := re.search(r"Compiling entry function '(\w+)' for 'sm_(\w+)'", line):
                row = rows.setdefault((match[1], match[2]), {"registers": 0, "shared": 0, "spill_bytes": 0})
            elif match := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line):
                row["spill_bytes"] += int(match[1]) + int(match[2])
            elif match := re.search(r"Used (\d+) registers", line):
                shared = re.search(r"(\d+) bytes smem", line)
                row["registers"] = int(match[1])
                row["shared"] = int(shared[1]) if shared else 0
            elif match := re.match(r"peak memory (\d+) MiB", line):
                memory = max(memory, int(match[1]))
    return named(rows), memory


def of_code(objects: Iterable[str]) -> dict[Key, Row]:
    """What the main loop issues, and the spills. Raises cubin.MissingTool."""
    kernels = cubin.kernels_of(map(pathlib.Path, objects))
    analyses = map(mix.analyse, kernels)
    return named({(a.kernel.name, a.kernel.arch): {"pass": a.unit_text, **a.figures()} for a in analyses})
