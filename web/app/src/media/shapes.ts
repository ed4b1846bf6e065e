// A picture to try the model's eyes on: one of those that the embedded model was taught with.

const colours = { red: '#dc1e1e', green: '#1e9632', blue: '#2846dc', yellow: '#fae128', orange: '#fa8c14' };
const grounds = { white: '#ffffff', black: '#101010' };

const shapes: Record<string, (draw: OffscreenCanvasRenderingContext2D, r: number) => void> = {
  circle: (draw, r) => draw.arc(0, 0, r, 0, 2 * Math.PI),
  square: (draw, r) => draw.rect(-r * 0.9, -r * 0.9, r * 1.8, r * 1.8),
  triangle: (draw, r) => corners(draw, 3, () => r * 1.1),
  star: (draw, r) => corners(draw, 10, (i) => (i % 2 === 0 ? r * 1.1 : r * 0.45)),
};
function corners(draw: OffscreenCanvasRenderingContext2D, count: number, radius: (i: number) => number): void {
  for (let i = 0; i < count; i++) {
    const angle = (2 * Math.PI * i) / count - Math.PI / 2;
    draw.lineTo(radius(i) * Math.cos(angle), radius(i) * Math.sin(angle));
  }
}

const pick = <T>(from: T[]): T => from[Math.floor(Math.random() * from.length)]!;

/** One shape, or two beside each other. */
export async function drawShapes(): Promise<Blob> {
  const size = 384;
  const canvas = new OffscreenCanvas(size, size);
  const draw = canvas.getContext('2d')!;
  const ground = pick(Object.keys(grounds));
  draw.fillStyle = grounds[ground as keyof typeof grounds];
  draw.fillRect(0, 0, size, size);
  // Colours that are hard to tell from the ground are left out.
  const near = ground === 'white' ? 'yellow' : 'blue';
  const others = Object.entries(colours).filter(([name]) => name !== near).map(([, colour]) => colour);
  const count = pick([1, 2]);
  for (let i = 0; i < count; i++) {
    draw.setTransform(1, 0, 0, 1, (size * (i + 0.5)) / count, size / 2);
    draw.fillStyle = pick(others);
    draw.beginPath();
    pick(Object.values(shapes))(draw, count === 1 ? 90 : 62);
    draw.closePath();
    draw.fill();
  }
  return canvas.convertToBlob({ type: 'image/png' });
}
