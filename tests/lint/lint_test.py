"""Every rule of tools/lint.py fires on a small bad file and keeps quiet on its good twin."""

import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import lint  # noqa: E402

HOME = "/" + "home/somebody/sorot"
LONG = "int f();\n" * (lint.MAX_LINES + 1)

# rule: [(path, bad text, good text)]. A line break is added to each text, which is one line or a few.
CASES = {
    "ascii": [("cpu/ops/a.cpp", "// d\u00e9j\u00e0 vu", "// seen before"),
              ("tools/a.py", "x = '\u2013'", "x = '-'")],
    "whitespace": [("README.md", "text ", "text"), ("cpu/ops/a.cpp", "\tint f();", "  int f();"),
                   ("cpu/ops/a.cpp", "int f();\r", "int f();"), ("cpu/ops/a.cpp", "int f();\n", "int f();")],
    "length": [("cpu/ops/a.cpp", LONG.rstrip("\n"), "int f();"), ("tools/a.py", LONG.rstrip("\n"), "f()")],
    "machine_path": [("README.md", f"see {HOME}/x", "see cpu/home/x"),
                     ("tools/a.sh", f"cd {HOME}", 'cd "$root/work/x"')],
    "pragma_once": [("cpu/core/a.h", "#ifndef A_H", "#pragma once")],
    "arrow": [
        ("include/sorot/a.h", '#pragma once\n#include "cpu/core/check.h"', '#pragma once\n#include "sorot/status.h"'),
        ("include/sorot/a.h", "#pragma once\n#include <cuda_runtime.h>", "#pragma once\n#include <cstdint>"),
        ("cpu/core/a.cpp", '#include "cpu/reference/a.h"', '#include "cpu/core/check.h"'),
        ("cpu/core/a.cpp", '#include "cpu/ops/a.h"', '#include "sorot/sorot.h"'),
        ("cpu/core/a.cpp", "#include <unistd.h>", "#include <cstring>"),
        ("cpu/ops/a.cpp", '#include "cpu/reference/a.h"', '#include "cpu/core/problem/a.h"'),
        ("cpu/reference/a.cpp", '#include "cpu/ops/a.h"', '#include "cpu/core/problem/a.h"'),
        ("cpu/reference/a.cpp", '#include "../core/check.h"', '#include "cpu/core/check.h"'),
        ("cpu/kernels/a.cpp", '#include "cpu/reference/a.h"', "#include <hwy/highway.h>"),
        ("cpu/models/a.cpp", '#include "cpu/core/check.h"', '#include "sorot/attention.h"'),
        ("cuda/heads/a.cpp", '#include "cuda/attention/attention_plan.h"', '#include "cuda/heads/heads_plan.h"'),
        ("cuda/heads/a.cu", '#include "cuda/machine/isa.cuh"\n#include <cuda_fp16.h>', '#include "cuda/tile/copy.cuh"'),
        ("cuda/tile/a.cu", '#include "cpu/core/check.h"', '#include "cuda/machine/isa.cuh"'),
        ("cuda/machine/a.cpp", '#include "cuda/emulator/fiber.h"', '#include "cuda/machine/nvidia/isa.cuh"'),
        ("cuda/machine/a.h", '#pragma once\n#include "cpu/core/check.h"', '#pragma once\n#include "sorot/status.h"'),
        ("cuda/machine/nvidia/a.cpp", '#include "cuda/emulator/fiber.h"', "#include <cuda_runtime.h>"),
        ("cuda/machine/emulated/a.cpp", '#include "cuda/heads/heads_plan.h"',
         '#include "cuda/emulator/fiber.h"\n#include "sorot/status.h"'),
        ("cuda/emulator/a.cpp", '#include "cuda/machine/runtime.h"',
         '#include "cuda/machine/site.h"\n#include "sorot/status.h"\n#include <sys/mman.h>'),
        ("cuda/heads/a.cpp", "#include <sys/mman.h>", "#include <cstring>"),
        ("tests/ops/a_test.cpp", '#include "cpu/core/check.h"', '#include "tests/support/oracle.h"'),
        ("tests/ops/a_test.cpp", '#include "cuda/machine/isa.cuh"',
         '#include "cuda/machine/runtime.h"\n#include "cuda/emulator/control.h"'),
        ("tests/core/a_test.cpp", '#include "cpu/ops/a.h"', '#include "cuda/heads/heads_plan.h"'),
        ("tests/support/cases.cpp", '#include "cpu/core/element.h"', '#include "sorot/dtype.h"'),
        ("tests/support/cases.cpp", '#include "cuda/emulator/fiber.h"', '#include "cuda/machine/runtime.h"'),
        ("tests/support/oracle.cpp", '#include "cuda/machine/runtime.h"', "#include <cmath>"),
        ("tests/support/oracle.cpp", '#include "cpu/core/element.h"', '#include "tests/support/oracle.h"'),
        ("tests/support/oracle.cpp", '#include "cuda/emulator/control.h"', "#include <cmath>"),
        ("bench/a.cpp", '#include "tests/support/oracle.h"', "#include <benchmark/benchmark.h>"),
        ("tools/sorot/a.cpp", '#include "cpu/core/check.h"', '#include "tests/support/oracle.h"'),
        ("tools/sorot/a.cpp", '#include "cuda/machine/types.h"',
         '#include "cuda/machine/runtime.h"\n#include "cuda/emulator/control.h"'),
    ],
    "library": [
        ("cpu/ops/a.cpp", "  throw 1;", "  // throw the rest away"),
        ("cpu/ops/a.cpp", "  try {", '  const char* text = "try again";'),
        ("cpu/ops/a.cpp", "  std::abort();", "  aborted();"),
        ("cpu/reference/a.cpp", "  assert(x);", "  static_assert(x);"),
        ("cpu/reference/a.cpp", '  printf("x");', '  std::snprintf(text, sizeof text, "printf(");'),
        ("cuda/heads/heads.cpp", "  std::cerr << 1;", "  return {};"),
        ("cuda/heads/heads.cpp", '  std::getenv("X");', "  return {};"),
        ("cpu/core/a.cpp", "  std::call_once(f, g);", "  call(f, g);"),
        ("include/sorot/a.h", "#pragma once\n  throw 1;", "#pragma once"),
    ],
    "allocation": [
        ("cpu/ops/a.cpp", "  std::vector<int> x;", "  int x[4];"),
        ("cpu/reference/a.cpp", "  auto* x = new int[4];", "  auto* x = new (workspace) int[4];"),
        ("cpu/core/a.cpp", "  std::malloc(4);", "  // malloc(4) would do"),
    ],
    "mutable_state": [
        ("cpu/ops/a.cpp", "  static int calls = 0;", "  static constexpr int kCalls = 0;"),
        ("cpu/ops/a.cpp", "  static const Table table = make();", "  static const Table* table(int x) noexcept {"),
        ("cpu/ops/a.cpp", "int calls = 0;", "constexpr int kCalls = 0;"),
        ("cpu/ops/a.cpp", "std::atomic<int> calls{0};", "const Backend kBackend{run};"),
        ("cpu/ops/a.cpp", "constinit int calls = 0;", "constinit const Backend kBackend{run};"),
        ("cpu/ops/a.cpp", 'const char* text = "x";', 'const char* const kText = "x";'),
        ("cuda/heads/heads.cpp", "extern int calls;", "extern const int kCalls;"),
        ("include/sorot/a.h", "#pragma once\ninline int calls = 0;", "#pragma once\ninline constexpr int kCalls = 0;"),
        ("cpu/core/a.cpp", "thread_local int calls = 0;", "int calls();"),
    ],
    "public_macro": [("include/sorot/a.h", "#pragma once\n#define SOROT_MAX 4", "#pragma once\n#define SOROT_API")],
    "dialect": [
        ("cuda/heads/a.cu", "  kernel<<<grid, block>>>(x);", "  launch(kernel, grid, block, x);"),
        ("cuda/heads/a.cu", "  __shared__ float x[4];", "__global__ void __launch_bounds__(128) f() {"),
        ("cuda/tile/a.cu", '  asm volatile("");', "  wait_all();"),
        ("cuda/tile/a.cu", "  __syncthreads();", "__host__ __device__ __forceinline__ void f();"),
        ("cuda/tile/a.cu", "  x = __shfl_xor_sync(m, x, 1);", "  x = shuffle_xor(x, 1);"),
        ("cuda/tile/a.cu", "  atomicAdd(p, 1);", "  atomic_add(p, 1);"),
        ("cuda/heads/heads.cpp", "  cudaMalloc(&p, n);", "  allocate(n);"),
        ("cuda/heads/a.cu", "  const int i = threadIdx.x;", "  const int i = thread_index();"),
    ],
    "naming": [
        ("cpu/ops/a.cpp", "struct row_state {", "struct RowState {"),
        ("cpu/ops/a.cpp", "struct stream_st;", "struct CUstream_st;"),
        ("tools/sorot/a.cpp", "enum class exit_code : int {", "  struct stat status;"),
        ("cpu/ops/RowState.cpp", "struct RowState {", "struct RowState {"),
        ("cpu/ops/a.cpp", "#define CHECK(x) x", "#define SOROT_CHECK(x) x"),
    ],
}


def fired(path, text):
    return {rule for _, _, rule, _ in lint.check({path: text + "\n"}, whole_tree=False)}


def fired_by_tree(files):
    return {rule for _, _, rule, _ in lint.check(files)} & set(lint.TREE_RULES)


def operator_tree():
    paths = ["include/sorot/gate.h", "cpu/core/problem/gate.h", "cpu/ops/gate.cpp", "cpu/reference/gate.cpp",
             "tests/ops/gate_shapes_test.cpp", "bench/cases/gate.json", "bench/gate_bench.cpp",
             "include/sorot/sorot.h"]
    files = {path: "" for path in paths}
    files["include/sorot/gate.h"] = "Status gate_plan(const Context& context);\n"
    files["include/sorot/sorot.h"] = '#include "sorot/gate.h"\n'
    return files


class FileRules(unittest.TestCase):
    def test_each_rule_has_a_case(self):
        self.assertEqual(set(CASES), set(lint.FILE_RULES))

    def test_bad_texts_fire(self):
        for rule, cases in CASES.items():
            for path, bad, _ in cases:
                with self.subTest(rule=rule, path=path, text=bad[:60]):
                    self.assertIn(rule, fired(path, bad))

    def test_good_twins_are_quiet(self):
        for rule, cases in CASES.items():
            for path, bad, good in cases:
                path = path.lower() if rule == "naming" else path
                with self.subTest(rule=rule, path=path, text=good[:60]):
                    self.assertEqual(fired(path, good), set())

    def test_the_emulated_device_is_no_part_of_the_library(self):
        for text in ("  throw 1;", "thread_local int calls = 0;", "int calls = 0;", '  printf("x");', "  abort();"):
            for path in ("cuda/emulator/a.cpp", "cuda/machine/emulated/a.cpp"):
                with self.subTest(path=path, text=text):
                    self.assertEqual(fired(path, text), set())
            for path in ("cuda/machine/nvidia/a.cpp", "cuda/machine/a.cpp", "cuda/heads/a.cpp"):
                with self.subTest(path=path, text=text):
                    self.assertNotEqual(fired(path, text), set())

    def test_a_reason_excuses_and_only_that_rule(self):
        self.assertEqual(fired("cpu/ops/a.cpp", "  std::abort();  // lint-allow(library): shows the syntax"), set())
        self.assertEqual(fired("cpu/ops/a.cpp", "  std::abort();  // lint-allow(library):"), {"library"})
        self.assertEqual(fired("cpu/ops/a.cpp", "  std::abort();  // lint-allow(naming): not this"), {"library"})

    def test_lines_are_those_of_the_file(self):
        text = '/* two\n   lines */ const char* const kText = "//";\nint calls = 0;\n'
        self.assertEqual([n for _, n, _, _ in lint.check({"cpu/ops/a.cpp": text}, whole_tree=False)], [3])


class TreeRules(unittest.TestCase):
    def test_an_operator_has_one_name_everywhere(self):
        whole = operator_tree()
        self.assertEqual(fired_by_tree(whole), set())
        for missing in set(whole) - {"include/sorot/gate.h"}:
            with self.subTest(missing=missing):
                files = {path: text for path, text in whole.items() if path != missing}
                self.assertEqual(fired_by_tree(files), {"one_op_one_name"})

    def machine_tree(self, emulated_mask="unsigned mask = kFullWarp, ", probe="sync_warp(1); load<int>(p);"):
        nvidia = """__device__ __forceinline__ void sync_warp(unsigned mask = kFullWarp) { __syncwarp(mask); }
template <class T>
__device__ __forceinline__ T load(const T* address) {
  return *address;
}
"""
        emulated = f"""__device__ __forceinline__ void sync_warp({emulated_mask}Site site = Site::here()) {{ f(site); }}
template <class T>
__device__ __forceinline__ T load(const T* address, Site site = Site::here()) {{
  return *address;
}}
"""
        return {"cuda/machine/nvidia/isa.cuh": "#pragma once\n" + nvidia,
                "cuda/machine/emulated/isa.cuh": "#pragma once\n" + emulated,
                "tests/machine/isa_kernels.cu": probe + "\n"}

    def test_both_machines_have_the_same_tested_functions(self):
        self.assertEqual(fired_by_tree(self.machine_tree()), set())
        self.assertEqual(fired_by_tree(self.machine_tree(emulated_mask="")), {"machine_twins"})
        self.assertEqual(fired_by_tree(self.machine_tree(emulated_mask="int mask = kFullWarp, ")), {"machine_twins"})
        self.assertEqual(fired_by_tree(self.machine_tree(probe="sync_warp(1);")), {"machine_functions_tested"})

    def test_it_finds_the_functions_of_this_machine(self):
        text = (lint.ROOT / "cuda/machine/nvidia/isa.cuh").read_text()
        self.assertEqual(len(lint.machine_functions(text)), text.count("__device__ __forceinline__"))

    def test_the_top_level_is_fixed(self):
        for path, rules in (("docs/a.md", {"root"}), ("notes.txt", {"root"}), ("cpu/README.md", set())):
            with self.subTest(path=path):
                self.assertEqual(fired_by_tree({path: "x\n"}), rules)


if __name__ == "__main__":
    unittest.main()
