"""Draws pictures with torch, and prepares them as Gemma 4's image processor does."""
import math
import os

import numpy as np
import torch
import torch.nn.functional as F

import media_data as m

HERE = os.path.dirname(os.path.abspath(__file__))
BUDGET = 70
PATCH, POOL = 16, 3
# Sizes pictures are drawn at, by the size they come to. Every target is a batch of its own.
SOURCES = {(384, 384): [(384, 384), (96, 96), (128, 128), (224, 224), (256, 256), (512, 512)],
           (432, 336): [(432, 336), (320, 240), (640, 480), (160, 120)],
           (336, 432): [(336, 432), (240, 320), (480, 640)]}
CHARACTERS = 36  # letters of either case are one class


def target_size(width, height, budget=BUDGET):
    side = PATCH * POOL
    factor = math.sqrt(budget * POOL * POOL * PATCH * PATCH / (height * width))
    target_height = math.floor(factor * height / side) * side
    target_width = math.floor(factor * width / side) * side
    if target_height == 0:
        target_height, target_width = side, min(math.floor(width / height) * side, budget * side)
    elif target_width == 0:
        target_width, target_height = side, min(math.floor(height / width) * side, budget * side)
    return target_width, target_height


def soft_tokens(size):
    return (size[0] // (PATCH * POOL)) * (size[1] // (PATCH * POOL))


def cubic(t):
    t = abs(t)
    if t < 1:
        return 1.5 * t ** 3 - 2.5 * t ** 2 + 1
    return -0.5 * t ** 3 + 2.5 * t ** 2 - 4 * t + 2 if t < 2 else 0.0


def resize_matrix(before, after):
    scale = before / after
    stretch = max(scale, 1.0)
    matrix = np.zeros((after, before))
    for i in range(after):
        centre = (i + 0.5) * scale
        first, last = max(0, int(centre - 2 * stretch + 0.5)), min(before, int(centre + 2 * stretch + 0.5))
        for j in range(first, last):
            matrix[i, j] = cubic((j - centre + 0.5) / stretch)
        matrix[i] /= matrix[i].sum()
    return torch.tensor(matrix, dtype=torch.float32)


class Renderer:
    def __init__(self, device):
        data = np.load(os.path.join(HERE, "glyphs.npz"))
        self.device = device
        self.glyphs = torch.tensor(data["pictures"]).to(device).float() / 255  # font, glyph, y, x
        self.widths = torch.tensor(data["widths"]).to(device).float()
        self.matrices = {}
        # Glyph index -> class without case.
        self.character = torch.tensor([i if i < 36 else i - 26 for i in range(len(m.GLYPHS))], device=device)
        self.palette = torch.tensor([m.COLOURS[c] for c in m.COLOUR_LIST], device=device).float() / 255

    def matrix(self, before, after):
        if (before, after) not in self.matrices:
            self.matrices[before, after] = resize_matrix(before, after).to(self.device)
        return self.matrices[before, after]

    def shape_distance(self, kind, x, y, radius):
        """About the distance to the edge in pixels, negative inside. All B x H x W but kind and radius, B x 1 x 1."""
        rho = torch.sqrt(x * x + y * y + 1e-6)
        theta = torch.atan2(x, -y)  # 0 is up

        def polygon(sides):
            step = 2 * math.pi / sides
            return (rho * torch.cos(torch.remainder(theta, step) - step / 2) - radius * math.cos(step / 2))

        def box(half_width, half_height):
            return torch.maximum(x.abs() - half_width, y.abs() - half_height)

        alpha = math.pi / 5
        inner = 0.42 * radius
        angle = (torch.remainder(theta + alpha, 2 * alpha) - alpha).abs()
        edge = radius * inner * math.sin(alpha) / (torch.cos(angle) * inner * math.sin(alpha)
                                                  - torch.sin(angle) * (inner * math.cos(alpha) - radius))
        made = [rho - radius, box(radius * 0.85, radius * 0.85), polygon(3), box(radius, radius * 0.5), (rho - edge) * 0.7,
                torch.minimum(box(radius * 0.3, radius), box(radius, radius * 0.3)),
                (rho - radius * 0.8).abs() - radius * 0.2, (x.abs() + y.abs() - radius) * 0.7071]
        out = made[0]
        for i, distance in enumerate(made[1:], 1):
            out = torch.where(kind == i, distance, out)
        return out

    @torch.no_grad()
    def draw(self, specs, size):
        """specs B x SPEC_SIZE. Pictures as B x H x W x 3 of whole numbers 0..255, and the classes of every soft token's cell
        (shape, colour, character; 0 is none) for the size they come to."""
        width, height = size
        count, small = specs.shape[0], min(width, height)
        specs = specs.to(self.device)
        ys, xs = torch.meshgrid(torch.arange(height, device=self.device) + 0.5, torch.arange(width, device=self.device) + 0.5, indexing="ij")
        picture = specs[:, :3, None, None].expand(count, 3, height, width).clone()
        target = target_size(width, height)
        cells = (target[1] // (PATCH * POOL), target[0] // (PATCH * POOL))
        best = torch.full((count, *cells), 0.25, device=self.device)
        classes = torch.zeros((count, 3, *cells), dtype=torch.long, device=self.device)

        def paint(alpha, colour):
            nonlocal picture
            picture = picture + alpha[:, None] * (colour[:, :, None, None] - picture)

        def note(alpha, channel, value):
            nonlocal best
            cover = F.adaptive_avg_pool2d(alpha[:, None], cells)[:, 0]
            better = cover > best
            best = torch.where(better, cover, best)
            for at, v in zip(channel, value):
                classes[:, at] = torch.where(better, v[:, None, None], classes[:, at])

        for slot in range(m.MAX_SHAPES):
            at = m.SHAPE_AT + 8 * slot
            kind, turn = specs[:, at, None, None], specs[:, at + 4, None, None]
            if not bool((kind >= 0).any()):
                continue
            x = xs - specs[:, at + 1, None, None] * width
            y = ys - specs[:, at + 2, None, None] * height
            x, y = x * torch.cos(turn) + y * torch.sin(turn), y * torch.cos(turn) - x * torch.sin(turn)
            distance = self.shape_distance(kind, x, y, specs[:, at + 3, None, None] * small)
            alpha = torch.where(kind >= 0, (0.5 - distance).clamp(0, 1), torch.zeros_like(distance))
            colour = specs[:, at + 5 : at + 8]
            paint(alpha, colour)
            nearest = (colour[:, None] - self.palette).pow(2).sum(-1).argmin(-1)
            note(alpha, (0, 1), ((kind[:, 0, 0] + 1).long(), nearest + 1))

        at = m.TEXT_AT
        font = specs[:, at].long()
        if bool((font >= 0).any()):
            font = font.clamp(min=0)
            length = torch.where(specs[:, at] >= 0, specs[:, at + 1], torch.zeros_like(specs[:, at]))
            glyphs = specs[:, at + 8 : at + 8 + m.MAX_GLYPHS].long()
            cell = float(self.glyphs.shape[-1])
            advance = self.widths[font[:, None], glyphs] * (torch.arange(m.MAX_GLYPHS, device=self.device) < length[:, None])
            total = advance.sum(1).clamp(min=1)
            # Rows without text get a scale too, so that no coordinate is infinite.
            scale = torch.minimum(specs[:, at + 4] * height / cell, 0.96 * width / total).clamp(min=0.01)
            left = specs[:, at + 2] * (width - total * scale).clamp(min=0)
            top = specs[:, at + 3] * (height - cell * scale).clamp(min=0)
            colour = specs[:, at + 5 : at + 8]
            nearest = (colour[:, None] - self.palette).pow(2).sum(-1).argmin(-1)
            for slot in range(m.MAX_GLYPHS):
                # Coordinates inside the glyph's cell; what lies outside samples as nothing.
                u = (xs - left[:, None, None]) / scale[:, None, None]
                v = (ys - top[:, None, None]) / scale[:, None, None]
                grid = torch.stack([u / cell * 2 - 1, v / cell * 2 - 1], -1)
                shown = F.grid_sample(self.glyphs[font, glyphs[:, slot]][:, None], grid, mode="bilinear", padding_mode="zeros", align_corners=False)[:, 0]
                present = (slot < length)[:, None, None]
                paint(torch.where(present, shown, torch.zeros_like(shown)), colour)
                inside = ((u >= 0) & (u < advance[:, slot, None, None]) & (v >= 0) & (v < 0.82 * cell) & present).float()
                note(inside, (1, 2), (nearest + 1, self.character[glyphs[:, slot]] + 1))
                left = left + advance[:, slot] * scale
        noise = specs[:, m.NOISE_AT, None, None, None]
        picture = picture + noise * torch.randn_like(picture)
        picture = (picture.clamp(0, 1) * 255).round().permute(0, 2, 3, 1)
        return picture, classes.flatten(2)

    @torch.no_grad()
    def resize(self, picture, target):
        """B x H x W x 3, whole numbers; as Pillow does, across and then down, each rounded."""
        height, width = picture.shape[1:3]
        picture = picture.float()
        # Rounding needs all of float32, whatever the matrix units would like.
        if width != target[0]:
            picture = torch.einsum("ow,bhwc->bhoc", self.matrix(width, target[0]), picture).round().clamp(0, 255)
        if height != target[1]:
            picture = torch.einsum("oh,bhwc->bowc", self.matrix(height, target[1]), picture).round().clamp(0, 255)
        return picture

    def patches(self, picture):
        """B x H x W x 3 of 0..255 -> values B x N x 768 of 0..1 and positions B x N x 2 (x, y)."""
        count, height, width, _ = picture.shape
        rows, columns = height // PATCH, width // PATCH
        values = picture.reshape(count, rows, PATCH, columns, PATCH, 3).permute(0, 1, 3, 2, 4, 5).reshape(count, rows * columns, -1) / 255
        ys, xs = torch.meshgrid(torch.arange(rows, device=self.device), torch.arange(columns, device=self.device), indexing="ij")
        positions = torch.stack([xs, ys], -1).reshape(1, -1, 2).expand(count, -1, -1)
        return values, positions
