// Keys and values in half precision, two in a word; needs no extension.
const KV_PER_WORD: u32 = 2u;
fn kv_unpack(word: u32) -> vec2f { return unpack2x16float(word); }
fn kv_pack(value: vec2f) -> u32 { return pack2x16float(value); }
alias KvFour = vec2u;
fn kv_four(words: KvFour) -> vec4f { return vec4f(unpack2x16float(words.x), unpack2x16float(words.y)); }
fn kv_pack_four(four: vec4f) -> KvFour { return vec2u(pack2x16float(four.xy), pack2x16float(four.zw)); }
