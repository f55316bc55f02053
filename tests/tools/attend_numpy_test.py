"""`sorot attend` against attention written in NumPy, in double precision, on random problems over all its options.

Usage: attend_numpy_test.py SOROT [PROBLEMS] [SEED]

The arithmetic here follows the contract in include/sorot/attention.h and shares nothing with the library. It also
checks that NumPy reads what sorot writes and that the header has the bytes numpy.save would have written.
"""

import io
import itertools
import os
import subprocess
import sys
import tempfile

import numpy as np

UNIT = {"fp64": 2.0**-52, "fp32": 2.0**-23, "fp16": 2.0**-10, "bf16": 2.0**-7}


def round_bf16(x):
    """Nearest even on 8 significant bits, with float32's exponents."""
    x = np.asarray(x, np.float64)
    with np.errstate(all="ignore"):
        exponent = np.frexp(x)[1]
        step = np.ldexp(1.0, np.maximum(exponent - 8, -133))
        rounded = np.rint(x / step) * step
        rounded = np.where(np.abs(rounded) >= 2.0**128, np.sign(x) * np.inf, rounded)
    return np.where(np.isfinite(x), rounded, x)


def rounded(x, dtype):
    with np.errstate(over="ignore"):
        if dtype == "bf16":
            return round_bf16(x)
        return x.astype({"fp64": "f8", "fp32": "f4", "fp16": "f2"}[dtype]).astype("f8")


def attend(p):
    """out, weights, lse of a problem with rank 4 q, k, v in float64, and the largest |score|."""
    q, k, v = p["q"], p["k"], p["v"]
    batch, heads, queries, dim = q.shape
    keys = k.shape[2]
    group = heads // k.shape[1] if heads else 1
    out = np.zeros((batch, heads, queries, v.shape[3]))
    weights = np.zeros((batch, heads, queries, keys))
    lse = np.full((batch, heads, queries), -np.inf)
    largest = 0.0
    mask = np.broadcast_to(p.get("mask", np.True_) != 0, weights.shape)
    bias = np.broadcast_to(p.get("bias", np.zeros(())), weights.shape)
    j = np.arange(keys)
    for b, h, i in itertools.product(range(batch), range(heads), range(queries)):
        length = p["lengths"][b] if "lengths" in p else keys
        offset = p["offsets"][b] if "offsets" in p else length - queries if p.get("bottom_right") else 0
        position = i + offset
        seen = (j < length) & mask[b, h, i] & (bias[b, h, i] != -np.inf)
        if p.get("causal"):
            seen &= j <= position
        left, right = p.get("window", (-1, -1))
        if left >= 0:
            seen &= j >= position - left
        if right >= 0:
            seen &= j <= position + right
        sink = p["sinks"][h] if "sinks" in p else -np.inf
        chosen = np.flatnonzero(seen)
        with np.errstate(invalid="ignore", over="ignore"):
            s = p.get("scale", dim**-0.5) * (k[b, h // group, chosen] @ q[b, h, i])
            if p.get("softcap", 0) > 0:
                s = p["softcap"] * np.tanh(s / p["softcap"])
            s = s + bias[b, h, i, chosen]
            if "alibi" in p:
                s = s - p["alibi"][h] * np.abs(position - chosen)
            logits = np.append(s, sink)
            if np.isnan(logits).any() or (logits == np.inf).any():
                out[b, h, i], weights[b, h, i, chosen], lse[b, h, i] = np.nan, np.nan, np.nan
                continue
            if not (s > -np.inf).any():
                lse[b, h, i] = sink
                continue
            largest = max(largest, np.abs(s[np.isfinite(s)]).max())
            m = logits.max()
            z = np.exp(logits - m).sum()
            w = np.exp(s - m) / z
            weights[b, h, i, chosen] = w
            out[b, h, i] = w @ v[b, h // group, chosen]
            lse[b, h, i] = m + np.log(z)
    return out, weights, lse, largest


def save(path, array, rng):
    """In C or Fortran order."""
    np.save(path, np.asfortranarray(array) if rng.random() < 0.3 else np.ascontiguousarray(array))


def random_file(shape, rng, spread=1.0):
    return (rng.standard_normal(shape) * spread).astype(rng.choice(["f2", "f4", "f8"]))


def broadcastable(full, rng):
    """A shape of rank <= 4 that broadcasts to the full one."""
    shape = [1 if rng.random() < 0.4 else size for size in full]
    return tuple(shape[rng.integers(0, 5) :])


def random_problem(folder, rng):
    """Writes the files of a problem; returns the options and what they mean, rounded."""
    dtype = str(rng.choice(list(UNIT)))
    wide = "f8" if dtype == "fp64" else "f4"
    rank = int(rng.integers(2, 5))
    batch = int(rng.integers(0 if rng.random() < 0.1 else 1, 4)) if rank == 4 else 1
    kv_heads, group = (int(rng.integers(1, 4)), int(rng.integers(1, 4))) if rank >= 3 else (1, 1)
    heads = kv_heads * group
    queries, keys = (int(n) for n in rng.integers(0 if rng.random() < 0.1 else 1, 12, 2))
    dim, value_dim = (int(n) for n in rng.integers(1, 20, 2))
    options = ["--dtype", dtype] if dtype != "fp32" or rng.random() < 0.5 else []
    p = {}

    def add(option, value):
        options.extend([f"{option}={value}"] if rng.random() < 0.5 else [option, str(value)])

    def add_file(option, array):
        path = os.path.join(folder, option[2:] + ".npy")
        save(path, array, rng)
        add(option, path)

    spread = float(rng.choice([0.3, 1.0, 4.0]))
    shapes = {"q": (batch, heads, queries, dim), "k": (batch, kv_heads, keys, dim)}
    shapes["v"] = (batch, kv_heads, keys, value_dim)
    for name, shape in shapes.items():
        array = random_file(shape, rng, spread)
        if name != "q" and array.size and rng.random() < 0.05:
            array.flat[rng.integers(array.size)] = rng.choice([np.nan, np.inf, -np.inf])
        p[name] = rounded(array, dtype)
        add_file("--" + name, array.reshape(shape[4 - rank :]))

    pairs = (batch, heads, queries, keys)
    if rng.random() < 0.4:
        p["mask"] = rng.random(broadcastable(pairs, rng)) < 0.7
        add_file("--mask", np.array(p["mask"], "?"))
    if rng.random() < 0.4:
        bias = np.array(random_file(broadcastable(pairs, rng), rng))
        if bias.size and rng.random() < 0.5:
            bias.flat[rng.integers(bias.size)] = rng.choice([-np.inf, -3e4, np.inf])
        p["bias"] = bias.astype(wide).astype("f8")
        add_file("--bias", bias)
    for option, name in (("--alibi", "alibi"), ("--sinks", "sinks")):
        if rng.random() < 0.3:
            array = random_file((heads,), rng)
            if name == "sinks" and heads and rng.random() < 0.2:
                array[rng.integers(heads)] = -np.inf
            p[name] = array.astype("f4").astype("f8")
            add_file(option, array)
    if rng.random() < 0.4:
        p["lengths"] = rng.integers(0, keys + 1, batch)
        if rng.random() < 0.5 or batch == 0:
            add_file("--kv-lengths", p["lengths"].astype(rng.choice(["i4", "i8"])))
        else:
            add("--kv-lengths", ",".join(map(str, p["lengths"])))
    align = rng.choice(["", "top-left", "bottom-right", "offsets"])
    if align == "offsets":
        far = rng.random() < 0.1
        low, high = (-(2**31), 2**31) if far else (-8, 9)
        p["offsets"] = rng.integers(low, high, batch)
        if rng.random() < 0.5 or batch == 0:
            add_file("--align-offsets", p["offsets"].astype(rng.choice(["i4", "i8"])))
        else:
            add("--align-offsets", ",".join(map(str, p["offsets"])))
    elif align:
        add("--align", align)
        p["bottom_right"] = align == "bottom-right"
    if rng.random() < 0.4:
        options.append("--causal")
        p["causal"] = True
    if rng.random() < 0.4:
        p["window"] = [int(n) for n in rng.integers(-1, 6, 2)]
        add("--window", "{},{}".format(*p["window"]))
    if rng.random() < 0.4:
        scale = float(rng.choice([0.0, -0.5, 0.25, 1.0, rng.standard_normal()]))
        p["scale"] = float(np.dtype(wide).type(scale))
        add("--scale", repr(scale))
    if rng.random() < 0.3:
        softcap = float(rng.choice([0.0, 1.0, 2.5, 30.0]))
        p["softcap"] = softcap
        add("--softcap", repr(softcap))
    if rng.random() < 0.3:
        add("--device", rng.choice(["auto", "reference"]))
    if rng.random() < 0.2:
        add("--kernel", "attention_reference")
    return options, p, dtype, rank


def check_file(path, shape, wide):
    """The array of a file that must be what numpy.save writes, byte for byte."""
    array = np.load(path)
    assert array.dtype == np.dtype("<" + wide), f"{path}: dtype {array.dtype}"
    assert array.shape == tuple(shape), f"{path}: shape {array.shape}, expected {tuple(shape)}"
    expected = io.BytesIO()
    np.save(expected, array)
    with open(path, "rb") as file:
        assert file.read() == expected.getvalue(), f"{path}: not the bytes of numpy.save"
    return array.astype("f8")


def compare(name, got, expected, allowed):
    got = got.reshape(expected.shape)
    same = (got == expected) | (np.isnan(got) & np.isnan(expected))
    if name == "out":  # an attended value of Inf or NaN makes a result not finite, either way
        same |= ~np.isfinite(expected) & ~np.isfinite(got)
    with np.errstate(invalid="ignore"):
        error = np.where(same, 0.0, np.abs(got - expected))
    assert (error <= allowed).all(), f"{name}: error {np.max(error)}, allowed {allowed}"


def run_problem(sorot, folder, rng):
    options, p, dtype, rank = random_problem(folder, rng)
    wide = "f8" if dtype == "fp64" else "f4"
    wanted = [name for name in ("out", "weights", "lse") if rng.random() < 0.7]
    command = [sorot, "attend"] + options
    for name in wanted:
        command += ["--" + name, os.path.join(folder, name + ".result.npy")]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    try:
        assert done.returncode == 0, done.stderr
        assert done.stdout == "" and done.stderr.count("\n") == 1, (done.stdout, done.stderr)
        out, weights, lse, largest = attend(p)
        high = np.abs(p["v"][np.isfinite(p["v"])]).max(initial=1e-30)
        # Rounding a score by one unit of float32 moves its weight by that factor.
        relative = 1e-15 * (1 + largest) * 50 if dtype == "fp64" else 1e-6 * (1 + largest * p["q"].shape[3] ** 0.5)
        for name, expected, scale in (("out", out, high), ("weights", weights, 1.0), ("lse", lse, 1 + largest)):
            if name not in wanted:
                continue
            shape = expected.shape[4 - rank :]
            storage = UNIT[dtype] if name == "out" else 0.0
            got = check_file(os.path.join(folder, name + ".result.npy"), shape, wide)
            compare(name, got, expected, (relative + storage) * scale)
    except AssertionError:
        print("failed:", " ".join(command), file=sys.stderr)
        raise


def main():
    sorot = sys.argv[1]
    problems = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    for index in range(problems):
        with tempfile.TemporaryDirectory() as folder:
            run_problem(sorot, folder, np.random.default_rng([seed, index]))
    print(f"{problems} problems agree")


if __name__ == "__main__":
    main()
