#!/usr/bin/env python3
"""Checks what compilers and clang-tidy do not: who may include whom, and the house style.

    tools/lint.py          all files of this checkout; exit code 1 if anything is found
    tools/lint.py PATH...  these files only

A line may break a rule if it says so and why:  // lint-allow(rule): reason  (# in scripts and CMake files).
Each rule is a function `rule_...(path, text)` over one file, or `tree_rule_...(files)` over all of them; both yield
line numbers and messages. tests/lint/lint_test.py makes every rule fire.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CXX = (".h", ".cpp", ".cuh", ".cu")
SOURCES = (*CXX, ".py", ".sh", ".cmake", "CMakeLists.txt")
TEXTS = (*SOURCES, ".md", ".json", ".in", ".map", ".yml", "requirements.txt", ".ci/run", ".clang-format", ".clang-tidy")

MAX_LINES = 600
LONG_FILES = {}  # path: why it is not two files

# What tests and tools may ask of a CUDA device, beside the library's own headers: memory, streams; and the emulator.
DEVICE_DOORS = ("cuda/machine/runtime.h", "cuda/emulator/control.h")

# The arrows of the tree: what files below a folder may include besides the standard library. The longest key counts.
ARROWS = {
    "include/": ["sorot/"],
    "cpu/core/": ["sorot/", "cpu/core/"],
    "cpu/ops/": ["sorot/", "cpu/core/"],
    "cpu/reference/": ["sorot/", "cpu/core/", "cpu/reference/"],
    "cpu/kernels/": ["sorot/", "cpu/core/", "cpu/kernels/", "hwy/"],
    "cpu/models/": ["sorot/", "cpu/models/"],
    "cuda/": ["sorot/", "cpu/core/", "cuda/backend.h", "cuda/tile/", "cuda/machine/"],  # and the operator's own folder
    "cuda/backend": ["sorot/", "cpu/core/", "cuda/backend.h", "cuda/*/*_plan.h", "cuda/machine/"],
    "cuda/tile/": ["cuda/tile/", "cuda/machine/"],
    "cuda/machine/": ["sorot/", "cuda/machine/"],
    "cuda/machine/nvidia/": ["sorot/", "cuda/machine/", "cuda.h", "cuda_*.h"],
    "cuda/machine/emulated/": ["sorot/", "cuda/machine/", "cuda/emulator/"],
    "cuda/emulator/": ["cuda/emulator/", "cuda/machine/site.h", "cuda/machine/types.h", "sorot/status.h"],
    "tests/": ["sorot/", "tests/", *DEVICE_DOORS, "gtest/", "gmock/"],
    # Unit tests of private code: the shared core, and plan heuristics, which see no CUDA.
    "tests/core/": ["sorot/", "tests/", "cpu/core/", "cuda/*/*_plan.h", "gtest/", "gmock/"],
    "tests/mutants/": ["sorot/", "tests/", *DEVICE_DOORS, "cuda/attention/"],
    "tests/machine/": ["sorot/", "tests/machine/", "cuda/machine/", "gtest/", "gmock/"],
    "tests/emulator/": ["sorot/", "tests/", "cuda/emulator/", "cuda/machine/", "gtest/", "gmock/"],
    "tests/support/": ["sorot/", "tests/support/", *DEVICE_DOORS, "fmt/", "nlohmann/"],
    "tests/support/oracle": ["sorot/", "tests/support/"],  # independent of everything it judges
    "tests/tools/": ["sorot/", "tests/", "tools/sorot/", *DEVICE_DOORS, "fmt/", "nlohmann/", "gtest/", "gmock/"],
    "tests/fuzz/": ["sorot/", "tests/", "tools/sorot/"],
    "tests/bench/": ["sorot/", "tests/", "bench/", "gtest/", "gmock/", "nlohmann/"],
    "bench/": ["sorot/", "bench/", "tests/support/device.h", *DEVICE_DOORS, "benchmark/", "nlohmann/"],
    # Tables of machine code know a tile by its place among the kernel's.
    "bench/machine_code": ["sorot/", "bench/", "cuda/attention/attention_sm80.h"],
    "tools/": ["sorot/", "tools/sorot/", "tests/support/", *DEVICE_DOORS, "CLI/", "fmt/", "nlohmann/"],
}

# POSIX and the sanitizers, for programs and the emulator: the rest of the library asks nothing of the system.
SYSTEM_HEADER = r"(sys|sanitizer)/\w+\.h|(dlfcn|fcntl|link|malloc|sched|signal|spawn|ucontext|unistd)\.h"

FORBIDDEN_IN_LIBRARY = {
    r"\bthrow\b|\btry\b|\bcatch\b|\bstd::(current|rethrow)_exception\b": "no exceptions: return a Status",
    r"\b(abort|exit|_Exit|quick_exit|terminate)\s*\(": "never ends the process: return a Status",
    r"\bassert\s*\(": "no assert: check in the front door, or static_assert",
    r"\b(f|v|vf)?printf\s*\(|\bf?put[sc]\s*\(|\bputchar\s*\(|\bperror\s*\(|\bstd::(cout|cerr|clog)\b": "the library prints nothing",
    r"\b(secure_)?getenv\s*\(|\bsetenv\s*\(": "reads no environment",
    r"\bcall_once\b|\bonce_flag\b": "no once-flags: state belongs to a Context",
    r"\bthread_local\b": "no state of a thread: state belongs to a Context",
}

ALLOCATION = r"\bnew\b(?!\s*\()|\b(m|c|re)alloc\s*\(" \
             r"|\bstd::(vector|deque|list|map|set|unordered_\w+|string|function|make_unique|make_shared)\b"
ALLOCATION_FREE = ("cpu/core/", "cpu/ops/", "cpu/reference/")

DIALECT = {
    r"<<<": "launches go through cuda/machine/runtime.h",
    r"\b__(shared|constant|managed)__": "memory comes from the machine's wrappers",
    r"\basm\b|\b__asm__\b": "one instruction, one function in cuda/machine/nvidia",
    r"\b__(shfl|ballot|any|all|activemask|sync|match|ld|st|reduce|h|half|float|fma|exp|log|cvta|nv_|threadfence|popc"
    r"|clz|ffs|brev|byte_perm|nanosleep|trap)(?!ost__)\w*\s*\(|\batomic[A-Z]\w*\s*\(":
        "no intrinsics: use cuda/machine/isa.cuh",
    r"\bcu(da)?[A-Z]\w*\s*\(": "no calls of the CUDA API: use cuda/machine/runtime.h",
    r"\b(threadIdx|blockIdx|blockDim|gridDim)\b": "no built-in indices: use cuda/machine/isa.cuh",
}

COMMENT_OR_STRING = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"\(.*?\)"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'', re.S)


def blank_out(text):
    """The text with comments and the insides of strings blanked; every line keeps its number."""
    def blank(match):
        return re.sub(r"[^\n\"']", " ", match.group(0))
    return COMMENT_OR_STRING.sub(blank, text)


def lines_matching(pattern, text):
    for number, line in enumerate(text.split("\n"), 1):
        match = re.search(pattern, line)
        if match:
            yield number, match


def in_library(path):
    """What becomes part of the library proper. The emulated device is not: it stands for a GPU and its driver."""
    device = path.startswith(("cuda/emulator/", "cuda/machine/emulated/"))
    return path.startswith(("cpu/", "cuda/", "include/")) and path.endswith(CXX) and not device


def rule_ascii(path, text):
    if path.endswith(SOURCES):
        yield from ((n, f"{m.group(0)!r} is not ASCII") for n, m in lines_matching(r"[^\x00-\x7f]", text))


def rule_whitespace(path, text):
    if not path.endswith(TEXTS):
        return
    yield from ((n, "trailing white space") for n, _ in lines_matching(r"[ \t\r]+$", text))
    yield from ((n, "a tab") for n, _ in lines_matching(r"\t", text))
    if text and (not text.endswith("\n") or text.endswith("\n\n")):
        yield text.count("\n") + 1, "a file ends with one line break"


def rule_length(path, text):
    lines = text.count("\n")
    if lines > MAX_LINES and path not in LONG_FILES and path.endswith(SOURCES):
        yield MAX_LINES + 1, f"{lines} lines, at most {MAX_LINES}: split it, or give LONG_FILES a reason"


def rule_machine_path(path, text):
    pattern = r"(?<![\w.$}\])])/(home|root|Users|work|mnt)/\w"
    yield from ((n, f"{m.group(0)}... is a path of somebody's machine") for n, m in lines_matching(pattern, text))


def rule_pragma_once(path, text):
    if path.endswith((".h", ".cuh")) and not text.startswith("#pragma once\n"):
        yield 1, "a header begins with #pragma once"


def allowed_includes(path):
    folder = max((key for key in ARROWS if path.startswith(key)), key=len, default=None)
    if folder is None:
        return None
    own = re.match(r"cuda/\w+/", path)
    return ARROWS[folder] + ([own.group(0)] if folder == "cuda/" and own else [])


def rule_arrow(path, text):
    allowed = allowed_includes(path) if path.endswith(CXX) else None
    if allowed is None:
        return
    for number, match in lines_matching(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', text):
        bracket, name = match.groups()
        fits = any(pathlib.PurePath(name).match(a) if "*" in a else name.startswith(a) for a in allowed)
        standard = bracket == "<" and re.fullmatch(r"[a-z_0-9]+", name)
        system = bracket == "<" and re.fullmatch(SYSTEM_HEADER, name)
        if not (fits or standard or (system and not in_library(path))):
            yield number, f"{name}: files here include only {', '.join(allowed)} and the standard library"


def rule_library(path, text):
    if in_library(path):
        code = blank_out(text)
        for pattern, message in FORBIDDEN_IN_LIBRARY.items():
            yield from ((n, f"'{m.group(0).strip()}': {message}") for n, m in lines_matching(pattern, code))


def rule_allocation(path, text):
    if path.startswith(ALLOCATION_FREE) and path.endswith(CXX):
        for number, match in lines_matching(ALLOCATION, blank_out(text)):
            yield number, f"'{match.group(0).strip()}': calls allocate nothing, they take workspace"


def rule_mutable_state(path, text):
    """Static locals, and globals that can change. Reads declarations as clang-format leaves them."""
    if not in_library(path):
        return
    declaration = r"(inline |static |extern )*([\w:]+(<.*>)?[ *&]+)+\w+(\[.*\])*\s*(;|=|\{)"
    harmless = r".*\bconstexpr\b|.*\* ?const |(inline |extern |static |constinit )*const [^*]*[;={]" \
               r"|(inline |extern )*(using|namespace|enum|struct|class|union|typedef|template|return)\b"
    for number, line in enumerate(blank_out(text).split("\n"), 1):
        if re.match(r"\s+(inline )?static\s(?!.*\bconstexpr\b)[^(]*[;={]", line):
            yield number, "a static variable: only constexpr ones, other state belongs to a Context"
        if re.match(declaration, line) and not re.match(harmless, line):
            yield number, "a global that can change: state belongs to a Context"


def rule_public_macro(path, text):
    if path.startswith("include/"):
        for number, match in lines_matching(r"^\s*#\s*define\s+(\w+)", text):
            if match.group(1) != "SOROT_API":
                yield number, f"{match.group(1)}: the only macro of public headers is SOROT_API"


def rule_dialect(path, text):
    """Kernels speak only through the machine's two doors, so that one source runs on two machines."""
    exempt = path.startswith(("cuda/machine/nvidia/", "cuda/emulator/"))
    if path.startswith("cuda/") and path.endswith(CXX) and not exempt:
        code = blank_out(text)
        for pattern, message in DIALECT.items():
            yield from ((n, f"'{m.group(0).strip()}': {message}") for n, m in lines_matching(pattern, code))


def rule_naming(path, text):
    """The part of naming that holds for files clang-tidy does not see, kernels among them."""
    if not path.endswith(CXX):
        return
    if not re.fullmatch(r"[a-z0-9_]+\.\w+", pathlib.PurePath(path).name):
        yield 1, "file names are snake_case"
    code = blank_out(text)
    definition = r"^\s*(?:enum class|enum|struct|class|union)\s+(?:\[\[\w+\]\]\s+)?(\w+)\s*(?:final\s*)?(?:[:{;]|$)"
    for number, match in lines_matching(definition, code):
        if not re.fullmatch(r"[A-Z][A-Za-z0-9]*|b?float16|CU[a-zA-Z]+_st", match.group(1)):  # CUDA's own, declared
            yield number, f"{match.group(1)}: types are PascalCase"
    for number, match in lines_matching(r"^\s*#\s*define\s+(\w+)", code):
        if not match.group(1).startswith("SOROT_"):
            yield number, f"{match.group(1)}: macros begin with SOROT_"


def tree_rule_one_op_one_name(files):
    """An operator is a public header that declares `<its name>_plan`; every layer has a file of that name."""
    umbrella = files.get("include/sorot/sorot.h", "")
    for header, text in files.items():
        op = pathlib.PurePath(header).stem
        if not re.fullmatch(r"include/sorot/\w+\.h", header) or not re.search(rf"\b{op}_plan\(", text):
            continue
        for pattern in (f"cpu/core/problem/{op}.h", f"cpu/ops/{op}.cpp", f"cpu/reference/{op}.cpp",
                        f"tests/ops/{op}*_test.cpp", f"bench/cases/{op}.json", f"bench/{op}_bench.cpp"):
            if not any(pathlib.PurePath(path).match(pattern) for path in files):
                yield header, 1, f"operator {op} lacks {pattern}"
        if f'#include "sorot/{op}.h"' not in umbrella:
            yield header, 1, f"include/sorot/sorot.h does not include sorot/{op}.h"


MACHINE_FUNCTION = re.compile(
    r"^((?:template <[^>]*>\n)?)__device__ __forceinline__ ([^\n(;]*?)(\w+)\(((?:[^()]|\([^()]*\))*)\)\s*\{", re.M)


def machine_functions(text):
    """{name and parameters: line} of an isa.cuh, without what tells an emulated function who called it."""
    functions = {}
    for match in MACHINE_FUNCTION.finditer(text):
        template, result, name, parameters = (re.sub(r"\s+", " ", part).strip() for part in match.groups())
        parameters = re.sub(r"(, )?Site site = Site::here\(\)", "", parameters)
        functions[f"{template} {result} {name}({parameters})".strip()] = text.count("\n", 0, match.start(3)) + 1
    return functions


def tree_rule_machine_twins(files):
    """Both machines have the same functions: what a kernel calls means something on each."""
    paths = ("cuda/machine/nvidia/isa.cuh", "cuda/machine/emulated/isa.cuh")
    functions = [machine_functions(files.get(path, "")) for path in paths]
    for path, own, others, twin in zip(paths, functions, reversed(functions), reversed(paths)):
        yield from ((path, line, f"{name} has no twin in {twin}") for name, line in own.items() if name not in others)


def tree_rule_machine_functions_tested(files):
    """Every function of the machine is used by the kernels of tests/machine, which compare it with its definition."""
    path = "cuda/machine/nvidia/isa.cuh"
    probes = "".join(text for name, text in files.items() if re.fullmatch(r"tests/machine/isa_\w*kernels.cu", name))
    for function, line in machine_functions(files.get(path, "")).items():
        name = re.search(r"(\w+)\(", function).group(1)
        if not re.search(rf"\b{name}(<[^>]*>)?\(", probes):
            yield path, line, f"{name} is not used in tests/machine/isa_*kernels.cu"


def tree_rule_root(files):
    """The top level is fixed; longer texts live as README.md in the folder they describe."""
    folders = {"cuda", "cpu", "include", "tests", "bench", "tools", ".ci"}
    customary = {"CMakeLists.txt", "CMakePresets.json", "README.md", "CONTRIBUTING.md", "LICENSE", ".clang-format",
                 ".clang-tidy", ".gitignore", ".gitattributes"}
    for path in files:
        first, *rest = pathlib.PurePath(path).parts
        if first not in (folders if rest else customary):
            yield path, 1, f"{first} does not belong at the top level"


FILE_RULES = {name[len("rule_"):]: rule for name, rule in list(globals().items()) if name.startswith("rule_")}
TREE_RULES = {name[len("tree_rule_"):]: rule for name, rule in list(globals().items()) if name.startswith("tree_rule_")}


def is_allowed(text, number, rule):
    lines = text.split("\n")
    return number <= len(lines) and re.search(rf"(//|#) lint-allow\({rule}\): \S", lines[number - 1])


def check(files, whole_tree=True):
    """Findings (path, line, rule, message) in {path: text}."""
    findings = []
    for path, text in files.items():
        for name, rule in FILE_RULES.items():
            findings += [(path, n, name, message) for n, message in rule(path, text) if not is_allowed(text, n, name)]
    if whole_tree:
        for name, rule in TREE_RULES.items():
            findings += [(path, n, name, message) for path, n, message in rule(files)]
    return sorted(findings)


def files_of_checkout():
    """What git tracks, or would if everything were added."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return sorted({path for path in listing.split("\0") if path and (ROOT / path).is_file()})


def main(arguments):
    if any(not pathlib.Path(a).is_file() for a in arguments):
        print(__doc__.strip())
        return 0 if "--help" in arguments else 2
    paths = [str(pathlib.Path(a).resolve().relative_to(ROOT)) for a in arguments] or files_of_checkout()
    contents = {path: (ROOT / path).read_bytes() for path in paths}
    files = {path: data.decode("utf-8", errors="replace") for path, data in contents.items() if b"\0" not in data}
    findings = check(files, whole_tree=not arguments)
    for path, number, rule, message in findings:
        print(f"{path}:{number}: {message} [{rule}]")
    print(f"{len(files)} files, {len(findings)} finding(s)")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
