// Node has no decoder of pictures: 8-bit RGB PNGs without interlacing, as the tests' are.
import { inflateSync } from 'node:zlib';

export function readPng(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const [width, height] = [view.getUint32(16), view.getUint32(20)];
  if (bytes[24] !== 8 || bytes[25] !== 2 || bytes[28] !== 0) throw new Error('not an 8-bit RGB PNG');
  const pieces = [];
  for (let at = 8; at < bytes.length; at += 12 + view.getUint32(at)) {
    if (String.fromCharCode(...bytes.subarray(at + 4, at + 8)) === 'IDAT') pieces.push(bytes.subarray(at + 8, at + 8 + view.getUint32(at)));
  }
  const rows = inflateSync(Buffer.concat(pieces));
  const stride = 3 * width;
  const data = new Uint8Array(height * stride);
  for (let y = 0; y < height; y++) {
    const filter = rows[y * (stride + 1)];
    for (let x = 0; x < stride; x++) {
      const left = x < 3 ? 0 : data[y * stride + x - 3];
      const up = y === 0 ? 0 : data[(y - 1) * stride + x];
      const corner = x < 3 || y === 0 ? 0 : data[(y - 1) * stride + x - 3];
      const guess = left + up - corner;
      const [a, b, c] = [left, up, corner].map((near) => Math.abs(guess - near));
      const paeth = a <= b && a <= c ? left : b <= c ? up : corner;
      data[y * stride + x] = rows[y * (stride + 1) + 1 + x] + [0, left, up, (left + up) >> 1, paeth][filter];
    }
  }
  return { data, width, height };
}
