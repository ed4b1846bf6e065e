#!/usr/bin/env python3
"""What storing keys and values as f16 or q8 does to a model's answers, against f32.

usage: kv.py [--bezel build/native/bezel] [--model models/nano.gguf] [--backend gpu] [TEXT]

For each type, over the tokens of TEXT three times: the mean divergence (Kullback-Leibler) of what the model expects next,
and of how many tokens the most likely one is the same.
"""
import argparse
import array
import math
import struct
import subprocess
import tempfile

TEXT = ("Once upon a time there was a small boat on a lake. The boat wanted to see the sea, and so it asked the wind. "
        "The wind said that the sea was far away, but that it would help. A red square is in the picture. What do you "
        "see? I see a red square.")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def log_probabilities(path, tokens):
    """NumPy's form: a header, then float32, tokens x vocabulary."""
    with open(path, "rb") as file:
        data = file.read()
    logits = array.array("f", data[10 + struct.unpack("<H", data[8:10])[0]:])
    vocabulary = len(logits) // tokens
    rows = []
    for at in range(0, len(logits), vocabulary):
        row = logits[at:at + vocabulary]
        most = max(row)
        total = most + math.log(sum(math.exp(v - most) for v in row))
        rows.append([v - total for v in row])
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bezel", default="build/native/bezel")
    parser.add_argument("--model", default="models/nano.gguf")
    parser.add_argument("--backend", default="gpu")
    parser.add_argument("text", nargs="?", default=TEXT)
    options = parser.parse_args()
    some = run(options.bezel, "tokenize", options.model, options.text).strip()
    ids = ",".join(["2"] + 3 * [some])
    tokens = ids.count(",") + 1
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for kv in ("f32", "f16", "q8"):
            path = f"{folder}/{kv}.npy"
            run(options.bezel, "eval", options.model, "--backend", options.backend, "--kv", kv, "--ids", ids, "--logits", path)
            found[kv] = log_probabilities(path, tokens)
    for kv in ("f16", "q8"):
        pairs = list(zip(found["f32"], found[kv]))
        divergence = sum(math.exp(a) * (a - b) for exact, row in pairs for a, b in zip(exact, row)) / tokens
        same = sum(exact.index(max(exact)) == row.index(max(row)) for exact, row in pairs)
        print(f"{kv}: divergence {divergence:.1e} a token, the most likely token is the same for {same} of {tokens}")


main()
