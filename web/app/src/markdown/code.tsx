// A block of code: its language, a button to copy it, colours once they are loaded.

import { memo, useEffect, useMemo, useState, type ReactNode } from 'react';
import { CopyButton } from '../ui/copy';
import type { highlight, Node } from './highlight';

type Highlight = typeof highlight;
let loaded: Highlight | undefined;
const load = async (): Promise<Highlight> => (loaded = (await import('./highlight')).highlight);

/** Longer blocks stay plain: colouring them again for every piece that streams in would be felt. */
const longest = 20_000;

function spans(nodes: Node[]): ReactNode {
  return nodes.map((node, i) => {
    if (node.type === 'text') return node.value;
    const names = node.properties?.className;
    return (
      <span key={i} className={Array.isArray(names) ? names.join(' ') : undefined}>
        {spans(node.children ?? [])}
      </span>
    );
  });
}

export const CodeBlock = memo(({ text, language }: { text: string; language: string }) => {
  const name = language.split(/[\s{]/)[0]!.toLowerCase();
  const [colour, setColour] = useState<Highlight | undefined>(() => loaded);
  useEffect(() => {
    if (colour === undefined && name !== '') void load().then((it) => setColour(() => it), () => {});
  }, [colour, name]);
  const nodes = useMemo(() => (text.length <= longest ? colour?.(text, name) : undefined), [colour, text, name]);
  return (
    <figure className="code">
      <figcaption>
        <span>{name || 'code'}</span>
        <CopyButton text={text} what="code" />
      </figcaption>
      <pre tabIndex={0}>
        <code>{nodes ? spans(nodes) : text}</code>
      </pre>
    </figure>
  );
});
