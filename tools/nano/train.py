"""Trains the nano model:  train.py [--minutes 9] [--out FOLDER] [--smoke]

Needs torch and transformers with gemma4, the folder kit-nano (see prepare.py) and some processor cores; nothing else of
what it reads is outside this folder. Ends, with everything written, before --minutes are over. --smoke runs every stage in
about a minute on little data and goes on after a failure, so that one run shows all of them.
"""
import argparse
import json
import math
import os
import random
import sys
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from clock import BEGAN, say  # noqa: E402  (first: it notes when the run began)

import numpy as np  # noqa: E402

import media_data  # noqa: E402
from batches import Data, Deck  # noqa: E402
from checks import check_forward, check_processors  # noqa: E402
from examine import Examiner  # noqa: E402

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789 "


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

    def save(self, out):
        import model
        parts = model.save(self.model, out)
        with open(f"{out}/config.json", "w") as f:
            json.dump({"config": self.model.config.to_dict(), "window": model.WINDOW, "parts": parts}, f, indent=1, default=str)
        with open(f"{out}/log.json", "w") as f:
            json.dump({"options": vars(self.options), "steps": self.log}, f, indent=0)
        say("weights in", parts, "files:", [(n, os.path.getsize(f"{out}/{n}")) for n in sorted(os.listdir(out))])


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
    examiner = trainer and Examiner(trainer)  # without a model the stages below fail, each by itself
    stage("load", lambda: trainer.load(data))
    stage("speech", lambda: trainer.load_speech(data))
    stage("questions", lambda: examiner.questions(data, options.questions or (4 if options.smoke else 100)))
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
    stage("tests", lambda: examiner.tests(options.out, 1 if options.smoke else 6))
    stage("score", lambda: examiner.score(options.out, end - 12))
    say("finished;", "failed: " + ", ".join(failed) if failed else "every stage passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
