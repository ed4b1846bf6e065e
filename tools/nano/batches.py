"""Where batches come from: rows made by worker processes, and the order in which they are drawn.

torch is loaded only where it is needed, since the workers have to start before it.
"""
import multiprocessing
import random

import numpy as np

import rows


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
