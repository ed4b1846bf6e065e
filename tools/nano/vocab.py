"""The vocabulary of the nano model: byte-fallback BPE in Gemma's manner.  vocab.py [--train]

No piece crosses a word boundary, and digits stay single, so a text can be encoded word by word (and remembered). That is
the same as merging over the whole text, which is what the engine does: no merge joins the parts.
"""
import collections
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PATH = os.path.join(HERE, "vocabulary.json")
SIZE = 3072
SPACE = "\u2581"
SPECIALS = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<|tool>", "<tool|>", "<|tool_call>", "<tool_call|>",
            "<|tool_response>", "<tool_response|>", '<|"|>', "<|think|>", "<|channel>", "<channel|>", "<|turn>", "<turn|>",
            "<|image>", "<|audio>", "<|image|>", "<|audio|>", "<image|>", "<audio|>", "<|video|>"]
USER_DEFINED = {"<|tool_call>", "<tool_call|>", "<|tool_response>", "<tool_response|>", '<|"|>', "<|channel>", "<channel|>"}
OTHER_CHARACTERS = "\n\t°×÷£€éèüöäñç’‘“”–—…"
# Units that no merge crosses: newlines, a word with the space before it, or a single character.
UNIT = re.compile(rf"\n+|{SPACE}?[A-Za-z]+|.", re.S)


class Encoder:
    def __init__(self, vocabulary):
        self.pieces = vocabulary["pieces"]
        self.ids = {piece: i for i, piece in enumerate(self.pieces)}
        self.special = {piece: self.ids[piece] for piece in SPECIALS}
        self.ranks = {tuple(merge.split(" ")): i for i, merge in enumerate(vocabulary["merges"])}
        self.known = {}

    def unit(self, unit):
        symbols = list(unit)
        while len(symbols) > 1:
            rank, at = min((self.ranks.get(pair, 1 << 30), i) for i, pair in enumerate(zip(symbols, symbols[1:])))
            if rank == 1 << 30:
                break
            symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]
        ids = []
        for symbol in symbols:
            if symbol in self.ids:
                ids.append(self.ids[symbol])
            else:
                ids += [self.ids[f"<0x{byte:02X}>"] for byte in symbol.encode("utf-8", "replace")]
        return ids

    def encode(self, text):
        ids = []
        for unit in UNIT.findall(text.replace(" ", SPACE)):
            known = self.known.get(unit)
            if known is None:
                known = self.known[unit] = self.unit(unit)
            ids += known
        return ids

    def decode(self, ids):
        out = b""
        for i in ids:
            piece = self.pieces[i]
            if i < len(SPECIALS):
                out += piece.encode() if piece not in ("<pad>",) else b""
            elif re.fullmatch(r"<0x[0-9A-F]{2}>", piece):
                out += bytes([int(piece[3:5], 16)])
            else:
                out += piece.replace(SPACE, " ").encode()
        return out.decode("utf-8", "replace")


def load():
    with open(PATH) as f:
        return Encoder(json.load(f))


def train(texts):
    counts = collections.Counter()
    for text in texts:
        counts.update(UNIT.findall(text.replace(" ", SPACE)))
    pieces = SPECIALS + [f"<0x{byte:02X}>" for byte in range(256)]
    pieces += [SPACE] + [chr(c) for c in range(33, 127)] + list(OTHER_CHARACTERS)
    merges = ["\n \n"]
    pieces.append("\n\n")
    words = [(list(unit), count) for unit, count in counts.items() if len(unit) > 1 and re.search("[A-Za-z]", unit)]
    where, pairs = collections.defaultdict(set), collections.Counter()
    for w, (symbols, count) in enumerate(words):
        for pair in zip(symbols, symbols[1:]):
            pairs[pair] += count
            where[pair].add(w)
    taken = set(pieces)
    while len(pieces) < SIZE:
        (left, right), count = max(pairs.items(), key=lambda item: (item[1], item[0]))
        if count < 2:
            break
        merges.append(f"{left} {right}")
        if left + right not in taken:
            taken.add(left + right)
            pieces.append(left + right)
        for w in list(where[left, right]):
            symbols, count = words[w]
            for pair in zip(symbols, symbols[1:]):
                pairs[pair] -= count
            at, merged = 0, []
            while at < len(symbols):
                if at + 1 < len(symbols) and symbols[at] == left and symbols[at + 1] == right:
                    merged.append(left + right)
                    at += 2
                else:
                    merged.append(symbols[at])
                    at += 1
            words[w] = (merged, count)
            for pair in zip(merged, merged[1:]):
                pairs[pair] += count
                where[pair].add(w)
        del pairs[left, right]
        where.pop((left, right))
    pieces += [f"<unused{i}>" for i in range(SIZE - len(pieces))]
    return {"pieces": pieces, "merges": merges}


def types(pieces):
    """GGUF's token types, as llama.cpp's converter gives them."""
    out = []
    for i, piece in enumerate(pieces):
        if piece == "<unk>":
            out.append(2)
        elif piece in USER_DEFINED:
            out.append(4)
        elif i < len(SPECIALS):
            out.append(3)
        else:
            out.append(6 if re.fullmatch(r"<0x[0-9A-F]{2}>", piece) else 1)
    return out


def main():
    import random
    import skills
    import media_data

    rng = random.Random(1)
    texts = []
    for _ in range(60000):
        exchange = skills.any_exchange(rng)
        for items in (exchange.user, exchange.answer, [exchange.system or "", exchange.result or "", exchange.final or ""]):
            texts.append("".join(i for i in items if type(i) is str))
        texts += [t["name"] + " " + t["description"] for t in exchange.tools]
    for _ in range(15000):
        spec = media_data.picture(rng)
        texts += [f"{q} {a}" for q, a in media_data.picture_questions(rng, spec)]
        texts.append(media_data.sentence(rng))
    for word, (kind, text) in skills.WORDS.items():
        texts += [f" {word} ({kind}): {text}."] * 3
    vocabulary = train(texts)
    vocabulary["types"] = types(vocabulary["pieces"])
    with open(PATH, "w") as f:
        json.dump(vocabulary, f, ensure_ascii=False, indent=None, separators=(",", ":"))
    encoder = load()
    sample = "".join(texts[:4000])
    print(len(vocabulary["pieces"]), "pieces,", len(vocabulary["merges"]), "merges,",
          round(len(sample) / len(encoder.encode(sample)), 2), "characters a token")


if __name__ == "__main__" and "--train" in sys.argv:
    main()
