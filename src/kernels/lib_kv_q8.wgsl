// Keys and values in 8 bits: 32 numbers are nine words, the size of the largest in single precision and eight words of
// bytes, which are 127ths of it. As lib_kv_plain.wgsl; a thread keeps a word and its scale.
alias KvWord = u32;
alias KvFour = vec2u;
const KV_SCALED: bool = true;
fn kv_place(four: u32) -> u32 { return four / 8u * 9u + 1u + four % 8u; }
fn kv_scale_place(four: u32) -> u32 { return four / 8u * 9u; }
fn kv_join(word: KvWord, scale: KvWord) -> KvFour { return vec2u(word, scale); }
fn kv_word(four: KvFour) -> KvWord { return four.x; }
fn kv_scale(four: KvFour) -> KvWord { return four.y; }
fn kv_four(four: KvFour) -> vec4f { return unpack4x8snorm(four.x) * bitcast<f32>(four.y); }
fn kv_pack(four: vec4f, largest: f32) -> KvFour {
  return vec2u(pack4x8snorm(four / max(largest, 1.0e-30)), bitcast<u32>(largest));
}
