// Keys and values in half precision, without an extension, as lib_kv_plain.wgsl.
alias KvWord = vec2u;
fn kv_four(words: KvFour) -> vec4f { return vec4f(unpack2x16float(words.x), unpack2x16float(words.y)); }
fn kv_pack(four: vec4f, largest: f32) -> KvFour { return vec2u(pack2x16float(four.xy), pack2x16float(four.zw)); }
