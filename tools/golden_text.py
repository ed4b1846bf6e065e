"""Expected logits of a GGUF text model from transformers, in float32:  golden_text.py MODEL.gguf IDS OUT.safetensors

Needs torch and transformers with gemma4. IDS is a list such as 2,17,105, or a .safetensors file with `long.ids`. Weights
are dequantised here, with code of its own, so that the result is independent of bezel. With --bf16-rope the rotary
frequencies are rounded to bfloat16, as happens to a model that is cast to bfloat16 as a whole.
"""
import json
import struct
import sys

import numpy as np
import torch
from transformers import Gemma4ForCausalLM, Gemma4TextConfig

SCALARS = {0: "<u1", 1: "<i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "<u1", 10: "<u8", 11: "<i8", 12: "<f8"}


def read_gguf(path):
    data = np.memmap(path, dtype=np.uint8, mode="r")
    at = 8

    def scalar(kind):
        nonlocal at
        kind = np.dtype(kind)
        value = data[at : at + kind.itemsize].view(kind)[0]
        at += kind.itemsize
        return value.item()

    def string():
        nonlocal at
        length = scalar("<u8")
        text = bytes(data[at : at + length])
        at += length
        return text.decode("utf-8", "replace")

    def value(kind):
        if kind == 8:
            return string()
        if kind == 9:
            element, count = scalar("<u4"), scalar("<u8")
            return [value(element) for _ in range(count)]
        return scalar(SCALARS[kind])

    tensors, values = {}, {}
    tensor_count, value_count = scalar("<u8"), scalar("<u8")
    for _ in range(value_count):
        key = string()
        values[key] = value(scalar("<u4"))
    entries = []
    for _ in range(tensor_count):
        name = string()
        shape = [scalar("<u8") for _ in range(scalar("<u4"))]
        entries.append((name, shape, scalar("<u4"), scalar("<u8")))
    start = -(-at // 32) * 32
    for name, shape, kind, offset in entries:
        tensors[name] = dequantise(data[start + offset :], kind, shape)
    return values, tensors


def half(blocks, at):
    return blocks[:, at : at + 2].copy().view("<f2").astype(np.float32)


def dequantise(data, kind, shape):
    count = int(np.prod(shape))
    if kind == 0:
        flat = data[: 4 * count].view("<f4")
    elif kind == 1:
        flat = data[: 2 * count].view("<f2").astype(np.float32)
    elif kind == 30:
        flat = (data[: 2 * count].view("<u2").astype(np.uint32) << 16).view("<f4")
    else:
        elements, size, decode = {8: (32, 34, q8_0), 6: (32, 22, q5_0), 12: (256, 144, q4_k), 13: (256, 176, q5_k),
                                  14: (256, 210, q6_k)}[kind]
        flat = decode(np.array(data[: count // elements * size]).reshape(-1, size))
    return np.array(flat, dtype=np.float32).reshape(shape[::-1])


def q8_0(b):
    return half(b, 0) * b[:, 2:].view(np.int8).astype(np.float32)


def q5_0(b):
    high = np.unpackbits(b[:, 2:6], axis=1, bitorder="little")
    low = np.concatenate([b[:, 6:] & 15, b[:, 6:] >> 4], axis=1)
    return half(b, 0) * ((low | high << 4).astype(np.float32) - 16)


def q4_k_scales(b):
    s = b[:, 4:16]
    scale = np.concatenate([s[:, 0:4] & 63, (s[:, 8:12] & 15) | (s[:, 0:4] >> 6) << 4], axis=1)
    low = np.concatenate([s[:, 4:8] & 63, (s[:, 8:12] >> 4) | (s[:, 4:8] >> 6) << 4], axis=1)
    return scale, low


def q4_k(b):
    scale, low = q4_k_scales(b)
    q = b[:, 16:].reshape(-1, 4, 1, 32)
    q = np.concatenate([q & 15, q >> 4], axis=2).reshape(-1, 8, 32).astype(np.float32)
    d, m = half(b, 0)[:, :, None], half(b, 2)[:, :, None]
    return d * scale[:, :, None].astype(np.float32) * q - m * low[:, :, None].astype(np.float32)


def q5_k(b):
    high = np.stack([b[:, 16:48] >> j & 1 for j in range(8)], axis=1).astype(np.float32)
    d, scale = half(b, 0)[:, :, None], q4_k_scales(b)[0][:, :, None].astype(np.float32)
    return q4_k(np.concatenate([b[:, :16], b[:, 48:]], axis=1)) + d * scale * 16 * high


def q6_k(b):
    low = b[:, :128].reshape(-1, 2, 2, 32)
    low = np.concatenate([low & 15, low >> 4], axis=2).reshape(-1, 2, 4, 32)
    high = b[:, 128:192].reshape(-1, 2, 1, 32)
    high = np.concatenate([high >> s & 3 for s in (0, 2, 4, 6)], axis=2)
    q = (low | high << 4).reshape(-1, 16, 16).astype(np.float32) - 32
    scale = b[:, 192:208].view(np.int8).astype(np.float32)[:, :, None]
    return half(b, 208)[:, :, None] * scale * q


# GGUF's names and transformers'.
LAYER = {
    "attn_norm.weight": "input_layernorm.weight",
    "attn_q.weight": "self_attn.q_proj.weight",
    "attn_k.weight": "self_attn.k_proj.weight",
    "attn_v.weight": "self_attn.v_proj.weight",
    "attn_output.weight": "self_attn.o_proj.weight",
    "attn_q_norm.weight": "self_attn.q_norm.weight",
    "attn_k_norm.weight": "self_attn.k_norm.weight",
    "post_attention_norm.weight": "post_attention_layernorm.weight",
    "ffn_norm.weight": "pre_feedforward_layernorm.weight",
    "ffn_gate.weight": "mlp.gate_proj.weight",
    "ffn_up.weight": "mlp.up_proj.weight",
    "ffn_down.weight": "mlp.down_proj.weight",
    "post_ffw_norm.weight": "post_feedforward_layernorm.weight",
    "layer_output_scale.weight": "layer_scalar",
    "inp_gate.weight": "per_layer_input_gate.weight",
    "proj.weight": "per_layer_projection.weight",
    "post_norm.weight": "post_per_layer_input_norm.weight",
    "ffn_gate_inp.weight": "router.proj.weight",
    "ffn_gate_inp.scale": "router.scale",
    "ffn_down_exps.scale": "router.per_expert_scale",
    "pre_ffw_norm_2.weight": "pre_feedforward_layernorm_2.weight",
    "post_ffw_norm_1.weight": "post_feedforward_layernorm_1.weight",
    "post_ffw_norm_2.weight": "post_feedforward_layernorm_2.weight",
    "ffn_gate_up_exps.weight": "experts.gate_up_proj",
    "ffn_down_exps.weight": "experts.down_proj",
}
GLOBAL = {
    "token_embd.weight": "embed_tokens.weight",
    "output_norm.weight": "norm.weight",
    "per_layer_token_embd.weight": "embed_tokens_per_layer.weight",
    "per_layer_model_proj.weight": "per_layer_model_projection.weight",
    "per_layer_proj_norm.weight": "per_layer_projection_norm.weight",
}


def text_options(values, tensors):
    """What Gemma4TextConfig is made from."""
    key = lambda name, otherwise=None: values.get("gemma4." + name, otherwise)
    sliding = [bool(s) for s in key("attention.sliding_window_pattern")]
    per_layer = lambda v: v if isinstance(v, list) else [v] * len(sliding)
    kv, ffn = per_layer(key("attention.head_count_kv")), per_layer(key("feed_forward_length"))
    ple = key("embedding_length_per_layer_input", 0)
    return dict(
        vocab_size=tensors["token_embd.weight"].shape[0],
        vocab_size_per_layer_input=tensors["token_embd.weight"].shape[0],
        hidden_size=key("embedding_length"), intermediate_size=ffn[0], num_hidden_layers=len(sliding),
        num_attention_heads=key("attention.head_count"), num_key_value_heads=kv[sliding.index(True)],
        num_global_key_value_heads=kv[-1], head_dim=key("attention.key_length_swa"), global_head_dim=key("attention.key_length"),
        max_position_embeddings=key("context_length"), sliding_window=key("attention.sliding_window"),
        layer_types=["sliding_attention" if s else "full_attention" for s in sliding],
        final_logit_softcapping=30.0, hidden_size_per_layer_input=ple,
        attention_k_eq_v=any(f"blk.{i}.attn_k.weight" in tensors and f"blk.{i}.attn_v.weight" not in tensors
                             for i in range(len(sliding))),
        num_kv_shared_layers=key("attention.shared_kv_layers", 0), use_double_wide_mlp=ffn[-1] > ffn[0],
        enable_moe_block=bool(key("expert_count", 0)), num_experts=key("expert_count"),
        top_k_experts=key("expert_used_count"), moe_intermediate_size=key("expert_feed_forward_length"),
    )


def text_state(tensors, prefix):
    """transformers' names of what a text model's file holds, and the tensors."""
    for name, value in tensors.items():
        if name in GLOBAL:
            yield prefix + GLOBAL[name], value
            if name == "token_embd.weight":
                yield "lm_head.weight", value
        elif name.startswith("blk."):
            _, layer, rest = name.split(".", 2)
            yield f"{prefix}layers.{layer}.{LAYER[rest]}", value


def fill(model, state):
    """Puts `state` into the model, which must want nothing else."""
    wanted = model.state_dict()
    state = {name: torch.from_numpy(np.array(value, dtype=np.float32)).reshape(wanted[name].shape)
             for name, value in state if name in wanted}
    missing = [name for name in wanted if name not in state]
    if missing:
        sys.exit(f"not in the file: {missing[:8]}")
    model.load_state_dict(state)
    return model.eval()


def build(values, tensors):
    config = Gemma4TextConfig(**text_options(values, tensors))
    config._attn_implementation = "sdpa"
    return fill(Gemma4ForCausalLM(config).float(), text_state(tensors, "model."))


def write_safetensors(path, parts):
    """`parts` are arrays by name."""
    kinds = {"int32": "I32", "float32": "F32", "uint8": "U8"}
    header, blob = {}, b""
    for name, array in parts.items():
        raw = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": kinds[str(array.dtype)], "shape": list(array.shape),
                        "data_offsets": [len(blob), len(blob) + len(raw)]}
        blob += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + blob)


def main():
    path, ids, out = [a for a in sys.argv[1:] if not a.startswith("--")]
    if ids.endswith(".safetensors"):
        with open(ids, "rb") as f:
            header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
            base = f.tell()
            begin, end = header["long.ids"]["data_offsets"]
            f.seek(base + begin)
            ids = np.frombuffer(f.read(end - begin), "<i4")
    else:
        ids = np.array([int(i) for i in ids.split(",")], "<i4")
    model = build(*read_gguf(path))
    if "--bf16-rope" in sys.argv:
        for module in model.modules():
            for name, buffer in module.named_buffers(recurse=False):
                if "inv_freq" in name:
                    setattr(module, name, buffer.bfloat16().float())
    with torch.no_grad():
        logits = model(torch.tensor(ids[None].astype(np.int64))).logits[0].float().numpy()
    write_safetensors(out, {"long.ids": ids, "long.logits": logits})


if __name__ == "__main__":
    main()
