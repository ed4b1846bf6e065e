#!/usr/bin/env python3
"""Cuts the tensors that the tests of src/media compare with out of a full golden file.

usage: media_golden.py GOLDEN.safetensors OUT.safetensors
"""
import json
import struct
import sys

TENSORS = ("image.rgb", "image.pixel_values", "audio.wav", "audio.features")


def main(arguments):
    if len(arguments) != 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    with open(arguments[0], "rb") as file:
        data = file.read()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:start])
    chosen, blobs, offset = {}, [], 0
    for name in TENSORS:
        entry = header[name]
        begin, end = entry["data_offsets"]
        blobs.append(data[start + begin:start + end])
        chosen[name] = {**entry, "data_offsets": [offset, offset + end - begin]}
        offset += end - begin
    text = json.dumps(chosen, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(arguments[1], "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
