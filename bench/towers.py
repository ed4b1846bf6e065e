"""How long the encoders take on a GPU, beside transformers:  towers.py --bezel PATH --folder TMP

For a picture of 280 soft tokens and for 30 s of sound. Weights are random, of the published shapes; `bezel synth` writes
them to TMP. transformers' rows need torch with CUDA and transformers with gemma4. A part that fails prints its traceback
and is left out of the table, which is also written to TMP/towers.json.
"""
import argparse
import json
import math
import statistics
import struct
import subprocess
import sys
import time
import traceback
import wave
from pathlib import Path
from types import SimpleNamespace

LIMIT = 67.0  # TFLOP/s of an H200 in float32, outside the tensor cores; bfloat16 there has 989
TOKENS, PATCHES = 280, 9 * 280
SIZE = (960, 672)  # 20 x 14 soft tokens of 48 x 48 pixels: nothing is resized
SECONDS = 30

# As in src/model/synth_vision.cc and synth_audio.cc.
VISION = {
    "e2b-vision": dict(blocks=16, width=768, heads=12, ffn=3072, text=1536, clamps=True, standardised=False),
    "31b-vision": dict(blocks=27, width=1152, heads=16, ffn=4304, text=5376, clamps=False, standardised=True),
}
AUDIO = {"e2b-audio": dict(blocks=12, width=1024, heads=8, channels=(128, 32), taps=5, output=1536, text=1536)}
ENCODERS = [*VISION, *AUDIO]


def vision_flop(s):
    """Two for each multiplication and addition of products; norms and such are not counted."""
    linears = PATCHES * (4 * s["width"] ** 2 + 3 * s["width"] * s["ffn"])
    attention = 2 * PATCHES**2 * s["width"]  # scores, and the sum of values
    ends = PATCHES * 3 * 16 * 16 * s["width"] + TOKENS * s["width"] * s["text"]
    return 2 * (s["blocks"] * (linears + attention) + ends)


def audio_flop(s, tokens):
    """`tokens` soft tokens, of four frames of 128 bands each. A token's window in attention has 12 tokens."""
    d, (first, second) = s["width"], s["channels"]
    convolutions = (2 * tokens) * 64 * 9 * first + tokens * 32 * 9 * first * second
    # Two feed-forwards of d x 4d, attention's four, the convolution's d x 2d and d x d.
    linears = tokens * d * d * (2 * 8 + 4 + 3)
    local = tokens * d * (3 * 12 + s["taps"])  # scores, relative scores, the sum of values; the depthwise convolution
    ends = tokens * (32 * second * d + d * s["output"] + s["output"] * s["text"])
    return 2 * (convolutions + s["blocks"] * (linears + local) + ends)


def flop(name, tokens):
    return vision_flop(VISION[name]) if name in VISION else audio_flop(AUDIO[name], tokens)


def write_picture(path):
    """A BMP of 24 bits, rows from the bottom; each has a multiple of four bytes."""
    width, height = SIZE
    pixels = bytearray()
    for y in range(height):
        for x in range(width):
            pixels += bytes(((3 * x + y) & 255, (x * y >> 6) & 255, (x ^ y) & 255))
    header = struct.pack("<2sIHHI", b"BM", 54 + len(pixels), 0, 0, 54)
    header += struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, len(pixels), 2835, 2835, 0, 0)
    path.write_bytes(header + pixels)


def write_sound(path):
    count = SECONDS * 16000
    samples = [int(8000 * math.sin(0.05 * i * (1 + i / count)) + 2000 * math.sin(0.31 * i)) for i in range(count)]
    with wave.open(str(path), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(16000)
        out.writeframes(struct.pack(f"<{count}h", *samples))


def call(command, seconds):
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def of_bezel(name, options, row):
    file = options.folder / f"{name}-{options.quant}.gguf"
    if not file.exists():
        call([options.bezel, "synth", name, "--quant", options.quant, "-o", file], 60)
    medium = options.folder / ("picture.bmp" if name in VISION else "sound.wav")
    if not medium.exists():
        write_picture(medium) if name in VISION else write_sound(medium)
    command = [options.bezel, "bench", file, "--image" if name in VISION else "--audio", medium, "--backend",
               options.backend, "-r", options.repetitions, "--json"]
    if name in VISION:
        command += ["--image-tokens", TOKENS]
    report = json.loads(call([str(word) for word in command], 60))
    got = report["encoders"][0]
    row(name, f"bezel, {options.quant} weights", got["tokens"], got["encode_ms"], got["prepare_ms"])
    print(f"{name}: {report['device'] or report['backend']}, {got['tokens']} tokens, the first time {got['first_ms']:.0f} ms")
    return got["tokens"]


def tower(torch, name):
    """transformers' tower and the embedder behind it, with random weights; a function that runs them on the host's inputs."""
    from transformers import Gemma4AudioConfig, Gemma4VisionConfig
    from transformers.models.gemma4 import modeling_gemma4 as gemma

    s = VISION.get(name) or AUDIO[name]
    if name in VISION:
        config = Gemma4VisionConfig(
            hidden_size=s["width"], intermediate_size=s["ffn"], num_hidden_layers=s["blocks"],
            num_attention_heads=s["heads"], num_key_value_heads=s["heads"], head_dim=s["width"] // s["heads"],
            position_embedding_size=10240, use_clipped_linears=s["clamps"], standardize=s["standardised"])
        model = gemma.Gemma4VisionModel._from_config(config, attn_implementation="sdpa")
        if s["standardised"]:
            model.std_bias.data.zero_()
            model.std_scale.data.fill_(1)
        columns, rows = SIZE[0] // 16, SIZE[1] // 16
        y, x = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
        inputs = (torch.rand(1, PATCHES, 3 * 16 * 16), torch.stack([x, y], dim=-1).reshape(1, PATCHES, 2))
    else:
        config = Gemma4AudioConfig(
            hidden_size=s["width"], num_hidden_layers=s["blocks"], num_attention_heads=s["heads"],
            subsampling_conv_channels=list(s["channels"]), conv_kernel_size=s["taps"], output_proj_dims=s["output"])
        model = gemma.Gemma4AudioModel._from_config(config, attn_implementation="sdpa")
        inputs = (torch.randn(1, 100 * SECONDS, 128), torch.ones(1, 100 * SECONDS, dtype=torch.bool))
    embedder = gemma.Gemma4MultimodalEmbedder(config, SimpleNamespace(hidden_size=s["text"]))
    both = torch.nn.ModuleList([model, embedder]).to("cuda").eval()
    names = ("pixel_values", "pixel_position_ids") if name in VISION else ("input_features", "attention_mask")

    def run(kind):
        given = dict(zip(names, (inputs[0].to("cuda", kind), inputs[1].to("cuda"))))
        states = model(**given).last_hidden_state
        return embedder(states.reshape(1, -1, states.shape[-1])).float().cpu()

    return both, run


def of_transformers(name, repetitions, row):
    import torch
    import transformers

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    print(f"{name}: transformers {transformers.__version__}, torch {torch.__version__}, {torch.cuda.get_device_name()}")
    model, run = tower(torch, name)

    def measure(kind):
        model.to(kind)
        times = []
        with torch.no_grad():
            for round in range(3 + repetitions):
                torch.cuda.synchronize()
                start = time.perf_counter()
                soft = run(kind)
                torch.cuda.synchronize()
                if round >= 3:
                    times.append(1e3 * (time.perf_counter() - start))
        row(name, f"transformers, {str(kind).removeprefix('torch.')}", soft.shape[1], statistics.median(times), None)

    for kind in (torch.float32, torch.bfloat16):
        attempt(measure, kind)


def attempt(part, *arguments):
    try:
        part(*arguments)
    except Exception:
        print(f"--- {getattr(part, '__name__', part)} {arguments[:1]} failed:")
        traceback.print_exc(file=sys.stdout)
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bezel", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True, help="for synthetic encoders, 2 GB")
    parser.add_argument("--quant", default="f16")
    parser.add_argument("--backend", default="gpu")
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--only", choices=ENCODERS)
    parser.add_argument("--seconds", type=float, default=120, help="no part begins later than this")
    options = parser.parse_args()
    options.bezel = options.bezel.resolve()
    options.folder.mkdir(parents=True, exist_ok=True)
    began, rows = time.monotonic(), []

    def row(name, what, tokens, encode, prepare):
        tera = flop(name, tokens) * 1e-12
        rows.append({"encoder": name, "what": what, "tokens": tokens, "prepare_ms": prepare, "encode_ms": encode,
                     "tflop": tera, "tflop_per_second": 1e3 * tera / encode, "share": 1e3 * tera / encode / LIMIT})

    for part, last in ((of_bezel, options), (of_transformers, options.repetitions)):
        for name in [options.only] if options.only else ENCODERS:
            if time.monotonic() - began > options.seconds:
                print(f"--- {name} by {part.__name__} is left out: {options.seconds} s have passed.")
                continue
            attempt(part, name, last, row)
    (options.folder / "towers.json").write_text(json.dumps(rows, indent=2) + "\n")
    rows.sort(key=lambda r: ENCODERS.index(r["encoder"]))  # stable: of an encoder, bezel first
    print(f"\nA picture of {TOKENS} tokens, {SECONDS} s of sound. Encoding begins with the inputs in the host's memory and ends\n"
          f"with the soft tokens there. The share is that of {LIMIT:.0f} TFLOP/s, float32 without tensor cores.\n")
    print("| encoder | what | tokens | prepare, ms | encode, ms | TFLOP | TFLOP/s | share |\n|---|---|---|---|---|---|---|---|")
    for r in rows:
        prepare = "" if r["prepare_ms"] is None else f"{r['prepare_ms']:.2f}"
        print(f"| {r['encoder']} | {r['what']} | {r['tokens']} | {prepare} | {r['encode_ms']:.2f} | {r['tflop']:.3f} "
              f"| {r['tflop_per_second']:.2f} | {100 * r['share']:.1f} % |")
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
