#!/usr/bin/env python3
"""The table that closes tools/gpu_check.sh: steps, and times beside those of others, from the JSON files of a run."""

from __future__ import annotations

import argparse
import json
import pathlib
from typing import Any

PEAK_OF = {"f16": "bf16", "bf16": "bf16", "f32": "f32"}  # which peak bounds the arithmetic of a dtype
MICROSECONDS = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}


def read(path: pathlib.Path) -> dict[str, Any]:
    """{} if the step that writes the file did not come so far."""
    try:
        report: dict[str, Any] = json.loads(path.read_text())
        return report
    except (FileNotFoundError, json.JSONDecodeError):
        return {}


def tests_of(folder: pathlib.Path, step: str) -> str:
    """What GoogleTest counted; a test that skipped itself has shown nothing."""
    reports = [read(path) for path in sorted(folder.glob(f"{step}.*.json"))]
    cases = [case for report in reports for suite in report.get("testsuites", []) for case in suite["testsuite"]]
    if not cases:
        return ""
    failed = [case for case in cases if case.get("failures")]
    skipped = sum(case.get("result") == "SKIPPED" for case in cases)
    names = ": " + ", ".join(f"{case['classname']}.{case['name']}" for case in failed[:3]) if failed else ""
    return f"{len(cases)} tests, {skipped} skipped, {len(failed)} failed{names}"


def step_lines(folder: pathlib.Path) -> list[str]:
    lines = []
    for line in (folder / "steps.jsonl").read_text().splitlines():
        step = json.loads(line)
        lines.append(f"{step['step']:<14} {step['seconds']:>4} s  {step['result']:<12} "
                     f"{tests_of(folder, step['step'])}".rstrip())
    return lines


def share_of_peak(run: dict[str, Any], dtype: str, peaks: dict[str, float]) -> str:
    """How near the time is to the least that arithmetic or memory allow."""
    arithmetic = peaks.get(PEAK_OF.get(dtype, ""), 0)  # TFLOP/s
    memory = peaks.get("copy", 0)  # GB/s
    if not arithmetic or not memory:
        return "-"
    return f"{max(run.get('FLOP', 0) / 1e12 / arithmetic, run.get('bytes', 0) / 1e9 / memory):.0%}"


def time_lines(benchmark: dict[str, Any], peers: dict[str, Any]) -> list[str]:
    """Microseconds. `best / sorot` above 1: nobody is faster."""
    times: dict[str, dict[str, float | None]] = peers.get("microseconds", {})
    peaks: dict[str, float] = peers.get("peaks", {})
    kinds = list(dict.fromkeys(kind for case in times.values() for kind in case))
    rows = [["case", "sorot", "of peak", *kinds, "best / sorot", "kernel"]]
    for run in benchmark.get("benchmarks", []):
        op, case, *rest = run["name"].split("/")
        if op != "attention" or run.get("run_type", "iteration") != "iteration":
            continue
        dtype = rest[0]
        if run.get("error_occurred"):
            rows.append([f"{case} {dtype}", "-", "-", *("-" for _ in kinds), "-", run.get("error_message", "error")])
            continue
        own = run["real_time"] * MICROSECONDS[run["time_unit"]]
        others = times.get(case, {})
        known = [time for time in others.values() if time]
        rows.append([f"{case} {dtype}", f"{own:.1f}", share_of_peak(run, dtype, peaks),
                     *(f"{time:.1f}" if (time := others.get(kind)) else "-" for kind in kinds),
                     f"{min(known) / own:.2f}" if known else "-", run.get("label", "")])
    if len(rows) == 1:
        return ["no times: the benchmark did not come so far"]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join([f"{row[0]:<{widths[0]}}", *(f"{cell:>{width}}" for cell, width in zip(row[1:-1], widths[1:-1])),
                        row[-1]]).rstrip() for row in rows]
    found = ", ".join(f"{name} {peak:.0f} {'GB/s' if name == 'copy' else 'TFLOP/s'}" for name, peak in peaks.items())
    return [*lines, f"peaks of this run: {found or 'not measured'}; times in us"]


def render(folder: pathlib.Path, title: str) -> str:
    peers = read(folder / "peers.json")
    version = f", PyTorch {peers['torch']}" if peers else ""
    return "\n".join([f"{title}{version}", "", *step_lines(folder), "",
                      *time_lines(read(folder / "benchmark.json"), peers)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path, help="what gpu_check.sh wrote")
    parser.add_argument("--title", default="GPU")
    options = parser.parse_args()
    print(render(options.folder, options.title))


if __name__ == "__main__":
    main()
