"""Rows of tokens for training, made by worker processes; and the questions for scores."""
import os
import random
import subprocess
import wave

import numpy as np

import chat
import media_data
import skills
import vocab

LENGTH = 256
RATE = 22050  # espeak-ng's
MAX_SECONDS = 5.1
HERE = os.path.dirname(os.path.abspath(__file__))
KIT = os.path.join(HERE, "..", "..", "kit-nano")
_encoder = None


def encoder():
    global _encoder
    if _encoder is None:
        _encoder = vocab.load()
    return _encoder


def fill(rng, row, most=9):
    """More exchanges, as long as they fit."""
    for _ in range(most):
        if not row.add(skills.any_exchange(rng, plain=True)):
            break


def store(rows):
    ids = np.zeros((len(rows), LENGTH), np.int16)
    learnt = np.zeros((len(rows), LENGTH), np.uint8)
    soft = np.zeros((len(rows), 2), np.int16)
    for i, row in enumerate(rows):
        ids[i, : len(row.ids)] = row.ids
        learnt[i, : len(row.ids)] = row.learnt
        soft[i] = row.soft or (0, 0)
    return ids, learnt, soft


def raw_row(rng):
    """Text without a chat around it."""
    row = chat.Row(encoder(), LENGTH)
    row.ids = [encoder().special[chat.BOS]]
    while len(row.ids) < LENGTH - 40:
        text = skills.tale(rng)[1] if rng.random() < 0.8 else " ".join(skills.define(rng).answer)
        row.ids += encoder().encode(text) + [encoder().special[chat.EOS]]
    row.ids = row.ids[:LENGTH]
    row.learnt = [0] + [1] * (len(row.ids) - 1)
    return row


def text_rows(task):
    seed, count = task
    rng = random.Random(f"text {seed}")
    rows = []
    while len(rows) < count:
        if rng.random() < 0.04:
            rows.append(raw_row(rng))
            continue
        row = chat.Row(encoder(), LENGTH)
        if not row.add(skills.any_exchange(rng)):
            continue
        fill(rng, row, 1 if rng.random() < 0.12 else 9)
        rows.append(row)
    return store(rows)


def picture_user(question, soft):
    return chat.media(chat.IMAGE_BEGIN, chat.IMAGE, chat.IMAGE_END, soft) + ([question] if question else [])


def picture_rows(task):
    seed, count, soft = task
    rng = random.Random(f"pictures {seed}")
    rows, specs = [], np.zeros((count, media_data.SPEC_SIZE), np.float32)
    while len(rows) < count:
        spec = media_data.picture(rng)
        pairs = media_data.picture_questions(rng, spec)
        row = chat.Row(encoder(), LENGTH)
        if rng.random() < 0.15:
            row.add(skills.any_exchange(rng, plain=True))
        if not row.add(chat.Exchange("picture", picture_user(pairs[0][0], soft), [pairs[0][1]])):
            continue
        for question, answer in pairs[1:]:
            if question:
                row.add(chat.Exchange("picture", [question], [answer]))
        if rng.random() < 0.3:
            fill(rng, row, 3)
        row.find_soft(chat.IMAGE)
        specs[len(rows)] = media_data.numbers_of(rng, spec)
        rows.append(row)
    return store(rows) + (specs,)


class Speaker:
    """espeak-ng from kit-nano, in a process of its own that speaks one line after the other."""

    def __init__(self):
        for name in ("ld.so", "speak"):  # a copied tree may have lost the bits
            if not os.access(f"{KIT}/{name}", os.X_OK):
                os.chmod(f"{KIT}/{name}", 0o755)
        self.process = subprocess.Popen([f"{KIT}/ld.so", "--library-path", f"{KIT}/lib", f"{KIT}/speak", KIT], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

    def __call__(self, clip):
        """The clip as int16 at espeak's rate, with silence around it."""
        line = f"{clip['voice']}\t{clip['speed']}\t{clip['pitch']}\t{media_data.spoken_form(clip)}\n"
        self.process.stdin.write(line.encode())
        self.process.stdin.flush()
        head = self.process.stdout.read(4)
        if len(head) < 4:
            raise RuntimeError(f"The speaker ended with {self.process.wait()}.")
        sound = np.frombuffer(self.process.stdout.read(2 * int.from_bytes(head, "little")), "<i2")
        if len(sound) < 1000:
            raise RuntimeError(f"The speaker said nothing for {line!r}.")
        return np.concatenate([np.zeros(int(clip["before"] * RATE), np.int16), sound, np.zeros(int(clip["after"] * RATE), np.int16)])

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def clips(task):
    """[(clip, sound at 16 kHz)]; those that are too long are left out."""
    seed, count, held = task
    rng = random.Random(f"speech {seed} {held}")
    speaker, out = Speaker(), []
    for i in range(count):
        clip = media_data.speech(rng, held, ["digits", "words"][i % 2] if held else None)
        sound = speaker(clip)
        if len(sound) <= MAX_SECONDS * RATE:
            out.append((clip, resample(sound)))
    speaker.close()
    return out


def resample(sound):
    """22050 -> 16000 Hz by cutting the spectrum; int16 in and out, len * 320 // 441 samples."""
    wanted = len(sound) * 320 // 441
    blocks = -(-(len(sound) + 2000) // 441)
    padded = np.zeros(blocks * 441)
    padded[: len(sound)] = sound
    spectrum = np.fft.rfft(padded)[: blocks * 160 + 1].copy()
    cut = int(len(spectrum) * 0.97)
    spectrum[cut:] *= np.linspace(1, 0, len(spectrum) - cut)
    out = np.fft.irfft(spectrum, blocks * 320) * (320 / 441)
    return np.clip(np.round(out[:wanted]), -32768, 32767).astype(np.int16)


def soft_tokens(samples):
    """Of a clip with so many samples at 16 kHz."""
    frames = max(0, -(-(samples - 160) // 160))
    return -(-frames // 4)


def speech_user(question, soft, rng=None):
    heard = chat.media(chat.AUDIO_BEGIN, chat.AUDIO, chat.AUDIO_END, soft)
    if rng and question and rng.random() < 0.15:
        return [question] + heard
    return heard + ([question] if question else [])


def speech_rows(task):
    """Rows for the given clips: (index, clip, samples at 16 kHz)."""
    seed, items = task
    rng = random.Random(f"speech rows {seed}")
    rows, which = [], []
    for index, clip, samples in items:
        question, answer = media_data.speech_question(rng, clip)
        row = chat.Row(encoder(), LENGTH)
        if rng.random() < 0.1:
            row.add(skills.any_exchange(rng, plain=True))
        if not row.add(chat.Exchange("speech", speech_user(question, soft_tokens(samples), rng), [answer])):
            continue
        if rng.random() < 0.3:
            fill(rng, row, 3)
        row.find_soft(chat.AUDIO)
        rows.append(row)
        which.append(index)
    return store(rows) + (np.array(which, np.int32),)


def prompt_ids(exchange, after_result=False):
    """What the model reads before it answers."""
    row = chat.Row(encoder(), LENGTH)
    ids = row.encode(chat.opening(exchange))
    for items, wanted in chat.parts(exchange):
        if wanted and not (after_result and items is not None and items[-1] == chat.RESPONSE):
            break
        ids += row.encode(items)
    return ids


def text_questions(count):
    """Held-out questions of every text skill: [(skill, prompt ids, expected text, check)]."""
    out = []
    for name, skill in skills.SCORED.items():
        rng = random.Random(f"scores {name}")
        taken = 0
        while taken < count:
            exchange = skill(rng, True)
            after = name == "tool answers"
            ids = prompt_ids(exchange, after)
            expected = exchange.final if after else chat.text_of(exchange.answer)
            if len(ids) + len(encoder().encode(expected)) + 8 > LENGTH:
                continue
            out.append((name, ids, expected, exchange.check))
            taken += 1
    return out


def picture_kinds():
    return {"shapes and colours": "shapes", "digits in pictures": "number", "words in pictures": "word", "questions about pictures": "shapes"}


def picture_question(rng, name, soft):
    spec = media_data.picture(rng, True, picture_kinds()[name])
    pairs = media_data.picture_questions(rng, spec, name)
    question, answer = pairs[0] if name != "questions about pictures" else rng.choice(pairs[1:])
    ids = prompt_ids(chat.Exchange("picture", picture_user(question, soft), [answer]))
    return ids, answer, question, media_data.numbers_of(rng, spec)


def speech_question(clip, samples):
    question = "Transcribe the audio."
    ids = prompt_ids(chat.Exchange("speech", speech_user(question, soft_tokens(samples)), [clip["text"]]))
    return ids, clip["text"], question


def write_wav(path, samples, rate=16000):
    with wave.open(path, "wb") as f:
        f.setnchannels(1)
        f.setsampwidth(2)
        f.setframerate(rate)
        f.writeframes(np.asarray(samples, "<i2").tobytes())
