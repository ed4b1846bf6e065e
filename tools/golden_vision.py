#!/usr/bin/env python3
"""Cuts what the tests of the vision tower need out of larger goldens.

usage: golden_vision.py GOLDEN_DIR NANO_DIR OUT.safetensors

GOLDEN_DIR holds tiny-e2b.golden.safetensors and tiny-26b.golden.safetensors. Pixel values there are multiples of 1/255 in
patches of 16 pixels, padded: they become the picture again that was cut, 8-bit RGB. NANO_DIR holds golden.safetensors and
the pictures it is about; one of them is decoded.
"""
import json
import struct
import sys
import zlib
from array import array
from pathlib import Path

PATCH = 16
MODELS = ("tiny-e2b", "tiny-26b")
NANO_PICTURE = "shapes-and-colours-63-0.png"


def read_safetensors(path):
    """name -> (type, shape, bytes)"""
    data = path.read_bytes()
    length = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:8 + length])
    body = memoryview(data)[8 + length:]
    return {name: (entry["dtype"], entry["shape"], bytes(body[slice(*entry["data_offsets"])]))
            for name, entry in header.items() if name != "__metadata__"}


def write_safetensors(path, tensors):
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))


def picture_of(pixels, places):
    """The picture whose patches these are, as height, width and RGB bytes."""
    places = [places[i:i + 2] for i in range(0, len(places), 2)]
    across = 1 + max(x for x, _ in places)
    down = 1 + max(y for _, y in places)
    rgb = bytearray(across * down * PATCH * PATCH * 3)
    row = across * PATCH * 3
    for n, (x, y) in enumerate(places):
        if x < 0:
            continue
        for py in range(PATCH):
            for i in range(PATCH * 3):
                value = pixels[(n * PATCH + py) * PATCH * 3 + i] * 255
                level = round(value)
                assert abs(value - level) < 1e-3, value
                rgb[(y * PATCH + py) * row + x * PATCH * 3 + i] = level
    return down * PATCH, across * PATCH, bytes(rgb)


def unfilter(kind, line, above, bpp):
    for i in range(len(line)):
        a = line[i - bpp] if i >= bpp else 0
        b = above[i]
        c = above[i - bpp] if i >= bpp else 0
        if kind == 1:
            guess = a
        elif kind == 2:
            guess = b
        elif kind == 3:
            guess = (a + b) // 2
        else:
            p = a + b - c
            guess = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2] if kind == 4 else 0
        line[i] = (line[i] + guess) & 255


def decode_png(path):
    """8-bit RGB without interlacing, which is all that is there."""
    data = path.read_bytes()
    at, packed = 8, b""
    while at < len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlaced = struct.unpack_from(">IIBBBBB", data, at + 8)
            assert (depth, colour, interlaced) == (8, 2, 0), path
        elif kind == b"IDAT":
            packed += data[at + 8:at + 8 + length]
        at += 12 + length
    raw, row, above, out = zlib.decompress(packed), 3 * width, bytearray(3 * width), b""
    for y in range(height):
        line = bytearray(raw[y * (row + 1) + 1:(y + 1) * (row + 1)])
        unfilter(raw[y * (row + 1)], line, above, 3)
        out += line
        above = line
    return height, width, out


def main(arguments):
    if len(arguments) != 3:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    goldens, nano, out = map(Path, arguments)
    tensors = {}
    for model in MODELS:
        golden = read_safetensors(goldens / f"{model}.golden.safetensors")
        height, width, rgb = picture_of(array("f", golden["image.pixel_values"][2]),
                                        array("i", golden["image.image_position_ids"][2]))
        tiny = ("U8", [height, width, 3], rgb)
        assert tensors.setdefault("tiny.rgb", tiny) == tiny, "the models were shown different pictures"
        tensors[f"{model}.soft"] = golden["image.soft_tokens"]
    height, width, rgb = decode_png(nano / NANO_PICTURE)
    tensors["nano.rgb"] = ("U8", [height, width, 3], rgb)
    tensors["nano.soft"] = read_safetensors(nano / "golden.safetensors")[f"{NANO_PICTURE}.soft"]
    write_safetensors(out, tensors)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
