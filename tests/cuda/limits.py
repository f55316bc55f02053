"""limits.csv: what no kernel may exceed, whatever the table of its figures says.

A row has patterns (* and ?) of kernels and architectures, a column of the figures, and the most that it may be. Of the
rows that fit a figure the first one decides. A row that decides nothing is a mistake, unless it is marked `planned`, for
a kernel to come; of architectures that the build lacks nothing is asked.
"""

from __future__ import annotations

import csv
import dataclasses
import pathlib
from collections.abc import Collection
from fnmatch import fnmatchcase

from figures import Key, Row


@dataclasses.dataclass(frozen=True)
class Limit:
    kernel: str
    arch: str
    column: str
    most: float
    mark: str  # planned, or nothing

    def __str__(self) -> str:
        return f"limit of {self.column} for {self.kernel} sm_{self.arch}"


def read(path: pathlib.Path) -> list[Limit]:
    with path.open(newline="") as file:
        return [Limit(row["kernel"], row["arch"], row["column"], float(row["most"]), row["mark"])
                for row in csv.DictReader(file)]


def problems(rows: dict[Key, Row], limits: list[Limit], columns: Collection[str]) -> list[str]:
    """Of the limits on `columns`, those that are exceeded, and those that limit nothing."""
    limits = [limit for limit in limits if limit.column in columns]
    found: list[str] = []
    decided: set[Limit] = set()
    for (kernel, arch), row in sorted(rows.items()):
        seen: set[str] = set()
        for limit in limits:
            if limit.column in seen or not fnmatchcase(kernel, limit.kernel) or not fnmatchcase(arch, limit.arch):
                continue
            seen.add(limit.column)
            decided.add(limit)
            figure = row.get(limit.column)
            if figure is None:
                found.append(f"{kernel} sm_{arch}: has no {limit.column}, which has a limit of {limit.most:g}")
            elif isinstance(figure, str) or figure > limit.most:
                found.append(f"{kernel} sm_{arch}: {limit.column} is {figure}, at most {limit.most:g} (limits.csv)")
    archs = {arch for _, arch in rows}
    for limit in limits:
        if limit.mark == "planned" and limit in decided:
            found.append(f"{limit}: there is such a kernel now; take away the mark 'planned'")
        elif limit.mark not in ("", "planned"):
            found.append(f"{limit}: mark is '{limit.mark}', expected 'planned' or nothing")
        elif not limit.mark and limit not in decided and any(fnmatchcase(arch, limit.arch) for arch in archs):
            found.append(f"{limit}: decides nothing; correct it, or mark it 'planned'")
    return found
