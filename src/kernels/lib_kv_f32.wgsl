// Keys and values in single precision.
const KV_PER_WORD: u32 = 1u;
fn kv_unpack(word: u32) -> vec2f { return vec2f(bitcast<f32>(word), 0.0); }
fn kv_pack(value: vec2f) -> u32 { return bitcast<u32>(value.x); }
alias KvFour = vec4f;
fn kv_four(four: KvFour) -> vec4f { return four; }
fn kv_pack_four(four: vec4f) -> KvFour { return four; }
