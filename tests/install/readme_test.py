#!/usr/bin/env python3
"""Builds and runs the example of README.md as written there, against an installed library."""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile


def blocks(text, language):
    """Contents of the fenced code blocks of a language."""
    return re.findall(r"^```" + language + r"\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--readme", type=pathlib.Path, required=True)
    parser.add_argument("--prefix", required=True, help="where sorot is installed")
    parser.add_argument("--generator", required=True)
    args = parser.parse_args()
    readme = args.readme.read_text()
    expected = blocks(readme, "text")[0]

    with tempfile.TemporaryDirectory() as folder:
        project = pathlib.Path(folder)
        (project / "CMakeLists.txt").write_text(blocks(readme, "cmake")[0])
        (project / "three_words.cpp").write_text(blocks(readme, "cpp")[0])
        build = project / "build"
        for command in (
            ["cmake", "-S", project, "-B", build, "-G", args.generator, f"-DCMAKE_PREFIX_PATH={args.prefix}"],
            ["cmake", "--build", build],
        ):
            subprocess.run(command, check=True)
        output = subprocess.run([build / "three_words"], check=True, capture_output=True, text=True).stdout
    print(output)
    if not output.endswith(expected):
        sys.exit(f"README.md promises:\n{expected}")


if __name__ == "__main__":
    main()
