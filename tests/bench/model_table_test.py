#!/usr/bin/env python3
"""`sorot_bench --model`: every case has a row, every row's bound is its largest term, and nobody calls it a measurement.

    model_table_test.py build/sorot_bench bench/cases/attention.json
"""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys
import unittest

BENCH, CASES = sys.argv[1:3]
TERMS = ("mma", "memory", "issue", "shared")
ROW = re.compile(r"(?P<case>\w+) +(?P<kernel>attention_\w+) +(?P<tile>\w+ \d+x\d+ d\d+(?: dv\d+)?) +(?P<blocks>\d+)"
                 r" +(?P<mma>[\d.]+) +(?P<memory>[\d.]+) +(?P<issue>[\d.]+) +(?P<shared>[\d.]+) +(?P<most>[\d.]+)"
                 r" +(?P<bound>\w+) +(?P<tflops>[\d.]+) +(?P<bytes>[\d.]+) +(?P<asked>[\d.]+)")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BENCH, *arguments], capture_output=True, text=True, check=False)


class ModelTable(unittest.TestCase):
    def table(self, gpu: str) -> list[dict[str, str]]:
        result = run("--model", gpu)
        if result.returncode == 2 and "emulator" in result.stderr:
            self.skipTest("this build has no emulator, and says so")
        self.assertEqual(result.returncode, 0, result.stderr)
        title, header, *rows = result.stdout.splitlines()
        self.assertIn("a model, not a measurement", title)
        self.assertRegex(header, "^case +kernel +tile")
        matches = [ROW.fullmatch(row) for row in rows]
        for row, match in zip(rows, matches):
            self.assertIsNotNone(match, row)
        return [match.groupdict() for match in matches if match]

    def test_every_case_has_a_row(self) -> None:
        names = [case["name"] for case in json.loads(pathlib.Path(CASES).read_text())]
        for gpu in ("a100", "h200"):
            rows = self.table(gpu)
            self.assertEqual([row["case"] for row in rows], names)
            for row in rows:
                terms = {term: float(row[term]) for term in TERMS}
                self.assertEqual(terms[row["bound"]], max(terms.values()), row)
                self.assertEqual(float(row["most"]), max(terms.values()), row)
                self.assertGreaterEqual(float(row["asked"]), float(row["bytes"]) * 0.99, row)
                self.assertTrue(all(value > 0 for value in terms.values()), row)

    def test_never_beyond_the_peak(self) -> None:
        for row in self.table("a100"):
            self.assertLessEqual(float(row["tflops"]), 312.5, row)

    def test_refusals(self) -> None:
        for arguments in (["--model", "v100"], ["--model=v100"], ["--model"], ["--model="],
                          ["--model", "a100", "--benchmark_filter=x"], ["--model=a100", "x"]):
            result = run(*arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertIn("a100, h200", result.stderr, arguments)
            self.assertEqual(result.stdout, "", arguments)

    def test_help(self) -> None:
        result = run("--help")
        self.assertEqual(result.returncode, 0)
        self.assertIn("--model GPU", result.stdout)
        self.assertIn("--benchmark_filter", result.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
