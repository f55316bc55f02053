#!/usr/bin/env python3
"""Draw the attention weights of all heads as one PNG: a grid of heatmaps with tokens on both axes.

Input is what `sorot attend --weights` writes, `[H, Sq, Skv]`, and a JSON file with the tokens: either a list, or an
object with `tokens` and, for the title, `model`, `layer` and `sentence`.
"""

import argparse
import json
import math
import os
import sys
from pathlib import Path

import numpy as np

os.environ.setdefault("MPLCONFIGDIR", str(Path(os.environ.get("TMPDIR", "/tmp")) / "sorot-matplotlib"))
import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.colors import LinearSegmentedColormap, PowerNorm

NIGHT = "#0d1020"
INK = "#e8e6df"
FAINT = "#8d90a5"
# A spotlight: from the dark of the stage to warm light.
SPOTLIGHT = LinearSegmentedColormap.from_list(
    "spotlight", ["#12162a", "#2b2a5c", "#6a3478", "#c04a66", "#f2894b", "#ffd26b", "#fffbe6"]
)


class BadInput(Exception):
    pass


def load_weights(path):
    try:
        weights = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise BadInput(f"cannot read {path}: {error}") from None
    if weights.ndim != 3 or 0 in weights.shape:
        raise BadInput(f"{path} has shape {weights.shape}, expected [heads, queries, keys]")
    if weights.dtype.kind != "f":
        raise BadInput(f"{path} holds {weights.dtype}, expected floating-point weights")
    return weights.astype(np.float64)


def load_tokens(path):
    try:
        about = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot read {path}: {error}") from None
    about = {"tokens": about} if isinstance(about, list) else about
    tokens = about.get("tokens") if isinstance(about, dict) else None
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise BadInput(f"{path} holds no list of tokens")
    return about


def draw_head(axes, weights, tokens, norm, name, label_rows, label_columns):
    image = axes.imshow(weights, cmap=SPOTLIGHT, norm=norm, interpolation="nearest", aspect="equal")
    axes.set_title(name, color=INK, fontsize=11.5, loc="left", pad=5, fontweight="bold")
    rows, columns = weights.shape
    axes.set_xticks(range(columns), tokens if label_columns else [], rotation=90)
    axes.set_yticks(range(rows), tokens if label_rows else [])
    axes.tick_params(length=0, pad=3, labelsize=8, labelcolor=INK)
    for spine in axes.spines.values():
        spine.set_color("#2a2f4a")
    return image


def draw(weights, about, title, made_by, columns):
    heads = len(weights)
    rows = math.ceil(heads / columns)
    figure, grid = pyplot.subplots(
        rows, columns, figsize=(3.0 * columns + 1.0, 3.05 * rows + 1.7), squeeze=False, layout="constrained"
    )
    height = figure.get_figheight()
    figure.get_layout_engine().set(w_pad=0.07, h_pad=0.07, rect=(0.005, 0.005, 0.99, 0.99 - 0.95 / height))
    # The square root shows weak weights too; one scale for all heads keeps them comparable.
    norm = PowerNorm(0.5, vmin=0.0, vmax=1.0)
    for index, axes in enumerate(grid.flat):
        if index >= heads:
            axes.set_visible(False)
            continue
        below = index + columns >= heads
        image = draw_head(axes, weights[index], about["tokens"], norm, f"head {index}", index % columns == 0, below)
    bar = figure.colorbar(image, ax=grid, aspect=60, fraction=0.02, pad=0.012, ticks=[0, 0.01, 0.05, 0.1, 0.25, 0.5, 1])
    bar.ax.set_yticklabels(["0", ".01", ".05", ".1", ".25", ".5", "1"])
    bar.ax.tick_params(length=0, labelcolor=INK, labelsize=8)
    bar.outline.set_visible(False)
    bar.set_label("attention weight", color=FAINT, fontsize=9)
    figure.text(0.012, 1 - 0.2 / height, title, color=INK, fontsize=18, fontweight="bold", va="top")
    figure.text(0.012, 1 - 0.58 / height, about.get("sentence", ""), color=INK, fontsize=12, va="top", style="italic")
    figure.text(0.988, 1 - 0.27 / height, made_by, color=FAINT, fontsize=11, va="top", ha="right")
    figure.supylabel("query: the token that looks", color=FAINT, fontsize=11)
    figure.supxlabel("key: the token it looks at", color=FAINT, fontsize=11)
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", type=Path, required=True, metavar="W.npy", help="weights [H, Sq, Skv]")
    parser.add_argument("--tokens", type=Path, required=True, metavar="T.json", help="the tokens")
    parser.add_argument("--out", type=Path, required=True, metavar="OUT.png", help="the picture to write")
    parser.add_argument("--device", default="", help="device that computed the weights, for the title")
    parser.add_argument("--kernel", default="", help="kernel that computed them, for the title")
    parser.add_argument("--columns", type=int, default=4, metavar="N", help="heads in a row (default 4)")
    arguments = parser.parse_args()

    try:
        weights = load_weights(arguments.weights)
        about = load_tokens(arguments.tokens)
        count = len(about["tokens"])
        if weights.shape[1:] != (count, count):
            raise BadInput(f"{arguments.weights} has shape {weights.shape}, but {arguments.tokens} has {count} tokens")
        if arguments.columns < 1:
            raise BadInput(f"--columns is {arguments.columns}, expected 1 or more")
        model = about.get("model", "Attention weights")
        title = f"{model}, layer {about['layer']}" if "layer" in about else model
        made_by = " ".join(["computed by sorot"] + [f"on {arguments.device}"] * bool(arguments.device))
        made_by += f", kernel {arguments.kernel}" if arguments.kernel else ""
        figure = draw(weights, about, title, made_by, arguments.columns)
        figure.savefig(arguments.out, format="png", dpi=110, facecolor=NIGHT)
    except (BadInput, OSError) as error:
        print(f"heatmap.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
