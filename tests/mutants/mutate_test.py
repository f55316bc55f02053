#!/usr/bin/env python3
"""mutate.py refuses what it cannot do, and what it does compiles to what it says."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import mutate  # noqa: E402

KERNEL = """#pragma once
// machine::sync_block() in a comment is none.
__device__ void first(int a) {
  if (a + 1 < 2) machine::sync_block();
}
template <class T>
__global__ void __launch_bounds__(f(1, 2)) kernel(T a) {
  a = b + c;
  while (machine::sync_block_or(g(a) != 0)) machine::cp_async_wait<2>();
}
"""
FILE = "attention/attention_simt_x.cuh"


class Mutate(unittest.TestCase):
    def run_on(self, entry, kernel=KERNEL):
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder)
            (tree / "cuda/attention").mkdir(parents=True)
            (tree / "cuda" / FILE).write_text(kernel)
            (tree / "mutants.txt").write_text(entry)
            done = subprocess.run([sys.executable, HERE / "mutate.py", tree, tree / "out", "--mutants", tree / "mutants.txt"],
                                  capture_output=True, text=True)
            if done.returncode != 0:
                return done.stderr
            return (tree / "out/cuda" / FILE).read_text() + (tree / "out/mutants.tsv").read_text()

    def entry(self, text, mistake="0", file=FILE):
        return f"name: kind of mistake, attention_simt\n  file {file}\n  text {text}\n  with {mistake}\n"

    def test_an_expression_a_statement_and_nothing(self):
        self.assertIn("a = (::mutants::is(1) ? (b - c) : (b + c));", self.run_on(self.entry("a = @b + c@;", "b - c")))
        self.assertIn("{ if (::mutants::is(1)) { a = 1; } else { a = b + c; } }",
                      self.run_on(self.entry("@a = b + c;@", "a = 1;")))
        self.assertIn("(T a) {if (::mutants::is(1)) { return; } \n  a = b", self.run_on(self.entry("@@ a = b", "return;")))

    def test_one_within_another(self):
        made = self.run_on(self.entry("@if (a + 1 < 2) machine::sync_block();@", ";"))
        self.assertIn("else { if (a + 1 < 2) (::mutants::is(3) ? (machine::sync_warp()) : "
                      "((::mutants::is(2) ? (void()) : (machine::sync_block())))); }", made)

    def test_white_space_is_any(self):
        self.assertIn("is(1)", self.run_on(self.entry("__global__ void\n    __launch_bounds__(f(1, @2@))")))

    def test_lines_keep_their_numbers(self):
        made = self.run_on(self.entry("@a = b + c;\n    while@", "x;"))
        self.assertEqual(KERNEL.count("\n"), made[:made.rindex("}\n") + 2].count("\n"))

    def test_every_call_is_found_with_its_function(self):
        made = self.run_on("")
        for name in ("first, sync_block 1 deleted", "first, sync_block 1 is sync_warp", "kernel, sync_block_or 1 is any",
                     "kernel, sync_block_or 1 deleted, own predicate", "kernel, sync_block_or 1 deleted, true",
                     "kernel, cp_async_wait<2> 1 deleted", "kernel, cp_async_wait<2> 1 one group more pending"):
            self.assertIn(f"\tattention_simt_x.cuh, {name}\tmechanical\tattention_simt\t", made)

    def test_what_it_refuses(self):
        for entry, message in ((self.entry("@a = d@"), "0 times"), (self.entry("@a@"), "times in cuda"),
                               (self.entry("a = b"), "0 marks"), (self.entry("@b@", file="none.cuh"), "no cuda/none.cuh"),
                               ("name: kind, attention_simt\n  file x\n", "has no 'text'"), ("name\n", "expected 'name"),
                               (self.entry("@b + c@") * 2, "two mutants are called 'name'"),
                               (self.entry("@b + c@") + self.entry("a = @b +@ c").replace("name", "other")
                                + self.entry("@a = b@ + c").replace("name", "third"), "overlap")):
            self.assertIn(message, self.run_on(entry), entry)

    def test_every_instruction_that_orders_is_known(self):
        isa = (HERE.parent.parent / "cuda/machine/nvidia/isa.cuh").read_text()
        names = set(re.findall(r"__device__ __forceinline__ [\w:]+ (\w*(?:sync|fence|wait|arrive|commit)\w*)\(", isa))
        self.assertIn("sync_warp", names)
        for name in names - {"cp_async", "cp_async_or_zero", "spin_wait"}:
            call = f"machine::{name}<0>(" if name == "cp_async_wait" else f"machine::{name}("
            self.assertTrue(mutate.SYNC.fullmatch(call), f"mutate.py does not know {name}")


if __name__ == "__main__":
    unittest.main()
