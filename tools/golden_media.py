"""Expected soft tokens and logits of tiny models with eyes and ears, from transformers in float32 (sdpa).

usage: golden_media.py TESTS_DATA_DIR OUT_DIR

Needs torch and transformers with gemma4 and gemma4_unified. Reads the tiny models of TESTS_DATA_DIR; writes
OUT_DIR/multimodal.safetensors and OUT_DIR/tiny-12b-mmproj.gguf, random weights of the kind without an encoder, the same
in every run. Pictures and sounds are made by the
formulas below, which tests/multimodal_golden_test.cc repeats. Of every picture and recording four soft tokens are kept, of
every prompt the logits of some positions. What fails prints its traceback and is left out; the exit status then is 1.
"""
import struct
import sys
import traceback
from pathlib import Path

import numpy as np
import torch
from golden_text import fill, read_gguf, text_options, text_state, write_safetensors
from PIL import Image
from transformers import (Gemma4AudioConfig, Gemma4AudioFeatureExtractor, Gemma4Config, Gemma4ForConditionalGeneration,
                          Gemma4ImageProcessor, Gemma4TextConfig, Gemma4VisionConfig)
from transformers.models.gemma4_unified import configuration_gemma4_unified as unified_configs
from transformers.models.gemma4_unified.feature_extraction_gemma4_unified import Gemma4UnifiedAudioFeatureExtractor
from transformers.models.gemma4_unified.image_processing_gemma4_unified import Gemma4UnifiedImageProcessor
from transformers.models.gemma4_unified.modeling_gemma4_unified import Gemma4UnifiedForConditionalGeneration

BUDGETS = (70, 140, 280, 560, 1120)
ODD = ((1, 1), (3, 500), (2000, 3), (977, 31), (48, 48), (640, 480))  # width, height
USUAL = (144, 96)
RECORDINGS = (3200, 30000)  # samples at 16 kHz

VISION_LAYER = {
    "ln1.weight": "input_layernorm.weight", "attn_post_norm.weight": "post_attention_layernorm.weight",
    "ln2.weight": "pre_feedforward_layernorm.weight", "ffn_post_norm.weight": "post_feedforward_layernorm.weight",
    "attn_q_norm.weight": "self_attn.q_norm.weight", "attn_k_norm.weight": "self_attn.k_norm.weight",
}
VISION_LINEAR = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
                 "attn_out": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
                 "ffn_down": "mlp.down_proj"}
AUDIO_LAYER = {
    "ffn_norm.weight": "feed_forward1.pre_layer_norm.weight", "ffn_post_norm.weight": "feed_forward1.post_layer_norm.weight",
    "ffn_norm_1.weight": "feed_forward2.pre_layer_norm.weight",
    "ffn_post_norm_1.weight": "feed_forward2.post_layer_norm.weight",
    "attn_pre_norm.weight": "norm_pre_attn.weight", "attn_post_norm.weight": "norm_post_attn.weight",
    "ln2.weight": "norm_out.weight", "conv_norm.weight": "lconv1d.pre_layer_norm.weight",
    "norm_conv.weight": "lconv1d.conv_norm.weight", "conv_dw.weight": "lconv1d.depthwise_conv1d.weight",
    "attn_k_rel.weight": "self_attn.relative_k_proj.weight",
}
AUDIO_LINEAR = {"ffn_up": "feed_forward1.ffw_layer_1", "ffn_down": "feed_forward1.ffw_layer_2",
                "ffn_up_1": "feed_forward2.ffw_layer_1", "ffn_down_1": "feed_forward2.ffw_layer_2",
                "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
                "attn_out": "self_attn.post", "conv_pw1": "lconv1d.linear_start", "conv_pw2": "lconv1d.linear_end"}
AUDIO = {
    "a.conv1d.0.weight": "subsample_conv_projection.layer0.conv.weight",
    "a.conv1d.0.norm.weight": "subsample_conv_projection.layer0.norm.weight",
    "a.conv1d.1.weight": "subsample_conv_projection.layer1.conv.weight",
    "a.conv1d.1.norm.weight": "subsample_conv_projection.layer1.norm.weight",
    "a.input_projection.weight": "subsample_conv_projection.input_proj_linear.weight",
    "a.pre_encode.out.weight": "output_proj.weight", "a.pre_encode.out.bias": "output_proj.bias",
}


def picture(width, height):
    x, y, c = np.meshgrid(np.arange(width), np.arange(height), np.arange(3), indexing="xy")
    return ((37 * x + 91 * y + 53 * c + ((x * x) ^ (3 * y * y))) & 255).astype(np.uint8)  # (height, width, 3)


def sound(count):
    """Two triangle waves and noise, at 16 kHz."""
    i = np.arange(count, dtype=np.int64)
    wave = lambda step: np.abs(((i * step) & 65535) - 32768) - 16384
    noise = ((i * 1103515245 + 12345) >> 8 & 4095) - 2048
    return ((wave(1802) + wave(5309) // 2 + noise) / 65536).astype(np.float32)


def linear_name(rest, names):
    """'attn_q.weight' and 'attn_q.input_min' are parts of one clipped linear."""
    name, part = rest.rsplit(".", 1)
    if name not in names:
        return None
    return f"{names[name]}.linear.weight" if part == "weight" else f"{names[name]}.{part}"


def tower_state(tensors):
    for name, value in tensors.items():
        if name == "mm.input_projection.weight":
            yield "model.embed_vision.embedding_projection.weight", value
        elif name == "mm.a.input_projection.weight":
            yield "model.embed_audio.embedding_projection.weight", value
        elif name == "v.patch_embd.weight":  # (out, channel, row, column)
            yield "model.vision_tower.patch_embedder.input_proj.weight", value.reshape(-1, 3, 16, 16).transpose(0, 2, 3, 1)
        elif name == "v.position_embd.weight":
            yield "model.vision_tower.patch_embedder.position_embedding_table", value
        elif name in ("v.std_bias", "v.std_scale"):
            yield "model.vision_tower." + name[2:], value
        elif name in AUDIO:
            yield "model.audio_tower." + AUDIO[name], value
        elif name.startswith("v.blk."):
            _, _, layer, rest = name.split(".", 3)
            yield (f"model.vision_tower.encoder.layers.{layer}." +
                   (VISION_LAYER.get(rest) or linear_name(rest, VISION_LINEAR)), value)
        elif name.startswith("a.blk."):
            _, _, layer, rest = name.split(".", 3)
            if rest == "per_dim_scale.weight":  # the file has the softplus of it
                yield (f"model.audio_tower.layers.{layer}.self_attn.per_dim_scale",
                       np.log(np.expm1(value.astype(np.float64))))
            else:
                yield (f"model.audio_tower.layers.{layer}." +
                       (AUDIO_LAYER.get(rest) or linear_name(rest, AUDIO_LINEAR)), value)


def with_towers(text, projector, bidirectional):
    """Gemma4ForConditionalGeneration of two files, and the names of its special tokens."""
    values, tensors = read_gguf(text)
    keys, towers = read_gguf(projector)
    tokens = values["tokenizer.ggml.tokens"]
    width, heads = keys["clip.vision.embedding_length"], keys["clip.vision.attention.head_count"]
    vision = Gemma4VisionConfig(
        hidden_size=width, intermediate_size=keys["clip.vision.feed_forward_length"],
        num_hidden_layers=keys["clip.vision.block_count"], num_attention_heads=heads, num_key_value_heads=heads,
        head_dim=width // heads, position_embedding_size=towers["v.position_embd.weight"].shape[1],
        use_clipped_linears="v.blk.0.attn_q.input_min" in towers, standardize="v.std_bias" in towers)
    audio = None
    if "a.conv1d.0.weight" in towers:
        audio = Gemma4AudioConfig(
            hidden_size=keys["clip.audio.embedding_length"], num_hidden_layers=keys["clip.audio.block_count"],
            num_attention_heads=keys["clip.audio.attention.head_count"],
            subsampling_conv_channels=[towers["a.conv1d.0.weight"].shape[0], towers["a.conv1d.1.weight"].shape[0]],
            conv_kernel_size=towers["a.blk.0.conv_dw.weight"].shape[-1],
            use_clipped_linears="a.blk.0.attn_q.input_min" in towers,
            output_proj_dims=towers["a.pre_encode.out.weight"].shape[0])
    ids = {name: tokens.index(name) for name in
           ("<|image>", "<|image|>", "<image|>", "<|audio>", "<|audio|>", "<audio|>", "<|video|>")}
    options = text_options(values, tensors)
    config = Gemma4Config(
        text_config=Gemma4TextConfig(**options, use_bidirectional_attention="vision" if bidirectional else None),
        vision_config=vision, audio_config=audio, boi_token_id=ids["<|image>"], image_token_id=ids["<|image|>"],
        eoi_token_id=ids["<image|>"], boa_token_id=ids["<|audio>"], audio_token_id=ids["<|audio|>"],
        eoa_token_index=ids["<audio|>"], video_token_id=ids["<|video|>"])
    model = Gemma4ForConditionalGeneration._from_config(config, attn_implementation="sdpa").float()
    state = [*text_state(tensors, "model.language_model."), *tower_state(towers)]
    return fill(model, state), ids


def write_gguf(path, values, tensors):
    """Strings, numbers and flags; arrays of float32 as F32, of float16 as F16."""
    def text(s):
        return struct.pack("<Q", len(s)) + s.encode()

    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(values))
    for key, value in values.items():
        out += text(key)
        if isinstance(value, str):
            out += struct.pack("<I", 8) + text(value)
        elif isinstance(value, bool):
            out += struct.pack("<I?", 7, value)
        elif isinstance(value, float):
            out += struct.pack("<If", 6, value)
        else:
            out += struct.pack("<II", 4, value)
    data = b""
    for name, array in tensors.items():
        out += text(name) + struct.pack("<I", array.ndim) + struct.pack(f"<{array.ndim}Q", *array.shape[::-1])
        out += struct.pack("<IQ", {"float32": 0, "float16": 1}[str(array.dtype)], len(data))
        data += array.tobytes()
        data += b"\0" * (-len(data) % 32)
    out += b"\0" * (-len(out) % 32)
    path.write_bytes(out + data)


def unified(text, projector):
    """A model without encoders: a text model's file and random embedders, which are written to `projector`."""
    values, tensors = read_gguf(text)
    width, side = values["gemma4.embedding_length"], 48
    random = np.random.default_rng(12)
    half = lambda *shape, scale=1.0, centre=0.0: (
        (centre + scale * random.standard_normal(shape)).astype(np.float16).astype(np.float32))
    pixels = 3 * side * side
    towers = {
        "v.patch_norm.1.weight": half(pixels, scale=0.1, centre=1), "v.patch_norm.1.bias": half(pixels, scale=0.1),
        "v.patch_embd.weight": half(width, pixels, scale=pixels**-0.5), "v.patch_embd.bias": half(width, scale=0.1),
        "v.patch_norm.2.weight": half(width, scale=0.1, centre=1), "v.patch_norm.2.bias": half(width, scale=0.1),
        "v.position_embd.weight": half(2, 1120, width, scale=0.3),
        "v.patch_norm.3.weight": half(width, scale=0.1, centre=1), "v.patch_norm.3.bias": half(width, scale=0.1),
        "mm.input_projection.weight": half(width, width, scale=width**-0.5),
        "mm.a.input_projection.weight": half(width, 640, scale=640**-0.5),
    }
    write_gguf(projector, {
        "general.architecture": "clip", "general.type": "mmproj", "general.name": "tiny-12b",
        "clip.has_vision_encoder": True, "clip.has_audio_encoder": True,
        "clip.vision.projector_type": "gemma4uv", "clip.vision.projection_dim": width, "clip.vision.image_size": 224,
        "clip.vision.patch_size": 16, "clip.vision.embedding_length": width, "clip.vision.feed_forward_length": 0,
        "clip.vision.block_count": 0, "clip.vision.attention.head_count": 0,
        "clip.vision.attention.layer_norm_epsilon": 1e-6,
        "clip.audio.projector_type": "gemma4ua", "clip.audio.projection_dim": width, "clip.audio.embedding_length": 0,
        "clip.audio.feed_forward_length": 0, "clip.audio.block_count": 0, "clip.audio.attention.head_count": 0,
        "clip.audio.num_mel_bins": 128, "clip.audio.attention.layer_norm_epsilon": 1e-6},
        # All values are halves; matrices are kept as such, the rest as converters keep it.
        {name: value.astype(np.float16) if name in ("v.patch_embd.weight", "mm.input_projection.weight",
                                                    "mm.a.input_projection.weight") else value
         for name, value in towers.items()})
    first = tensors["token_embd.weight"].shape[0] - 7
    ids = {name: first + i for i, name in enumerate(
        ("<|image>", "<|image|>", "<image|>", "<|audio>", "<|audio|>", "<audio|>", "<|video|>"))}
    options = text_options(values, tensors)
    for name in ("vocab_size_per_layer_input", "hidden_size_per_layer_input", "enable_moe_block", "num_experts",
                 "top_k_experts", "moe_intermediate_size"):
        options.pop(name)
    config = unified_configs.Gemma4UnifiedConfig(
        text_config=unified_configs.Gemma4UnifiedTextConfig(**options, use_bidirectional_attention="vision"),
        vision_config=unified_configs.Gemma4UnifiedVisionConfig(mm_embed_dim=width, output_proj_dims=width),
        audio_config=unified_configs.Gemma4UnifiedAudioConfig(),
        boi_token_id=ids["<|image>"], image_token_id=ids["<|image|>"], eoi_token_id=ids["<image|>"],
        boa_token_id=ids["<|audio>"], audio_token_id=ids["<|audio|>"], eoa_token_index=ids["<audio|>"],
        video_token_id=ids["<|video|>"])
    model = Gemma4UnifiedForConditionalGeneration._from_config(config, attn_implementation="sdpa").float()
    # In the file a patch is (channel, row, column), in transformers (row, column, channel).
    by_pixel = lambda v: v.reshape(-1, 3, side, side).transpose(0, 2, 3, 1)
    eyes = "model.embed_vision."
    state = [
        (eyes + "patch_ln1.weight", by_pixel(towers["v.patch_norm.1.weight"])),
        (eyes + "patch_ln1.bias", by_pixel(towers["v.patch_norm.1.bias"])),
        (eyes + "patch_dense.weight", by_pixel(towers["v.patch_embd.weight"])),
        (eyes + "patch_dense.bias", towers["v.patch_embd.bias"]),
        (eyes + "patch_ln2.weight", towers["v.patch_norm.2.weight"]), (eyes + "patch_ln2.bias", towers["v.patch_norm.2.bias"]),
        (eyes + "pos_embedding", towers["v.position_embd.weight"].transpose(1, 0, 2)),
        (eyes + "pos_norm.weight", towers["v.patch_norm.3.weight"]), (eyes + "pos_norm.bias", towers["v.patch_norm.3.bias"]),
        (eyes + "multimodal_embedder.embedding_projection.weight", towers["mm.input_projection.weight"]),
        ("model.embed_audio.embedding_projection.weight", towers["mm.a.input_projection.weight"]),
        *text_state(tensors, "model.language_model.")]
    return fill(model, state), ids


class Examined:
    """A model, the processors that belong to it, and what is kept of its answers."""

    def __init__(self, name, model, ids, images, hearing, out):
        self.name, self.model, self.ids, self.images, self.hearing, self.out = name, model, ids, images, hearing, out

    def see(self, size, budget):
        processor = self.images(max_soft_tokens=budget)
        # Channels come first in what the processor makes of a PIL image; it would guess where a picture has 3 columns.
        seen = processor(images=[Image.fromarray(picture(*size))], input_data_format="channels_first", return_tensors="pt")
        with torch.no_grad():
            soft = self.model.model.get_image_features(seen["pixel_values"].float(), seen["image_position_ids"],
                                                       return_dict=True).pooler_output
        return seen, torch.cat(list(soft), dim=0).reshape(-1, self.model.config.text_config.hidden_size)

    def hear(self, count):
        # In a list: of a bare array the processor makes a batch of one-sample recordings.
        heard = self.hearing([sound(count)], sampling_rate=16000, return_tensors="pt")
        features, mask = heard["input_features"].float(), heard["input_features_mask"].bool()
        with torch.no_grad():
            answer = self.model.model.get_audio_features(features, mask, return_dict=True)
        return (features, mask), answer.pooler_output[answer.attention_mask.bool()]

    def keep_rows(self, key, soft):
        count = soft.shape[0]
        rows = sorted({0, count // 3, 2 * count // 3, count - 1})
        self.out[f"{self.name}.{key}.rows"] = np.array([count, *rows], np.int32)
        self.out[f"{self.name}.{key}.soft"] = soft[rows].numpy().astype(np.float32)

    def keep_picture(self, size, budget):
        self.keep_rows(f"{size[0]}x{size[1]}.{budget}", self.see(size, budget)[1])

    def keep_recording(self, count):
        self.keep_rows(f"{count}", self.hear(count)[1])

    def keep_prompt(self, key, parts):
        """`parts` are token ids, (width, height, budget) of pictures, or a number of samples in a one-tuple."""
        ids, kinds, pixels, positions, clips = [], [], [], [], []
        for part in parts:
            if isinstance(part, int):
                ids.append(part), kinds.append(0)
            elif len(part) == 3:
                seen, soft = self.see(part[:2], part[2])
                pixels.append(seen["pixel_values"].float()), positions.append(seen["image_position_ids"])
                ids += [self.ids["<|image>"], *[self.ids["<|image|>"]] * soft.shape[0], self.ids["<image|>"]]
                kinds += [0, *[1] * soft.shape[0], 0]
            else:
                heard, soft = self.hear(part[0])
                clips.append(heard)
                ids += [self.ids["<|audio>"], *[self.ids["<|audio|>"]] * soft.shape[0], self.ids["<audio|>"]]
                kinds += [0, *[3] * soft.shape[0], 0]
        assert len(clips) <= 1
        tokens, types = torch.tensor([ids]), torch.tensor([kinds])
        where = torch.arange(len(ids))[None]
        config = self.model.config
        blank = torch.zeros(1, len(ids), config.text_config.hidden_size)
        # As generate() makes them, which is the rule for pictures.
        masks = type(self.model).create_masks_for_generate(
            config=config, inputs_embeds=blank, attention_mask=None, past_key_values=None, position_ids=where,
            mm_token_type_ids=types, is_first_iteration=True)
        with torch.no_grad():
            logits = self.model(
                input_ids=tokens, attention_mask=masks, position_ids=where, mm_token_type_ids=types, use_cache=False,
                pixel_values=torch.cat(pixels) if pixels else None,
                image_position_ids=torch.cat(positions) if positions else None,
                input_features=clips[0][0] if clips else None,
                input_features_mask=clips[0][1] if clips else None).logits[0].float().numpy()
        kept = sorted({*range(0, len(ids), 7), *range(len(ids) - 6, len(ids))})
        self.out[f"{self.name}.{key}.ids"] = np.array(ids, np.int32)
        self.out[f"{self.name}.{key}.positions"] = np.array(kept, np.int32)
        self.out[f"{self.name}.{key}.logits"] = logits[kept].astype(np.float32)


FAILED = []


def attempt(what, make, *arguments):
    """What make(*arguments) gives; None, and a note of it, when it fails."""
    try:
        return make(*arguments)
    except (Exception, SystemExit):
        print(f"--- {what} {arguments} failed:")
        traceback.print_exc(file=sys.stdout)
        FAILED.append(what)
        return None


def main():
    data, target = map(Path, sys.argv[1:])
    target.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    out = {}
    models = {
        "tiny-e2b": (with_towers, data / "tiny-e2b-Q4_K_M.gguf", data / "tiny-e2b-mmproj.gguf", False),
        "tiny-26b": (with_towers, data / "tiny-26b-Q4_K_M.gguf", data / "tiny-26b-mmproj.gguf", True),
        "tiny-12b": (unified, data / "tiny-31b.gguf", target / "tiny-12b-mmproj.gguf"),
    }
    processors = {
        "tiny-e2b": (Gemma4ImageProcessor, Gemma4AudioFeatureExtractor()), "tiny-26b": (Gemma4ImageProcessor, None),
        "tiny-12b": (Gemma4UnifiedImageProcessor, Gemma4UnifiedAudioFeatureExtractor()),
    }
    for name, how in models.items():
        made = attempt(name, *how)
        if made is None:
            continue
        model = Examined(name, *made, *processors[name], out)
        out[f"{name}.placeholders"] = np.array([made[1]["<|image|>"], made[1]["<|audio|>"]], np.int32)
        for budget in BUDGETS:
            attempt(name, model.keep_picture, USUAL, budget)
        for size in ODD:
            attempt(name, model.keep_picture, size, 70)
        if model.hearing:
            for count in RECORDINGS:
                attempt(name, model.keep_recording, count)
        parts = [2, 30, 31, (144, 96, 70), 32, 33, (30000,), 34, (31, 977, 70), 35, 36, 37, 38]
        if not model.hearing:
            parts = [2, 30, 31, (144, 96, 70), 32, (31, 977, 70), (640, 480, 70), 35, 36, 37, 38]
        attempt(name, model.keep_prompt, "mixed", parts)
    write_safetensors(target / "multimodal.safetensors", out)
    print({name: array.shape for name, array in out.items()})
    print(f"{len(FAILED)} failed: {FAILED}" if FAILED else "all done")
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
