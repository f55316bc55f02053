"""Takes the machine code out of files that nvcc made: kernels of cubins, objects, libraries, or whole build folders.

NVIDIA's cuobjdump and nvdisasm do the work; tools/setup.sh installs them into .venv.
"""

from __future__ import annotations

import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable

from sass import listing

ROOT = pathlib.Path(__file__).resolve().parents[2]


class MissingTool(Exception):
    pass


def tool(name: str) -> str:
    """The path. SOROT_CUDA_TOOLS may name the folder; else the pinned tool goes before one of a CUDA toolkit."""
    folders = [str(folder) for folder in ROOT.glob(".venv/lib/python3*/site-packages/nvidia/*/bin")]
    folders += [os.environ.get("PATH", os.defpath), "/usr/local/cuda/bin"]
    found = shutil.which(name, path=os.environ.get("SOROT_CUDA_TOOLS") or os.pathsep.join(folders))
    if not found:
        raise MissingTool(f"there is no {name}: tools/setup.sh installs it into .venv")
    return found


def run(*command: str | os.PathLike[str], cwd: pathlib.Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{pathlib.Path(command[0]).name} failed on {command[-1]}: {done.stderr.strip()}")
    return done.stdout


def files_of(path: pathlib.Path) -> list[pathlib.Path]:
    """Of a build folder the objects of CUDA sources that belong to the library."""
    return sorted(path.glob("cpu/**/*.cu.o")) or sorted(path.rglob("*.cu.o")) if path.is_dir() else [path]


def kernels_of(paths: Iterable[pathlib.Path], arch: str = "", stalls: bool = False) -> list[listing.Kernel]:
    """`stalls` asks for the control bits too, in half as much time again."""
    kernels: list[listing.Kernel] = []
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        cubins: list[pathlib.Path] = []
        for number, path in enumerate(file for path in paths for file in files_of(path)):
            if path.suffix in (".sass", ".txt"):
                kernels += listing.read(path.read_text().splitlines())
            elif path.suffix == ".cubin":
                cubins.append(path)
            else:
                target = pathlib.Path(folder, str(number))
                target.mkdir()
                run(tool("cuobjdump"), "--extract-elf", "all", path.resolve(), cwd=target)
                cubins += sorted(target.iterdir())
        if arch:  # cuobjdump puts it into the name; what has another name is looked at all the same
            cubins = [path for path in cubins if re.search(rf"sm_{arch}\b|^(?!.*sm_)", path.name)]
        command = [tool("nvdisasm"), "-c", *(["-hex"] if stalls else [])] if cubins else []
        for text in pool.map(lambda path: run(*command, path), cubins):
            kernels += listing.read(text.splitlines())
    return [kernel for kernel in kernels if not arch or kernel.arch == arch]
