"""Speech on the device: resampling, noise, and Gemma 4's log-mel features."""
import math

import numpy as np
import torch

FRAME, HOP, FFT, MELS = 320, 160, 512, 128
RATE = 16000


def mel_filters():
    top = 2595 * math.log10(1 + (RATE / 2) / 700)
    edges = 700 * (10 ** (np.linspace(0, top, MELS + 2) / 2595) - 1)
    frequencies = np.linspace(0, RATE / 2, FFT // 2 + 1)
    up = (frequencies[:, None] - edges[None, :-2]) / (edges[1:-1] - edges[:-2])
    down = (edges[None, 2:] - frequencies[:, None]) / (edges[2:] - edges[1:-1])
    return np.maximum(0, np.minimum(up, down))


class Features:
    def __init__(self, device):
        self.device = device
        self.filters = torch.tensor(mel_filters(), dtype=torch.float32, device=device)
        self.window = torch.tensor(0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FRAME) / FRAME), dtype=torch.float32, device=device)

    @torch.no_grad()
    def __call__(self, wave, lengths):
        """wave B x N of -1..1, zero after each clip's length -> features B x T x 128 and their mask."""
        frames = max(1, -(-(wave.shape[1] - 160) // HOP))
        padded = torch.nn.functional.pad(wave, (FRAME // 2, FRAME))
        cut = padded.unfold(1, FRAME, HOP)[:, :frames] * self.window
        magnitude = torch.fft.rfft(cut, FFT).abs()
        mel = torch.log(magnitude @ self.filters + 0.001)
        valid = torch.clamp((lengths - 160 + HOP - 1) // HOP, min=0)
        mask = torch.arange(frames, device=wave.device)[None] < valid[:, None]
        return mel * mask[..., None], mask


@torch.no_grad()
def roughen(wave, lengths):
    """Another loudness, and noise in some of the clips."""
    count = wave.shape[0]
    level = torch.rand((count, 1), device=wave.device)
    gain = 10 ** (-0.9 * level)
    noise = torch.randn_like(wave)
    # Half of the noise is low: a running mean takes the height off.
    soft = torch.nn.functional.avg_pool1d(noise[:, None], 5, 1, 2)[:, 0] * 2
    noise = torch.where(torch.rand((count, 1), device=wave.device) < 0.5, noise, soft)
    amount = 10 ** (-1.7 - 2 * torch.rand((count, 1), device=wave.device)) * (torch.rand((count, 1), device=wave.device) < 0.6)
    out = (wave * gain + noise * amount * gain).clamp(-1, 1)
    return out * (torch.arange(wave.shape[1], device=wave.device)[None] < lengths[:, None])
