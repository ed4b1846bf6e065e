// A formula. KaTeX is large, so it is loaded with the first one; until then, and where it fails, the source is shown.

import { useEffect, useRef, useState } from 'react';

type Render = (formula: string, element: HTMLElement, options: object) => void;
let loaded: Render | undefined;
const load = async (): Promise<Render> => {
  const [{ default: katex }] = await Promise.all([import('katex'), import('katex/dist/katex.min.css')]);
  return (loaded = katex.render as Render);
};

/** `trust` off: no links, images or HTML from formulas. The limits keep a hostile macro from filling the memory. */
const options = { throwOnError: false, trust: false, strict: 'ignore', maxExpand: 200, maxSize: 20 };

export function Formula({ formula, display }: { formula: string; display: boolean }) {
  const target = useRef<HTMLSpanElement>(null);
  const [render, setRender] = useState<Render | undefined>(() => loaded);
  useEffect(() => {
    if (render === undefined) void load().then((it) => setRender(() => it), () => {});
    else if (target.current) render(formula, target.current, { ...options, displayMode: display });
  }, [render, formula, display]);
  const className = display ? 'math display' : 'math';
  if (render === undefined) return <code className={className}>{formula}</code>;
  return <span className={className} ref={target} tabIndex={display ? 0 : undefined} role={display ? 'group' : undefined} aria-label={display ? 'Formula' : undefined} />;
}
