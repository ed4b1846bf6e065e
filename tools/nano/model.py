"""The nano model: Gemma 4's architecture, scaled down. Building, running, rounding and saving it."""
import json
import struct

import torch
import torch.nn.functional as F
from torch import nn
from transformers import Gemma4AudioConfig, Gemma4Config, Gemma4ForConditionalGeneration, Gemma4TextConfig, Gemma4VisionConfig

import vocab

WINDOW = 128
CONTEXT = 2048
POSITIONS = 256


def configuration(encoder):
    text = Gemma4TextConfig(
        vocab_size=vocab.SIZE, vocab_size_per_layer_input=vocab.SIZE, hidden_size=256, intermediate_size=512, num_hidden_layers=10,
        num_attention_heads=4, num_key_value_heads=1, head_dim=64, global_head_dim=128, max_position_embeddings=CONTEXT,
        sliding_window=WINDOW, layer_types=["full_attention" if i % 5 == 4 else "sliding_attention" for i in range(10)],
        final_logit_softcapping=30.0, hidden_size_per_layer_input=32, num_kv_shared_layers=5, use_double_wide_mlp=True,
        attention_k_eq_v=False, enable_moe_block=False, pad_token_id=0, eos_token_id=1, bos_token_id=2)
    vision = Gemma4VisionConfig(hidden_size=192, intermediate_size=512, num_hidden_layers=4, num_attention_heads=3, num_key_value_heads=3,
                                head_dim=64, position_embedding_size=POSITIONS, use_clipped_linears=False, standardize=False)
    audio = Gemma4AudioConfig(hidden_size=192, num_hidden_layers=3, num_attention_heads=4, subsampling_conv_channels=[128, 32],
                              output_proj_dims=256, use_clipped_linears=False)
    special = encoder.special
    return Gemma4Config(text_config=text, vision_config=vision, audio_config=audio, boi_token_id=special["<|image>"],
                        eoi_token_id=special["<image|>"], image_token_id=special["<|image|>"], video_token_id=special["<|video|>"],
                        boa_token_id=special["<|audio>"], eoa_token_index=special["<audio|>"], audio_token_id=special["<|audio|>"])


def build(encoder, seed=0):
    torch.manual_seed(seed)
    config = configuration(encoder)
    config._attn_implementation = "sdpa"
    model = Gemma4ForConditionalGeneration(config).float()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(("q_norm.weight", "k_norm.weight")):
                # Attention has no scale of its own: begin as if it had the usual one.
                parameter.fill_(parameter.numel() ** -0.25)
            elif name.endswith(("post_attention_layernorm.weight", "post_feedforward_layernorm.weight")):
                parameter.fill_(0.5)
            elif name.endswith("post_per_layer_input_norm.weight"):
                parameter.fill_(0.25)
            elif name.endswith("position_embedding_table"):
                parameter.normal_(0, 0.1)
            elif name.endswith(("input_proj.weight", "conv.weight")):
                nn.init.kaiming_normal_(parameter, nonlinearity="linear")
    # The scale of a layer's output is a constant in transformers; here it is learnt as well.
    for layer in model.model.language_model.layers:
        if "layer_scalar" in layer._buffers:
            layer.layer_scalar = nn.Parameter(layer._buffers.pop("layer_scalar").detach().clone())
    model.lm_head.weight = model.model.language_model.embed_tokens.weight
    return model


def fuse_norms(model):
    """One kernel for a norm in place of six, where that gives the same numbers. Returns the largest difference seen."""
    kinds = {type(module) for module in model.modules() if type(module).__name__ == "Gemma4RMSNorm"}
    worst = 0.0
    for kind in kinds:
        plain = kind.forward

        def fused(self, x):
            weight = self.weight.float() if self.with_scale else None
            with torch.autocast(x.device.type, enabled=False):
                return F.rms_norm(x.float(), (x.shape[-1],), weight, self.eps).type_as(x)

        sample = next(m for m in model.modules() if type(m) is kind and m.with_scale)
        device = sample.weight.device
        x = torch.randn(64, sample.weight.shape[0], device=device)
        difference = (plain(sample, x) - fused(sample, x)).abs().max().item()
        worst = max(worst, difference)
        if difference < 1e-4:
            kind.forward = fused
    return worst


def masks(length, device):
    """For both kinds of layer; None stands for the plain causal one."""
    q = torch.arange(length, device=device)[:, None]
    k = torch.arange(length, device=device)[None]
    if length <= WINDOW:
        return {"full_attention": None, "sliding_attention": None}
    return {"full_attention": None, "sliding_attention": ((k <= q) & (q - k < WINDOW))[None, None]}


class Heads(nn.Module):
    """Only for training: what each soft token shows or what is being said at it. Left out of the exported model."""

    def __init__(self, width, shapes, colours, characters, letters):
        super().__init__()
        self.sizes = (shapes + 1, colours + 1, characters + 1)
        self.picture = nn.Linear(width, sum(self.sizes))
        self.sound = nn.Linear(width, letters)


class Nano:
    """The parts of the model that training and scoring call, put together the way Gemma4Model.forward does it."""

    def __init__(self, model, encoder):
        self.model = model
        self.core = model.model
        self.image_id = encoder.special["<|image|>"]
        self.audio_id = encoder.special["<|audio|>"]
        self.mask_cache = {}

    def see(self, values, positions):
        """B x N x 768, B x N x 2 -> soft tokens B x n x d."""
        seen = self.core.vision_tower(pixel_values=values, pixel_position_ids=positions).last_hidden_state
        return self.core.embed_vision(inputs_embeds=seen).view(values.shape[0], -1, self.model.config.text_config.hidden_size)

    def hear(self, features, mask):
        """B x T x 128 -> soft tokens B x t x d and which of them are real."""
        heard = self.core.audio_tower(features, mask, return_dict=True)
        return self.core.embed_audio(inputs_embeds=heard.last_hidden_state), heard.attention_mask

    def hidden(self, ids, image=None, audio=None):
        """ids B x L; image and audio are lists of soft tokens in the order of their placeholders, each n x d."""
        text = self.core.language_model
        is_image, is_audio = ids == self.image_id, ids == self.audio_id
        plain = torch.where(is_image | is_audio, 0, ids)
        embedded = text.embed_tokens(plain)
        for where, soft in ((is_image, image), (is_audio, audio)):
            if soft is not None:
                embedded = embedded.masked_scatter(where[..., None].expand_as(embedded), soft.to(embedded.dtype))
        per_layer = text.get_per_layer_inputs(plain, None)
        length = ids.shape[1]
        key = (length, ids.device)
        if key not in self.mask_cache:
            self.mask_cache[key] = masks(length, ids.device)
        return text(inputs_embeds=embedded, per_layer_inputs=per_layer, attention_mask=dict(self.mask_cache[key]), use_cache=False).last_hidden_state

    def logits(self, hidden):
        out = self.model.lm_head(hidden)
        return 30.0 * torch.tanh(out.float() / 30.0)


# ---- rounding, as GGUF's block formats do it ----

def half(x):
    return x.to(torch.float16).float()


def round_q8_0(blocks):
    scale = half(blocks.abs().amax(-1, keepdim=True) / 127)
    return torch.where(scale > 0, (blocks / scale.clamp(min=1e-12)).round().clamp(-128, 127) * scale, torch.zeros_like(blocks))


def round_signed(blocks, low):
    """Q4_0 (low = -8) and Q5_0 (low = -16): the value of the largest magnitude sits at the low end."""
    at = blocks.abs().argmax(-1, keepdim=True)
    scale = half(blocks.gather(-1, at) / low)
    safe = torch.where(scale == 0, torch.ones_like(scale), scale)
    return (blocks / safe).round().clamp(low, -low - 1) * scale


def round_q6_k(blocks):
    """256 values in 16 groups; the scales are whole numbers times one half float."""
    groups = blocks.view(*blocks.shape[:-1], 16, 16)
    scale = groups.abs().amax(-1, keepdim=True) / 31
    top = half(scale.amax(-2, keepdim=True) / 127)
    safe = torch.where(top == 0, torch.ones_like(top), top)
    scale = (scale / safe).round().clamp(0, 127) * top
    usable = torch.where(scale == 0, torch.ones_like(scale), scale)
    return ((groups / usable).round().clamp(-32, 31) * scale).view(blocks.shape)


FORMATS = {"Q8_0": (32, 8.5), "Q5_0": (32, 5.5), "Q4_0": (32, 4.5), "Q6_K": (256, 6.5625)}


def rounded(weight, kind):
    block = FORMATS[kind][0]
    blocks = weight.reshape(-1, block)
    made = {"Q8_0": round_q8_0, "Q5_0": lambda b: round_signed(b, -16), "Q4_0": lambda b: round_signed(b, -8), "Q6_K": round_q6_k}[kind](blocks)
    return made.reshape(weight.shape)


def is_quantised(name, tensor):
    """The same rule as in export.cc."""
    return tensor.dim() == 2 and tensor.shape[1] % 32 == 0 and not name.startswith("lm_head") and "patch_embedder" not in name


# What each choice makes of a tensor; text linears may go lower than the embeddings.
def choice(kind, name, tensor):
    if tensor.shape[1] % FORMATS[kind][0]:
        return "Q8_0"
    if kind != "Q8_0" and ("embed_tokens" in name or "tower" in name or "embed_vision" in name or "embed_audio" in name):
        return "Q8_0"
    return kind


@torch.no_grad()
def quantised_state(model, kind):
    """A copy of the parameters, rounded; and the size of the file they would make."""
    state, size = {}, 230_000  # keys and vocabulary
    for name, tensor in model.state_dict().items():
        if name.startswith("lm_head"):
            continue
        value = half(tensor.float())
        if is_quantised(name, tensor):
            used = choice(kind, name, tensor)
            value = rounded(value, used)
            size += tensor.numel() * FORMATS[used][1] / 8
        else:
            size += tensor.numel() * (2 if "input_proj.weight" in name else 4)
        state[name] = value
    return state, int(size)


# ---- files ----

NAMES = {torch.float32: "F32", torch.float16: "F16"}


def write_safetensors(path, tensors):
    header, at = {}, 0
    raw = []
    for name, tensor in tensors.items():
        data = tensor.detach().contiguous().cpu()
        raw.append(data.numpy().tobytes())
        header[name] = {"dtype": {"torch.float32": "F32", "torch.float16": "F16", "torch.int32": "I32", "torch.uint8": "U8"}[str(data.dtype)],
                        "shape": list(data.shape), "data_offsets": [at, at + len(raw[-1])]}
        at += len(raw[-1])
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for part in raw:
            f.write(part)


def save(model, folder, limit=16_500_000):
    """Weights in files of at most `limit` bytes; matrices as halves, the rest as they are."""
    parts, size = [{}], 0
    for name, tensor in model.state_dict().items():
        if name.startswith("lm_head"):
            continue
        tensor = tensor.detach().to(torch.float16 if is_quantised(name, tensor) else torch.float32)
        bytes_ = tensor.numel() * tensor.element_size()
        if size + bytes_ > limit:
            parts.append({})
            size = 0
        parts[-1][name] = tensor
        size += bytes_
    for i, part in enumerate(parts):
        write_safetensors(f"{folder}/nano-{i}.safetensors", part)
    return len(parts)
