#!/usr/bin/env python3
"""Copies some tensors of a safetensors file into a smaller one.

usage: cut_golden.py FROM TO NAME...

tests/data/media.safetensors is image.rgb, audio.wav, audio.features and audio.soft_tokens of the full goldens' tiny-e2b.
"""
import json
import struct
import sys
from pathlib import Path


def main():
    source, target, *names = sys.argv[1:]
    raw = Path(source).read_bytes()
    (length,) = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8:8 + length])
    entries, data = {}, b""
    for name in names:
        begin, end = header[name]["data_offsets"]
        entries[name] = {**header[name], "data_offsets": [len(data), len(data) + end - begin]}
        data += raw[8 + length + begin:8 + length + end]
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    Path(target).write_bytes(struct.pack("<Q", len(text)) + text + data)


if __name__ == "__main__":
    main()
