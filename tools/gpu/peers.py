#!/usr/bin/env python3
"""Times others' attention over the benchmark's cases, as the benchmark does: the stream between two events around a call.

    peers.py bench/cases/attention.json --out peers.json

`unfused` is two matrix products of cuBLAS with a softmax between them; the rest are the backends of PyTorch's
scaled_dot_product_attention. What a backend refuses has no time. The peaks are those of matrix products and of a copy.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right
from torch.nn.functional import scaled_dot_product_attention

DTYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION,
            "efficient": SDPBackend.EFFICIENT_ATTENTION}
SECONDS = 0.2  # of calls, for each time


def microseconds(call: Callable[[], Any]) -> float:
    """Mean of one call, each waited for."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    total, calls = 0.0, 0
    stop = time.monotonic() + SECONDS
    while calls < 5 or time.monotonic() < stop:
        begin.record()
        call()
        end.record()
        end.synchronize()
        total += begin.elapsed_time(end) * 1000
        calls += 1
    return total / calls


def peaks() -> dict[str, float]:
    """TFLOP/s of matrix products, GB/s of a copy, bytes read and written counted."""
    found = {}
    for name, n in (("bf16", 8192), ("f32", 4096)):
        a, b = (torch.randn(n, n, dtype=DTYPES[name], device="cuda") for _ in range(2))
        found[name] = 2 * n**3 / microseconds(lambda a=a, b=b: a @ b) / 1e6
    source = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    found["copy"] = 2 * source.numel() / microseconds(lambda: target.copy_(source)) / 1e3
    return found


def times_of(case: dict[str, Any]) -> dict[str, float | None]:
    torch.manual_seed(1)

    def tensor(heads: int, rows: int) -> torch.Tensor:
        return torch.randn(case["B"], heads, rows, case["D"], dtype=DTYPES[case["dtype"]], device="cuda")

    queries, keys = case["Sq"], case["Skv"]
    q, k, v = tensor(case["H"], queries), tensor(case["Hkv"], keys), tensor(case["Hkv"], keys)
    last_rows = case.get("align", "top_left") == "bottom_right"
    causal = case.get("causal", False) and not (last_rows and queries == 1)  # then the only row sees all keys
    mask: dict[str, Any] = {}
    if causal:
        plain = not last_rows or queries == keys
        mask = {"is_causal": True} if plain else {"attn_mask": causal_lower_right(queries, keys)}

    # Heads repeated, and the mask made, before the clock starts.
    group = case["H"] // case["Hkv"]
    wide_k, wide_v = (x.repeat_interleave(group, dim=1).contiguous() for x in (k, v))
    first = keys - queries if last_rows else 0
    hidden = torch.ones(queries, keys, dtype=torch.bool, device="cuda").triu(first + 1) if causal else None

    def unfused() -> torch.Tensor:
        scores = (q @ wide_k.transpose(-1, -2)).mul_(case["D"] ** -0.5)
        if hidden is not None:
            scores.masked_fill_(hidden, float("-inf"))
        return torch.softmax(scores, dim=-1) @ wide_v

    result: dict[str, float | None] = {}
    try:
        result["unfused"] = microseconds(unfused)
    except torch.cuda.OutOfMemoryError:  # all scores at once, 17 GB of 16k tokens
        result["unfused"] = None
    for name, backend in BACKENDS.items():
        try:
            with sdpa_kernel([backend]):
                result[name] = microseconds(lambda: scaled_dot_product_attention(q, k, v, enable_gqa=group > 1, **mask))
        except RuntimeError as refusal:  # no kernel for this dtype or shape
            print(f"{case['name']}, {name}: {str(refusal).splitlines()[0]}")
            result[name] = None
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("cases", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    report = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "peaks": peaks(), "microseconds": {}}
    for case in json.loads(options.cases.read_text()):
        report["microseconds"][case["name"]] = times_of(case)
        options.out.write_text(json.dumps(report, indent=1))  # what there is, should time run out


if __name__ == "__main__":
    main()
