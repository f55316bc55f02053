#!/usr/bin/env python3
"""tools/gpu_check.sh without a GPU: what it refuses, its plan, and a whole run with scripts in place of all programs."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import table

TOOL = pathlib.Path(__file__).resolve().parents[1] / "gpu_check.sh"
GTEST = {"testsuites": [{"testsuite": [{"name": "Adds", "classname": "Isa", "result": "COMPLETED"},
                                       {"name": "Shuffles", "classname": "Isa", "result": "SKIPPED"}]}]}
FAILED = {"testsuites": [{"testsuite": [{"name": "Runs", "classname": "Ops", "failures": [{"failure": "no"}]}]}]}
BENCHMARK = {"benchmarks": [
    {"name": "attention/decode/bf16/cuda/manual_time", "run_type": "iteration", "real_time": 20.0, "time_unit": "us",
     "FLOP": 400e9, "bytes": 2000e9, "label": "attention_sm80 f64x64"},
    {"name": "attention/prefill/f32/cuda/manual_time", "run_type": "iteration", "real_time": 1.5, "time_unit": "ms",
     "FLOP": 3e13, "bytes": 1e9, "label": "attention_simt"},
    {"name": "attention/huge/bf16/cuda/manual_time", "run_type": "iteration", "error_occurred": True,
     "error_message": "not today", "real_time": 0, "time_unit": "us"},
    {"name": "attention_overhead/call/cuda/real_time", "run_type": "iteration", "real_time": 900.0, "time_unit": "ns"}]}
PEERS = {"gpu": "NVIDIA X1", "torch": "2.9", "peaks": {"bf16": 800.0, "f32": 60.0, "copy": 4000.0},
         "microseconds": {"decode": {"unfused": 90.04, "flash": 25.0, "cudnn": None}}}
SCRIPTS = {
    "bin/nvidia-smi": '[ "$1" = --query-gpu=name ] && echo "NVIDIA X1" || echo 9.0',
    "no_gpu/nvidia-smi": "exit 9",
    "bin/compute-sanitizer": 'echo "$@"; [ "$2" != racecheck ]',
    "build/sorot": "exit ${SOROT_CODE:-0}",
    "build/sorot_bench": f"for w; do case $w in --benchmark_out=*) echo '{json.dumps(BENCHMARK)}' >${{w#*=}}; esac; done",
    "build/tests/machine/machine_test": f"echo '{json.dumps(GTEST)}' >${{1#*json:}}",
    "build/tests/ops/ops_test": f"echo '{json.dumps(FAILED)}' >${{2#*json:}}; exit 1",
    "build/tests/install/some_test": "echo not for here; exit 1",
}


class GpuCheckTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name, script in SCRIPTS.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"#!/bin/sh\n{script}\n")
            path.chmod(0o755)

    def run_tool(self, *options, gpu=True, **environment):
        path = f"{self.folder / ('bin' if gpu else 'no_gpu')}:/usr/bin:/bin"
        done = subprocess.run([TOOL, *options], cwd=self.folder, capture_output=True, text=True,
                              env={"PATH": path, "PYTHON": "", "HOME": str(self.folder), **environment})
        return done.returncode, done.stdout, done.stderr

    def test_refusals(self):
        for options, keywords, code, message in [
            ((), {"gpu": False}, 3, "no NVIDIA GPU"),
            (("--frob",), {}, 2, "no option '--frob'"),
            (("--out",), {}, 2, "--out needs a folder"),
            (("--build", "bin"), {}, 2, "is not a build of Sorot"),
            (("--build", "build"), {"SOROT_CODE": "3"}, 3, "gpu_check.sh:"),
        ]:
            with self.subTest(options):
                result = self.run_tool(*options, **keywords)
                self.assertEqual((result[0], result[1]), (code, ""), result)
                self.assertIn(message, result[2])

    def test_plan_takes_less_than_ten_minutes_and_no_gpu(self):
        code, output, _ = self.run_tool("--plan", gpu=False)
        self.assertEqual(code, 0)
        seconds = [int(number) for number in re.findall(r"^\w+ +(\d+) s  \S", output, re.M)]
        self.assertEqual(len(seconds), 11)
        self.assertLess(sum(seconds), 600)
        self.assertIn(f"at most {sum(seconds)} s", output)
        self.assertLess(output.index("machine_test"), output.index("run_tests"))

    def test_whole_run(self):
        code, output, errors = self.run_tool("--build", "build", "--out", "out")
        self.assertEqual(code, 1, errors)
        lines = output.splitlines()
        self.assertEqual(lines[0], "NVIDIA X1 (sm_90)")
        steps = {line.split()[0]: re.sub(r"^\w+ +\d+ s +", "", line) for line in lines[2:11]}
        peers = steps.pop("peers", "")
        self.assertEqual(steps, {
            "instructions": "passed       2 tests, 1 skipped, 0 failed",
            "tests": "FAILED       1 tests, 0 skipped, 1 failed: Ops.Runs",
            "fuzz": "passed", "memcheck": "passed", "racecheck": "FAILED", "synccheck": "passed", "initcheck": "passed",
            "benchmark": "passed"})
        self.assertTrue(peers.startswith("skipped: no PyTorch"), output)
        self.assertIn("peaks of this run: not measured", output)
        self.assertTrue((self.folder / "out" / "benchmark.json").exists())

    def test_table(self):
        (self.folder / "steps.jsonl").write_text('{"step": "build", "result": "passed", "seconds": 93}\n')
        (self.folder / "benchmark.json").write_text(json.dumps(BENCHMARK))
        (self.folder / "peers.json").write_text(json.dumps(PEERS))
        self.assertEqual(table.render(self.folder, "NVIDIA X1 (sm_90)"), """\
NVIDIA X1 (sm_90), PyTorch 2.9

build            93 s  passed

case          sorot  of peak  unfused  flash  cudnn  best / sorot  kernel
decode bf16    20.0      50%     90.0   25.0      -          1.25  attention_sm80 f64x64
prefill f32  1500.0      50%        -      -      -             -  attention_simt
huge bf16         -        -        -      -      -             -  not today
peaks of this run: bf16 800 TFLOP/s, f32 60 TFLOP/s, copy 4000 GB/s; times in us""")

    def test_table_of_a_run_that_ended_early(self):
        (self.folder / "steps.jsonl").write_text('{"step": "build", "result": "FAILED", "seconds": 3}\n')
        (self.folder / "benchmark.json").write_text('{"bench')
        self.assertEqual(table.render(self.folder, "X").splitlines()[2:],
                         ["build             3 s  FAILED", "", "no times: the benchmark did not come so far"])


if __name__ == "__main__":
    unittest.main()
