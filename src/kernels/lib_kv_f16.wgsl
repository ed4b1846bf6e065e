// Keys and values in half precision, without an extension; as lib_kv_f32.wgsl.
alias KvWord = vec2u;
alias KvFour = vec2u;
const KV_SCALED: bool = false;
fn kv_place(four: u32) -> u32 { return four; }
fn kv_scale_place(four: u32) -> u32 { return four; }
fn kv_join(word: KvWord, scale: KvWord) -> KvFour { return word; }
fn kv_word(four: KvFour) -> KvWord { return four; }
fn kv_scale(four: KvFour) -> KvWord { return four; }
fn kv_four(words: KvFour) -> vec4f { return vec4f(unpack2x16float(words.x), unpack2x16float(words.y)); }
fn kv_pack(four: vec4f, largest: f32) -> KvFour { return vec2u(pack2x16float(four.xy), pack2x16float(four.zw)); }
