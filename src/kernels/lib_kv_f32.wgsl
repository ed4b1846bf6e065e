// Keys and values in single precision, as lib_kv_plain.wgsl.
alias KvWord = vec4f;
fn kv_four(four: KvFour) -> vec4f { return four; }
fn kv_pack(four: vec4f, largest: f32) -> KvFour { return four; }
