#!/usr/bin/env python3
"""Run `sorot attend` on the demo input on every device of this build; print a table and draw the weights.

The picture is drawn from what CUDA computed, where there is CUDA. A row of the emulator says so: its time is that of a
GPU's threads taking turns on a CPU.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

TOOLS = Path(__file__).resolve().parent
RUNS = 5  # the table shows the fastest
NO_DEVICE = 3  # exit code of sorot


def checked(command, accept=()):
    """Standard output of a command that must succeed; None if it ends with an accepted exit code instead."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode in accept:
        return None
    if done.returncode != 0:
        sys.exit(f"demo.py: exit code {done.returncode} from {' '.join(map(str, command))}\n{done.stderr.rstrip()}")
    return done.stdout


def attend(sorot, device, dtype, folder):
    """The command line of the main job."""
    folder.mkdir(parents=True, exist_ok=True)
    inputs = [word for name in "qkv" for word in (f"--{name}", TOOLS / "data" / f"minilm_{name}.npy")]
    outputs = [word for name in ("out", "weights", "lse") for word in (f"--{name}", folder / f"{name}.npy")]
    return [sorot, "attend", *inputs, *outputs, "--dtype", dtype, "--device", device, "--json"]


def exact_output(sorot, device, folder):
    """The result in fp64, by the device itself or, where it has no fp64, by the reference."""
    if checked(attend(sorot, device, "fp64", folder), accept=[NO_DEVICE]) is None:
        checked(attend(sorot, "reference", "fp64", folder))
    return np.load(folder / "out.npy")


def run_device(sorot, device, folder):
    """One row of the table: the fastest of a few runs, and the error; None if the device is not on this machine."""
    name = device["name"]
    command = attend(sorot, name, "fp32", folder)
    first = checked(command, accept=[NO_DEVICE])
    if first is None:
        return None
    more = 0 if device["emulated"] else RUNS  # nobody asks how fast an emulator can be
    reports = [json.loads(report) for report in [first] + [checked(command) for _ in range(more)]]
    report = min(reports, key=lambda report: report["milliseconds"])
    report["error"] = np.abs(np.load(folder / "out.npy") - exact_output(sorot, name, folder / "fp64")).max()
    return report


def about_cuda(devices):
    """Whether the row of CUDA came from a GPU, in one line."""
    cuda = next((device for device in devices if device["name"] == "cuda"), None)
    if cuda is None:
        return "cuda is not in this build"
    if cuda["problem"]:
        return f"cuda is in this build, but not on this machine: {cuda['problem']}"
    if cuda["emulated"]:
        return "cuda is the emulator on this machine's CPU: its time says nothing about a GPU"
    return f"cuda is a real GPU: {cuda['model']}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sorot", type=Path, required=True, help="the command")
    parser.add_argument("--out", type=Path, required=True, help="folder for results and picture")
    arguments = parser.parse_args()

    about = json.loads((TOOLS / "data" / "minilm.json").read_text("utf-8"))
    heads, tokens, depth = np.load(TOOLS / "data" / "minilm_q.npy", mmap_mode="r").shape
    print(f"{about['model']}, layer {about['layer']}: {heads} heads, {tokens} tokens, head dimension {depth}")
    print(f"\"{about['sentence']}\"\n")
    print(f"{'device':<12}{'kernel':<24}{'time (ms)':>22}{'max error against fp64':>26}")
    devices = json.loads(checked([arguments.sorot, "info", "--json"]))["devices"]
    for device in devices:
        name = device["name"]
        report = run_device(arguments.sorot, device, arguments.out / name)
        if report is None:
            print(f"{name:<12}in this build, but not on this machine")
            continue
        time = f"{report['milliseconds']:.3f}" + " (emulated)" * device["emulated"]
        print(f"{name:<12}{report['kernel']:<24}{time:>22}{report['error']:>26.2e}", flush=True)
        drawn = report  # of the last device: the reference comes first, CUDA behind it
    print(about_cuda(devices))

    picture = arguments.out / "minilm_heads.png"
    command = [sys.executable, TOOLS / "plots" / "heatmap.py", "--tokens", TOOLS / "data" / "minilm.json"]
    command += ["--weights", arguments.out / drawn["device"] / "weights.npy", "--out", picture]
    checked(command + ["--device", drawn["device"], "--kernel", drawn["kernel"]])
    print(f"\nAttention weights of all heads:\n{picture.resolve()}")


if __name__ == "__main__":
    main()
