"""Makes what training needs from Debian packages:  prepare.py [--words] [--glyphs] [--speech]

Needs python3-numpy, python3-pil, wordnet-base, libespeak-ng-dev, fonts-dejavu-core, fonts-dejavu-extra, fonts-liberation2.
--words   words.json     common words with one short definition each, from WordNet
--glyphs  glyphs.npz     letters and digits of some fonts as grey pictures
--speech  ../../kit-nano espeak-ng with its libraries and English voices, to run on a machine that has none of them
"""
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
KIT = os.path.join(HERE, "..", "..", "kit-nano")
WORDNET = "/usr/share/wordnet"
GLYPHS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
CELL = 48  # a glyph's picture; capitals are about 34 high
FONTS = [
    "dejavu/DejaVuSans", "dejavu/DejaVuSans-Bold", "dejavu/DejaVuSerif", "dejavu/DejaVuSansMono-Bold",
    "liberation2/LiberationSans-Regular", "liberation2/LiberationSans-Bold", "liberation2/LiberationSerif-Regular",
    "liberation2/LiberationSerif-Bold", "liberation2/LiberationMono-Bold",
]
UNWANTED = re.compile(
    r"sex|genital|vulgar|slur|offensive|obscen|disparag|coitus|prostitut|penis|vagina|anus|breast|naked|excre|feces|"
    r"urin|kill|murder|suicid|rape|drug|race|Negro|Jew|Nazi|slave|torture|corpse|homosex|intercourse|narcotic|"
    r"genus|trade ?mark|taxonom|order of|logarithm", re.I)
NAMES = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
WANTED_WORDS = 2200


def sense_counts():
    counts = {}
    for line in open(f"{WORDNET}/cntlist.rev"):
        key, _, count = line.split()
        lemma, rest = key.split("%")
        kind = {"1": "noun", "2": "verb", "3": "adj", "5": "adj", "4": "adv"}[rest[0]]
        counts[lemma, kind] = counts.get((lemma, kind), 0) + int(count)
    return counts


def glosses(kind):
    first = {}
    for line in open(f"{WORDNET}/index.{kind}"):
        if line.startswith(" "):
            continue
        fields = line.split()
        pointers = int(fields[3])
        first[fields[0]] = int(fields[6 + pointers])
    data = open(f"{WORDNET}/data.{kind}", "rb").read()
    for lemma, offset in first.items():
        line = data[offset : data.index(b"\n", offset)].decode()
        yield lemma, line.split(" | ", 1)[1].strip()


def short(gloss):
    text = re.split(r"; \"|;", gloss)[0]
    text = re.sub(r"^\([^)]*\)\s*", "", text).strip().strip('"')
    return re.sub(r"\s*\([^)]*\)", "", text).strip()


def words():
    counts = sense_counts()
    best = {}
    for kind in NAMES:
        for lemma, gloss in glosses(kind):
            if not re.fullmatch(r"[a-z]{3,11}", lemma):
                continue
            text = short(gloss)
            if not 12 <= len(text) <= 58 or UNWANTED.search(gloss) or UNWANTED.search(lemma):
                continue
            if not re.fullmatch(r"[A-Za-z ,'-]+", text) or re.search(rf"\b{lemma}", text):
                continue
            count = counts.get((lemma, kind), 0)
            if count > best.get(lemma, (0,))[0]:
                best[lemma] = (count, kind, text)
    chosen = sorted(best.items(), key=lambda item: (-item[1][0], item[0]))
    known = {lemma: [kind, text] for lemma, (_, kind, text) in chosen[:WANTED_WORDS]}
    rare = [lemma for lemma, _ in chosen[-2500::4] if len(lemma) > 5]
    with open(os.path.join(HERE, "words.json"), "w") as f:
        f.write('{"source": "WordNet 3.0, Princeton University",\n"words": {\n')
        f.write(",\n".join(f"{json.dumps(w)}: {json.dumps(d)}" for w, d in known.items()))
        f.write('\n},\n"unknown": ' + json.dumps(rare) + "}\n")
    print(len(known), "words,", len(rare), "left unknown; the rarest known:", list(known)[-5:])


def glyphs():
    import numpy as np
    from PIL import Image, ImageDraw, ImageFont

    pictures = np.zeros((len(FONTS), len(GLYPHS), CELL, CELL), np.uint8)
    widths = np.zeros((len(FONTS), len(GLYPHS)), np.uint8)
    for f, name in enumerate(FONTS):
        font = ImageFont.truetype(f"/usr/share/fonts/truetype/{name}.ttf", 42)
        top = font.getbbox("H")[1]
        for g, glyph in enumerate(GLYPHS):
            picture = Image.new("L", (CELL, CELL))
            left = font.getbbox(glyph)[0]
            ImageDraw.Draw(picture).text((1 - min(left, 0), 3 - top), glyph, 255, font)
            pictures[f, g] = np.asarray(picture)
            widths[f, g] = min(CELL, round(font.getlength(glyph)) + 2)
    np.savez_compressed(os.path.join(HERE, "glyphs.npz"), pictures=pictures, widths=widths)
    print(pictures.shape, "widest", widths.max())


def speech():
    shutil.rmtree(KIT, ignore_errors=True)
    os.makedirs(f"{KIT}/lib")
    binary = f"{KIT}/speak"
    subprocess.check_call(["cc", "-O2", os.path.join(HERE, "speak.c"), "-lespeak-ng", "-o", binary])
    for line in subprocess.check_output(["ldd", binary], text=True).splitlines():
        found = re.search(r"(/\S+) \(0x", line)
        if found:
            shutil.copy(found.group(1), f"{KIT}/lib/")
    shutil.move(f"{KIT}/lib/ld-linux-x86-64.so.2", f"{KIT}/ld.so")
    data = "/usr/lib/x86_64-linux-gnu/espeak-ng-data"
    for part in ("phondata", "phondata-manifest", "phonindex", "phontab", "intonations", "en_dict"):
        os.makedirs(f"{KIT}/espeak-ng-data", exist_ok=True)
        shutil.copy(f"{data}/{part}", f"{KIT}/espeak-ng-data/")
    shutil.copytree(f"{data}/voices/!v", f"{KIT}/espeak-ng-data/voices/!v")
    os.makedirs(f"{KIT}/espeak-ng-data/lang/gmw")
    for name in os.listdir(f"{data}/lang/gmw"):
        if name.startswith("en"):
            shutil.copy(f"{data}/lang/gmw/{name}", f"{KIT}/espeak-ng-data/lang/gmw/")
    size = sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(KIT) for f in files)
    print("kit-nano:", size, "bytes")


if __name__ == "__main__":
    wanted = sys.argv[1:] or ["--words", "--glyphs", "--speech"]
    for part in wanted:
        {"--words": words, "--glyphs": glyphs, "--speech": speech}[part]()
