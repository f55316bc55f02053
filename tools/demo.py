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
    info = json.loads(checked([arguments.sorot, "info", "--json"]))
    for device in (device["name"] for device in info["devices"]):
        folder = arguments.out / device
        if checked(attend(arguments.sorot, device, "fp32", folder), accept=[NO_DEVICE]) is None:
            print(f"{device:<12}in this build, but not on this machine")
            continue
        reports = [json.loads(checked(attend(arguments.sorot, device, "fp32", folder))) for _ in range(RUNS)]
        report = min(reports, key=lambda report: report["milliseconds"])
        error = np.abs(np.load(folder / "out.npy") - exact_output(arguments.sorot, device, folder / "fp64")).max()
        print(f"{device:<12}{report['kernel']:<24}{report['milliseconds']:>12.3f}{error:>26.2e}", flush=True)
        if device == info["auto"]["device"]:
            drawn = report

    picture = arguments.out / "minilm_heads.png"
    command = [sys.executable, TOOLS / "plots" / "heatmap.py", "--tokens", TOOLS / "data" / "minilm.json"]
    command += ["--weights", arguments.out / drawn["device"] / "weights.npy", "--out", picture]
    checked(command + ["--device", drawn["device"], "--kernel", drawn["kernel"]])
    print(f"\nAttention weights of all heads:\n{picture.resolve()}")


if __name__ == "__main__":
    main()
