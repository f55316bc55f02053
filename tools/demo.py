#!/usr/bin/env python3
"""Run `sorot attend` on the demo input on every device of this build; print a table and draw the weights."""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

TOOLS = Path(__file__).resolve().parent
RUNS = 5  # the table shows the fastest
NO_DEVICE = 3  # exit code of sorot


def run(command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True)


def checked(command):
    done = run(command)
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
    if run(attend(sorot, device, "fp64", folder)).returncode == NO_DEVICE:
        checked(attend(sorot, "reference", "fp64", folder))
    return np.load(folder / "out.npy")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sorot", type=Path, required=True, help="the command")
    parser.add_argument("--out", type=Path, required=True, help="folder for results and picture")
    arguments = parser.parse_args()

    about = json.loads((TOOLS / "data" / "minilm.json").read_text("utf-8"))
    heads, tokens, depth = np.load(TOOLS / "data" / "minilm_q.npy", mmap_mode="r").shape
    print(f"{about['model']}, layer {about['layer']}: {heads} heads, {tokens} tokens, head dimension {depth}")
    print(f"\"{about['sentence']}\"\n")
    print(f"{'device':<12}{'kernel':<24}{'time (ms)':>12}{'max error against fp64':>26}")
    for device in json.loads(checked([arguments.sorot, "info", "--json"]))["devices"]:
        name = device["name"]
        folder = arguments.out / name
        reports = [json.loads(checked(attend(arguments.sorot, name, "fp32", folder))) for _ in range(RUNS)]
        report = min(reports, key=lambda report: report["milliseconds"])
        error = np.abs(np.load(folder / "out.npy") - exact_output(arguments.sorot, name, folder / "fp64")).max()
        print(f"{report['device']:<12}{report['kernel']:<24}{report['milliseconds']:>12.3f}{error:>26.2e}", flush=True)

    picture = arguments.out / "minilm_heads.png"
    checked(
        [sys.executable, TOOLS / "plots" / "heatmap.py", "--weights", folder / "weights.npy", "--out", picture]
        + ["--tokens", TOOLS / "data" / "minilm.json", "--device", report["device"], "--kernel", report["kernel"]]
    )
    print(f"\nAttention weights of all heads:\n{picture.resolve()}")


if __name__ == "__main__":
    main()
