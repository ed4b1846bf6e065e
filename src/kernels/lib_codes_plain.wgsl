// Codes that are what is multiplied, but for ZERO.
fn codes16(n: vec4u) -> vec4u { return n; }
