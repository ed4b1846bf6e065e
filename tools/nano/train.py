"""Trains the nano model:  train.py [--minutes 9] [--out FOLDER] [--smoke]

Needs torch and transformers with gemma4, the folder kit-nano (see prepare.py) and some processor cores; nothing else of
what it reads is outside this folder. Ends, with everything written, before --minutes are over. --smoke runs every stage in
about a minute on little data and goes on after a failure, so that one run shows all of them.
"""
import argparse
import io
import json
import math
import multiprocessing
import os
import random
import struct
import sys
import tarfile
import time
import traceback
import zlib

BEGAN = time.time()
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import numpy as np  # noqa: E402

import media_data  # noqa: E402
import rows  # noqa: E402

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789 "
CHOICES = ["Q8_0", "Q6_K", "Q5_0", "Q4_0"]


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--minutes", type=float, default=9.0, help="wall-clock limit for everything")
    parser.add_argument("--reserve", type=float, default=80, help="seconds kept for scores and files at the end")
    parser.add_argument("--out", default=os.environ.get("OUT", "build/nano"))
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--text", type=int, default=96, help="rows a step")
    parser.add_argument("--pictures", type=int, default=64)
    parser.add_argument("--speech", type=int, default=48)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--device", default=None)
    parser.add_argument("--steps", type=int, default=None, help="stop after so many")
    parser.add_argument("--compile", action="store_true", help="torch.compile of the text layers")
    parser.add_argument("--init", help="a folder that an earlier run wrote: train on from there, with fresh data")
    parser.add_argument("--help-weight", type=float, default=0.3, help="of the helper losses, at the start")
    parser.add_argument("--questions", type=int, default=None, help="for each skill")
    return parser.parse_args()


def say(*words):
    print(f"[{time.time() - BEGAN:6.1f}]", *words, flush=True)


class Data:
    """Starts worker processes at once; collect() waits for them. Must be made before the GPU is touched."""

    def __init__(self, options, targets):
        small = options.smoke
        self.targets = targets  # soft tokens by target size
        self.pool = multiprocessing.get_context("fork").Pool(options.workers)
        text, square, other, speech = (1600, 300, 150, 320) if small else (288_000, 110_000, 26_000, 20_400)
        share = 100 if small else 2000
        first = 1_000_000 if options.init else 0  # other random numbers than in the run before
        self.waiting = {"text": [self.pool.apply_async(rows.text_rows, ((first + i, share),)) for i in range(text // share)]}
        for n, (size, soft) in enumerate(targets.items()):
            share = 50 if small else 1000
            count = (square if n == 0 else other) // share
            self.waiting[size] = [self.pool.apply_async(rows.picture_rows, ((f"{size} {first + i}", share, soft),)) for i in range(count)]
        share = 40 if small else 300
        self.waiting["clips"] = [self.pool.apply_async(rows.clips, ((first + i, share, False),)) for i in range(speech // share)]
        held = 24 if small else 200
        self.waiting["held"] = [self.pool.apply_async(rows.clips, ((i, held // 8, True),)) for i in range(8)]
        self.copies = 2 if small else 6

    @staticmethod
    def joined(parts):
        return [np.concatenate(arrays) for arrays in zip(*parts)]

    def collect(self, name):
        return [waiting.get(timeout=300) for waiting in self.waiting.pop(name)]

    def speech(self):
        clips = [pair for part in self.collect("clips") for pair in part]
        items = [(i, clip, len(sound)) for i, (clip, sound) in enumerate(clips)]
        tasks = []
        for copy in range(self.copies):
            random.Random(copy).shuffle(items)
            tasks += [(f"{copy} {at}", items[at : at + 1000]) for at in range(0, len(items), 1000)]
        made = self.joined(self.pool.map(rows.speech_rows, tasks, chunksize=1))
        return clips, made


class Deck:
    """Row numbers in ever new order."""

    def __init__(self, count, generator):
        self.count, self.generator, self.left = count, generator, []

    def draw(self, wanted):
        import torch
        out = []
        while wanted:
            if not len(self.left):
                self.left = torch.randperm(self.count, generator=self.generator)
            out.append(self.left[:wanted])
            self.left = self.left[wanted:]
            wanted -= len(out[-1])
        return torch.cat(out)


class Trainer:
    def __init__(self, options, data):
        import torch
        import model
        import render
        import sound
        import vocab
        self.torch, self.options = torch, options
        self.device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
        self.half = self.device == "cuda"
        self.encoder = vocab.load()
        self.model = model.build(self.encoder).to(self.device)
        if options.init:
            self.begin_with(options.init)
        say("parameters", sum(p.numel() for p in self.model.parameters()))
        say("norms in one kernel differ by", model.fuse_norms(self.model))
        self.heads = model.Heads(256, len(media_data.SHAPES), len(media_data.COLOURS), render.CHARACTERS, len(LETTERS) + 1).to(self.device)
        self.nano = model.Nano(self.model, self.encoder)
        self.renderer = render.Renderer(self.device)
        self.features = sound.Features(self.device)
        self.sources = render.SOURCES
        self.generator = torch.Generator().manual_seed(7)
        self.rng = random.Random(7)
        if options.compile:
            for layer in self.model.model.language_model.layers:
                layer.compile()
        matrices, vectors = [], []
        for module in (self.model, self.heads):
            for parameter in module.parameters():
                (matrices if parameter.dim() > 1 else vectors).append(parameter)
        self.parameters = matrices + vectors
        self.optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.05}, {"params": vectors, "weight_decay": 0.0}], lr=options.rate,
                                           betas=(0.9, 0.97), eps=1e-9, fused=self.device == "cuda")
        self.log = []

    def begin_with(self, folder):
        from safetensors.torch import load_file
        state = {}
        for part in range(json.load(open(f"{folder}/config.json"))["parts"]):
            state |= load_file(f"{folder}/nano-{part}.safetensors")
        known = self.model.state_dict()
        state = {name: value.reshape(known[name].shape).to(known[name].dtype) for name, value in state.items() if name in known}
        missing = self.model.load_state_dict(state, strict=False).missing_keys
        say("began with", len(state), "tensors;", len(missing), "are not among them:", missing[:6])

    def to(self, array, kind=None):
        tensor = self.torch.from_numpy(np.ascontiguousarray(array))
        return tensor.to(self.device if kind is None else self.device, kind or tensor.dtype)

    def load(self, data):
        parts = data.joined(data.collect("text"))
        self.text = [self.to(a) for a in parts[:2]]
        say("text rows", parts[0].shape, "filled", round(float((parts[0] > 0).mean()), 3), "learnt", round(float(parts[1].mean()), 3))
        self.pictures = {}
        for size in data.targets:
            parts = data.joined(data.collect(size))
            self.pictures[size] = [self.to(a) for a in parts]
            say("picture rows", size, parts[0].shape)
        self.decks = {"text": Deck(len(self.text[0]), self.generator)}
        for size, parts in self.pictures.items():
            self.decks[size] = Deck(len(parts[0]), self.generator)

    def load_speech(self, data):
        clips, made = data.speech()
        self.clip_wave, self.clip_length = self.waves([sound for _, sound in clips])
        letters = [[LETTERS.index(c) + 1 for c in clip["text"].lower() if c in LETTERS] for clip, _ in clips]
        longest = max(len(l) for l in letters)
        table = np.zeros((len(letters), longest), np.int64)
        for i, l in enumerate(letters):
            table[i, : len(l)] = l
        self.letters, self.letter_count = self.to(table), self.to(np.array([len(l) for l in letters]))
        self.speech = [self.to(a) for a in made]
        self.decks["speech"] = Deck(len(made[0]), self.generator)
        say("clips", len(clips), "speech rows", made[0].shape, "seconds", round(sum(len(s) for _, s in clips) / 16000))

    def waves(self, sounds):
        room = max(len(s) for s in sounds)
        wave = np.zeros((len(sounds), room), np.int16)
        for i, s in enumerate(sounds):
            wave[i, : len(s)] = s
        return self.to(wave), self.to(np.array([len(s) for s in sounds], np.int64))

    def picture_batch(self, count):
        size = self.rng.choices(list(self.pictures), [6, 2, 2])[0]
        ids, learnt, _, specs = self.pictures[size]
        which = self.decks[size].draw(count).to(self.device)
        source = self.rng.choice(self.sources[size])
        picture, classes = self.renderer.draw(specs[which], source)
        values, positions = self.renderer.patches(self.renderer.resize(picture, size))
        return ids[which], learnt[which], values, positions, classes

    def speech_batch(self, count):
        import sound
        ids, learnt, _, clip = self.speech
        which = self.decks["speech"].draw(count).to(self.device)
        clip = clip[which].long()
        lengths = self.clip_length[clip]
        room = int(lengths.max())
        wave = sound.roughen(self.clip_wave[clip][:, :room].float() / 32768, lengths)
        features, mask = self.features(wave, lengths)
        return ids[which], learnt[which], features, mask, clip

    def losses(self, parts):
        """Which of text, pictures and speech to put into the step."""
        torch, F = self.torch, self.torch.nn.functional
        ids, learnt, aux = [], [], {}
        image = audio = None
        if "text" in parts:
            which = self.decks["text"].draw(self.options.text).to(self.device)
            ids.append(self.text[0][which])
            learnt.append(self.text[1][which])
        if "pictures" in parts:
            i, l, values, positions, classes = self.picture_batch(self.options.pictures)
            ids.append(i)
            learnt.append(l)
        if "speech" in parts:
            i, l, features, mask, clip = self.speech_batch(self.options.speech)
            ids.append(i)
            learnt.append(l)
        with torch.autocast(self.device, torch.bfloat16, enabled=self.half):
            if "pictures" in parts:
                soft = self.nano.see(values, positions)
                guess = self.heads.picture(soft).float().split(self.heads.sizes, -1)
                aux["cells"] = sum(F.cross_entropy(g.flatten(0, 1), classes[:, k].flatten(),
                                                   weight=torch.tensor([0.3] + [1.0] * (g.shape[-1] - 1), device=self.device)) for k, g in enumerate(guess))
                image = soft.flatten(0, 1)
            if "speech" in parts:
                soft, real = self.nano.hear(features, mask)
                chances = self.heads.sound(soft).float().log_softmax(-1).transpose(0, 1)
                aux["letters"] = F.ctc_loss(chances, self.letters[clip], real.sum(-1), self.letter_count[clip], zero_infinity=True)
                audio = soft[real]
            rows_ids = torch.cat(ids).long()
            hidden = self.nano.hidden(rows_ids, image, audio)
            groups = torch.cat([torch.full((len(l),), k, device=self.device) for k, l in enumerate(learnt)])
            wanted = torch.cat(learnt)[:, 1:].bool()
            logits = self.nano.logits(hidden[:, :-1][wanted])
        token = F.cross_entropy(logits.float(), rows_ids[:, 1:][wanted], reduction="none")
        group = groups[:, None].expand_as(wanted)[wanted]
        out = {}
        for k, name in enumerate(n for n in ("text", "pictures", "speech") if n in parts):
            here = (group == k).float()
            out[name] = (token * here).sum() / here.sum().clamp(min=1)
        return out | aux

    def step(self, progress, parts=("text", "pictures", "speech")):
        torch = self.torch
        warm = min(1.0, progress / 0.03 + 0.02)
        rate = self.options.rate * warm * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * min(1.0, progress))))
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        out = self.losses(parts)
        # The helpers matter at the start; at the end the answers alone do.
        help_ = self.options.help_weight * (1 - progress) + 0.03
        total = sum(loss * (help_ if name in ("cells", "letters") else 1.0) for name, loss in out.items())
        self.optimizer.zero_grad(set_to_none=True)
        total.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        if bool(torch.isfinite(norm)):
            self.optimizer.step()
        else:
            say("a step with a gradient that is no number is left out")
        return out, rate

    def train(self, end):
        start = last = time.time()
        steps = 0
        sums, saved = {}, False
        while True:
            progress = (time.time() - start) / max(1e-6, end - start)
            if self.options.steps:
                progress = max(progress, steps / self.options.steps)
            if progress >= 1:
                break
            if progress > 0.7 and not saved and not self.options.smoke:  # in case the end is not reached
                self.save(self.options.out)
                saved = True
            out, rate = self.step(progress)
            steps += 1
            for name, loss in out.items():
                sums[name] = sums.get(name, 0) + loss.detach()
            every = 2 if self.options.smoke else 50
            if steps % every == 0:
                means = {name: round(float(v) / every, 4) for name, v in sums.items()}
                now = time.time()
                self.log.append({"step": steps, "seconds": round(now - start, 1), "rate": rate, **means})
                if steps % (every * (1 if self.options.smoke else 4)) == 0:
                    say(f"step {steps} {100 * progress:.1f} % rate {rate:.2e} {(now - last) / every * 1000:.0f} ms", means)
                last, sums = now, {}
        say("trained", steps, "steps in", round(time.time() - start), "s")
        self.model.eval()

    def measure(self):
        """Times of a full-sized step, by part."""
        torch = self.torch
        if self.device != "cuda":
            return
        for parts in (("text",), ("pictures",), ("speech",), ("text", "pictures", "speech")):
            for _ in range(2):
                self.step(0.5, parts)
            torch.cuda.synchronize()
            began = time.time()
            for _ in range(5):
                self.step(0.5, parts)
            torch.cuda.synchronize()
            say("step of", parts, round((time.time() - began) / 5 * 1000, 1), "ms, most memory", round(torch.cuda.max_memory_allocated() / 2**30, 1), "GiB")

    # ---- scores ----

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

    # ---- files ----

    def save(self, out):
        import model
        parts = model.save(self.model, out)
        with open(f"{out}/config.json", "w") as f:
            json.dump({"config": self.model.config.to_dict(), "window": model.WINDOW, "parts": parts}, f, indent=1, default=str)
        with open(f"{out}/log.json", "w") as f:
            json.dump({"options": vars(self.options), "steps": self.log}, f, indent=0)
        say("weights in", parts, "files:", [(n, os.path.getsize(f"{out}/{n}")) for n in sorted(os.listdir(out))])

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


def check_forward(trainer):
    """Our way of calling the parts against the model's own forward."""
    torch = trainer.torch
    size = (432, 336)
    was = trainer.model.training
    trainer.model.eval()
    ids, _, _, specs = trainer.pictures[size]
    picture, _ = trainer.renderer.draw(specs[:2], (320, 240))
    values, positions = trainer.renderer.patches(trainer.renderer.resize(picture, size))
    with torch.no_grad():
        ours = trainer.nano.logits(trainer.nano.hidden(ids[:2].long(), trainer.nano.see(values, positions).flatten(0, 1)))
        theirs = trainer.model(input_ids=ids[:2].long(), pixel_values=values, image_position_ids=positions, use_cache=False).logits
        say("picture: forward differs by", (ours - theirs).abs().max().item(), "of", theirs.abs().max().item())
        if hasattr(trainer, "speech"):
            i, _, features, mask, _ = trainer.speech_batch(2)
            soft, real = trainer.nano.hear(features, mask)
            ours = trainer.nano.logits(trainer.nano.hidden(i.long(), audio=soft[real]))
            theirs = trainer.model(input_ids=i.long(), input_features=features, input_features_mask=mask, use_cache=False).logits
            say("speech: forward differs by", (ours - theirs).abs().max().item(), "of", theirs.abs().max().item())
    trainer.model.train(was)


def check_processors(trainer):
    """Our preparation of pictures and sound against transformers' own."""
    torch = trainer.torch
    specs = trainer.pictures[(432, 336)][3][:1]
    picture, _ = trainer.renderer.draw(specs, (320, 240))
    values, positions = trainer.renderer.patches(trainer.renderer.resize(picture, (432, 336)))
    try:
        from transformers.models.gemma4.image_processing_pil_gemma4 import Gemma4ImageProcessorPil
        from PIL import Image
        processor = Gemma4ImageProcessorPil(max_soft_tokens=70)
        made = processor(images=[Image.fromarray(picture[0].cpu().numpy().astype(np.uint8))], return_tensors="pt")
        theirs = made["pixel_values"][0][: values.shape[1]]
        say("picture: patches differ by at most", ((values[0].cpu() - theirs).abs().max() * 255).item(), "levels, mean",
            ((values[0].cpu() - theirs).abs().mean() * 255).item(), "positions equal", bool((made["image_position_ids"][0][: values.shape[1]] == positions[0].cpu()).all()))
    except Exception:
        traceback.print_exc()
    from transformers.models.gemma4.feature_extraction_gemma4 import Gemma4AudioFeatureExtractor
    samples = (np.sin(np.arange(20345) * 0.05) * 0.3 + np.random.RandomState(0).randn(20345) * 0.01).astype(np.float32)
    made = Gemma4AudioFeatureExtractor()([samples], return_tensors="np")
    features, mask = trainer.features(torch.tensor(samples, device=trainer.device)[None], torch.tensor([len(samples)], device=trainer.device))
    theirs, valid = made["input_features"][0], made["input_features_mask"][0]
    count = int(mask.sum())
    say("sound: frames", count, int(valid.sum()), "differ by", float(np.abs(features[0, :count].cpu().numpy() - theirs[:count]).max()))


def main():
    options = arguments()
    os.makedirs(options.out, exist_ok=True)
    end = BEGAN + options.minutes * 60
    failed = []

    def stage(name, action):
        began = time.time()
        try:
            result = action()
            say(f"-- {name}: done in {time.time() - began:.1f} s")
            return result
        except Exception:
            traceback.print_exc()
            say(f"-- {name}: FAILED")
            failed.append(name)
            if not options.smoke and name in ("data", "model", "load", "speech"):
                raise
            return None

    targets = {(384, 384): 64, (432, 336): 63, (336, 432): 63}
    data = stage("data", lambda: Data(options, targets))
    import torch
    import transformers
    say("torch", torch.__version__, "transformers", transformers.__version__, "cores", os.cpu_count(), "cuda", torch.cuda.is_available(),
        torch.cuda.get_device_name() if torch.cuda.is_available() else "")
    trainer = stage("model", lambda: Trainer(options, data))
    stage("load", lambda: trainer.load(data))
    stage("speech", lambda: trainer.load_speech(data))
    stage("questions", lambda: trainer.questions(data, options.questions or (4 if options.smoke else 100)))
    data.pool.terminate()
    if options.smoke:
        stage("check forward", lambda: check_forward(trainer))
        stage("check processors", lambda: check_processors(trainer))
        for part in ("text", "pictures", "speech"):
            stage(f"one step of {part}", lambda: say({k: float(v.detach()) for k, v in trainer.step(0.01, (part,))[0].items()}))
        options.steps = options.steps or 12
        stage("train", lambda: trainer.train(time.time() + 120))
        stage("measure", trainer.measure)
        trainer.model.eval()
    else:
        stage("train", lambda: trainer.train(end - options.reserve))
    stage("save", lambda: trainer.save(options.out))
    stage("tests", lambda: trainer.tests(options.out, 1 if options.smoke else 6))
    stage("score", lambda: trainer.score(options.out, end - 12))
    say("finished;", "failed: " + ", ".join(failed) if failed else "every stage passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
