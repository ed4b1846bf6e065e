"""Held-out questions put to the model: its scores, and the tests made of its answers."""
import io
import json
import os
import random
import struct
import tarfile
import time
import zlib

import numpy as np

import rows
from clock import say

CHOICES = ["Q8_0", "Q6_K", "Q5_0", "Q4_0"]


class Examiner:
    def __init__(self, trainer):
        self.torch, self.options, self.device = trainer.torch, trainer.options, trainer.device
        self.model, self.nano, self.encoder = trainer.model, trainer.nano, trainer.encoder
        self.renderer, self.features, self.waves = trainer.renderer, trainer.features, trainer.waves

    def questions(self, data, count):
        import render
        torch = self.torch
        self.asked = {"text": rows.text_questions(count), "pictures": [], "speech": []}
        for name in rows.picture_kinds():
            for size in ((384, 384), (432, 336)):
                rng = random.Random(f"scores {name} {size}")
                source = {(384, 384): (224, 224), (432, 336): (320, 240)}[size] if name != "shapes and colours" else size
                made = [rows.picture_question(rng, name, render.soft_tokens(size)) for _ in range(max(1, count // 2))]
                made.sort(key=lambda m: m[3][-1])  # without noise first: those make small files
                picture, _ = self.renderer.draw(torch.tensor([m[3] for m in made]), source)
                self.asked["pictures"].append((name, size, picture.to(torch.uint8), made))
        held = [pair for part in data.collect("held") for pair in part] if "held" in data.waiting else []
        kinds = {"digits": "spoken digits", "words": "spoken words"}
        for clip, sound in held:
            ids, text, question = rows.speech_question(clip, len(sound))
            self.asked["speech"].append((kinds[clip["kind"]], ids, text, question, sound))
        if held:
            self.held_wave, self.held_length = self.waves([s for _, s in held])
            # Clean and with noise, by turns.
            import sound as sound_module
            torch.manual_seed(11)
            wave = self.held_wave.float() / 32768
            rough = sound_module.roughen(wave, self.held_length)
            wave = torch.where((torch.arange(len(held), device=self.device) % 2 == 1)[:, None], rough, wave)
            self.held_wave = (wave * 32768).round().clamp(-32768, 32767).to(torch.int16)

    def answers(self, stories=True):
        items = []
        long_ = ("tools", "tool answers")  # their prompts are; the others need not pay for it
        for group, limit in (((), 64), (long_, 64), (("stories",), 170)):
            chosen = [q for q in self.asked["text"] if (q[0] in group if group else q[0] not in long_ + ("stories",))]
            if not chosen or "stories" in group and not stories:
                continue
            given = self.reply([q[1] for q in chosen], limit)
            items += [(q[0], q[2], q[3], self.encoder.decode(g)) for q, g in zip(chosen, given)]
        for name, made, soft, _ in self.seen():
            given = self.reply([m[0] for m in made], 56, image=soft)
            items += [(n, m[1], "shapes" if n == "shapes and colours" else "exact", self.encoder.decode(g)) for n, m, g in zip(name, made, given)]
        if self.asked["speech"]:
            given = self.reply([q[1] for q in self.asked["speech"]], 40, audio=self.heard()[0])
            items += [(q[0], q[2], "words", self.encoder.decode(g)) for q, g in zip(self.asked["speech"], given)]
        return items

    def reply(self, prompts, limit, **soft):
        import scoring
        # An untrained model does not know when to stop.
        return scoring.answer(self.nano, self.encoder, prompts, 6 if self.options.smoke else limit, **soft)

    def seen(self, most=None):
        """By size: skills, questions, soft tokens and pictures."""
        torch = self.torch
        for size in {entry[1]: None for entry in self.asked["pictures"]}:
            names, questions, soft, pictures = [], [], [], []
            for name, _, picture, made in (e for e in self.asked["pictures"] if e[1] == size):
                with torch.no_grad():
                    values, positions = self.renderer.patches(self.renderer.resize(picture[:most].float(), size))
                    soft += list(self.nano.see(values, positions))
                names += [name] * len(picture[:most])
                questions += made[:most]
                pictures += list(picture[:most])
            yield names, questions, soft, pictures

    def heard(self):
        """Soft tokens and features of every held-out clip."""
        with self.torch.no_grad():
            features, mask = self.features(self.held_wave.float() / 32768, self.held_length)
            soft, real = self.nano.hear(features, mask)
        return [s[r] for s, r in zip(soft, real)], [f[m] for f, m in zip(features, mask)]

    def score(self, out, deadline):
        """As trained, then with weights rounded. The model keeps its trained weights."""
        import model
        import scoring
        kept = {name: value.clone() for name, value in self.model.state_dict().items()}
        scores = {}
        for kind in ["float"] + CHOICES:
            if time.time() > deadline:
                say("no time for the scores of", kind)
                continue
            size = None
            if kind != "float":
                state, size = model.quantised_state(self.model, kind)
                self.model.load_state_dict(state, strict=False)
            began = time.time()
            items = self.answers(stories=kind == "float")
            self.model.load_state_dict(kept, strict=False)
            scores[kind] = {"bytes": size, "skills": scoring.tally(items)}
            say(f"scores with {kind}, about {size} bytes, in {time.time() - began:.0f} s\n" + scoring.table(scores[kind]["skills"]))
            if kind == "float":
                shown = {}
                for skill, expected, check, given in items:
                    if shown.setdefault(skill, 0) < 3:
                        shown[skill] += 1
                        print(f"    {skill}: {given!r}" + ("" if given == expected else f"  expected {expected!r}"), flush=True)
                scores["float"]["answers"] = [list(i) for i in items]
            with open(f"{out}/scores.json", "w") as f:
                json.dump(scores, f, indent=1)

    def tests(self, out, most=6):
        """Held-out pictures and clips with what transformers makes of them, computed with the halves that were saved."""
        import model
        torch = self.torch
        kept = {name: value.clone() for name, value in self.model.state_dict().items()}
        state = {name: (value.half().float() if model.is_quantised(name, value) else value) for name, value in kept.items()}
        self.model.load_state_dict(state, strict=False)
        tensors, listing = {}, []
        with tarfile.open(f"{out}/tests.tar", "w") as tar, torch.no_grad():
            def put(name, data):
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))

            for names, made, soft, pictures in self.seen(most):
                given = self.reply([m[0] for m in made], 56, image=soft)
                for i, (name, (ids, expected, question, _)) in enumerate(zip(names, made)):
                    file = f"{name.replace(' ', '-')}-{len(soft[i])}-{i}.png"
                    put(file, png(pictures[i].cpu().numpy()))
                    listing.append({"picture": file, "skill": name, "question": question, "ids": ids, "expected": expected,
                                    "given": self.encoder.decode(given[i]), "soft_tokens": len(soft[i])})
                    if i % most == 0:
                        tensors[f"{file}.soft"] = soft[i].float()
            count = {}
            if self.asked["speech"]:
                soft, features = self.heard()
                given = self.reply([q[1] for q in self.asked["speech"]], 40, audio=soft)
                for i, (name, ids, expected, question, _) in enumerate(self.asked["speech"]):
                    count[name] = count.get(name, 0) + 1
                    if count[name] > most:
                        continue
                    file = f"{name.replace(' ', '-')}-{i}.wav"
                    put(file, wav(self.held_wave[i, : int(self.held_length[i])].cpu().numpy()))
                    listing.append({"sound": file, "skill": name, "question": question, "ids": ids, "expected": expected,
                                    "given": self.encoder.decode(given[i]), "soft_tokens": len(soft[i])})
                    if count[name] == 1:
                        tensors[f"{file}.soft"] = soft[i].float()
                        tensors[f"{file}.features"] = features[i].float()
            seen = {}
            chosen = [q for q in self.asked["text"] if seen.setdefault(q[0], []) is not None and len(seen[q[0]]) < most and not seen[q[0]].append(1)]
            given = self.reply([q[1] for q in chosen], 170)
            for i, (q, g) in enumerate(zip(chosen, given)):
                listing.append({"skill": q[0], "prompt": self.encoder.decode(q[1]), "ids": q[1], "expected": q[2], "given": self.encoder.decode(g), "given_ids": g})
                if i % most == 0:
                    ids = torch.tensor([q[1] + g], device=self.device)
                    tensors[f"text-{i}.ids"] = ids[0].to(torch.int32)
                    tensors[f"text-{i}.logits"] = self.nano.logits(self.nano.hidden(ids))[0, -2:].float()
            put("questions.json", json.dumps(listing, indent=1).encode())
            model.write_safetensors(f"{out}/golden.tmp", tensors)
            with open(f"{out}/golden.tmp", "rb") as f:
                put("golden.safetensors", f.read())
        os.remove(f"{out}/golden.tmp")
        self.model.load_state_dict(kept, strict=False)
        say("tests.tar:", os.path.getsize(f"{out}/tests.tar"), "bytes,", len(listing), "questions")


def png(picture):
    """H x W x 3 bytes as a PNG file."""
    height, width, _ = picture.shape
    lines = b"".join(b"\0" + picture[y].tobytes() for y in range(height))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(lines, 9))
            + chunk(b"IEND", b""))


def wav(samples):
    data = np.asarray(samples, "<i2").tobytes()
    return (b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 16000, 32000, 2, 16) + b"data"
            + struct.pack("<I", len(data)) + data)
