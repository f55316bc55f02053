"""What the installed library offers to the linker, and what it asks for.

The shared library exports exactly the functions marked SOROT_API in the public headers, all in sorot::v0; it and a
program linked with the static library depend on the C and C++ runtime only: with CUDA, too, whose runtime is linked
statically, and whose driver is looked for when a device is asked for.
"""

import argparse
import pathlib
import re
import subprocess
import sys

RUNTIME = re.compile(r"(libstdc\+\+|libm|libgcc_s|libc|libdl|librt|libpthread|ld-linux-[\w-]+)\.so\.\d+")


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exported(library):
    """Demangled names of the dynamic symbols that the library defines."""
    for line in output_of("nm", "-DC", "--defined-only", str(library)).splitlines():
        yield line.split(maxsplit=2)[2]


def unqualified(signature):
    """sorot::v0::BasicTensorView<void>::slice(int, long, long) const -> slice"""
    path = signature.split("(")[0]
    while "<" in path:
        path = re.sub(r"<[^<>]*>", "", path)
    return path.split("::")[-1]


def declared(headers):
    """Names of the functions marked SOROT_API."""
    for header in headers.rglob("*.h"):
        code = re.sub(r"//.*|^\s*#.*", "", header.read_text(), flags=re.M)
        yield from re.findall(r"\bSOROT_API\b[^;({]*?(\w+)\s*\(", code)


def dynamic(binary, tag):
    return re.findall(rf"\({tag}\).*\[(.*)\]", output_of("readelf", "-d", str(binary)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--headers", type=pathlib.Path, required=True)
    parser.add_argument("--shared", type=pathlib.Path, required=True, help="prefix of a shared install")
    parser.add_argument("--soname", required=True)
    parser.add_argument("--linked-statically", type=pathlib.Path, required=True, help="a program")
    options = parser.parse_args()
    library = next(options.shared.rglob("libsorot.so"))

    problems = []
    symbols = list(exported(library))
    names = {unqualified(symbol) for symbol in symbols}
    public = set(declared(options.headers))
    problems += [f"exports {s}, which is outside sorot::v0" for s in symbols if not s.startswith("sorot::v0::")]
    problems += [f"exports {name}, which no public header marks SOROT_API" for name in sorted(names - public)]
    problems += [f"lacks {name}, which a public header marks SOROT_API" for name in sorted(public - names)]
    for binary in (library, options.linked_statically):
        needed = dynamic(binary, "NEEDED")
        problems += [f"{binary.name} needs {n}" for n in needed if not RUNTIME.fullmatch(n)]
        if dynamic(binary, "R(?:UN)?PATH") and binary == library:
            problems.append(f"{binary.name} has a run path")
    if dynamic(library, "SONAME") != [options.soname]:
        problems.append(f"soname is {dynamic(library, 'SONAME')}, expected {options.soname}")

    for problem in problems:
        print(problem)
    print(f"{len(symbols)} exported symbols, {len(public)} names marked SOROT_API, {len(problems)} problems")
    return 1 if problems or not symbols else 0


if __name__ == "__main__":
    sys.exit(main())
