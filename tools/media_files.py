#!/usr/bin/env python3
"""Writes the small pictures and the MP3 file of tests/data/media. Needs Pillow 9 and libsndfile 1.2 (Debian python3-pil,
libsndfile1), which are no part of building and testing.

usage: media_files.py FOLDER
"""
import array
import ctypes
import math
import random
import struct
import sys
import zlib
from pathlib import Path

from PIL import Image

WIDTH, HEIGHT = 32, 16
# Four quadrants: top left, top right, bottom left, bottom right.
COLOURS = ((230, 20, 30), (20, 200, 40), (30, 50, 220), (240, 240, 230))


def colour(x, y):
    return COLOURS[2 * (y >= HEIGHT // 2) + (x >= WIDTH // 2)]


def quadrants():
    image = Image.new("RGB", (WIDTH, HEIGHT))
    image.putdata([colour(x, y) for y in range(HEIGHT) for x in range(WIDTH)])
    return image


def png_of_16_bits(path):
    """Pillow does not write these."""
    rows = b"".join(b"\0" + b"".join(struct.pack(">3H", *(c * 257 for c in colour(x, y))) for x in range(WIDTH))
                    for y in range(HEIGHT))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">2I5B", WIDTH, HEIGHT, 16, 2, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def pictures(folder):
    image = quadrants()
    image.save(folder / "rgb.png")
    image.convert("P", palette=Image.Palette.ADAPTIVE, colors=4).save(folder / "palette.png")
    image.convert("L").save(folder / "grey.png")
    png_of_16_bits(folder / "rgb16.png")
    transparent = image.copy()
    transparent.putalpha(0)  # wholly transparent: the colours must come through
    transparent.save(folder / "rgba.png")
    transparent.convert("LA").save(folder / "grey-alpha.png")
    image.save(folder / "picture.bmp")
    image.save(folder / "picture.jpg", quality=95, subsampling=0)
    image.save(folder / "progressive.jpg", quality=95, subsampling=2, progressive=True)
    image.convert("L").save(folder / "grey.jpg", quality=95)
    image.convert("CMYK").save(folder / "cmyk.jpg", quality=95)
    image.save(folder / "picture.gif", save_all=True, append_images=[Image.new("RGB", (WIDTH, HEIGHT))])
    noise = random.Random(1)
    source = Image.new("RGB", (37, 23))
    source.putdata([tuple(noise.choice((0, 255, noise.randrange(256))) for _ in range(3)) for _ in range(37 * 23)])
    source.save(folder / "noise.png")
    for size in ((20, 61), (96, 48), (5, 3)):
        resized = source.resize(size, Image.Resampling.BICUBIC)
        resized.save(folder / f"noise-{size[0]}x{size[1]}.png")


class SfInfo(ctypes.Structure):
    _fields_ = [("frames", ctypes.c_int64), ("rate", ctypes.c_int), ("channels", ctypes.c_int),
                ("format", ctypes.c_int), ("sections", ctypes.c_int), ("seekable", ctypes.c_int)]


def mp3(path):
    """Half a second: 440 Hz to the left, silence to the right."""
    rate, frames = 24000, 12000
    samples = array.array("f")
    for i in range(frames):
        samples.extend((0.5 * math.sin(2 * math.pi * 440 * i / rate), 0.0))
    library = ctypes.CDLL("libsndfile.so.1")
    library.sf_open.restype = ctypes.c_void_p
    info = SfInfo(0, rate, 2, 0x230000 | 0x0082, 0, 0)  # SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III
    handle = library.sf_open(str(path).encode(), 0x20, ctypes.byref(info))
    if not handle:
        raise OSError("libsndfile cannot write MP3")
    data = (ctypes.c_float * len(samples)).from_buffer(samples)
    library.sf_writef_float(ctypes.c_void_p(handle), data, ctypes.c_int64(frames))
    library.sf_close(ctypes.c_void_p(handle))


def main(arguments):
    if len(arguments) != 1:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    pictures(folder)
    mp3(folder / "tone.mp3")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
