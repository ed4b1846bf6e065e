// What a model writes, as React elements. There is no HTML in between, so there is none to sanitise: raw HTML is shown
// as text, images become links, links lead only to http, https and mailto.

import { Fragment, memo, useMemo, type ReactNode } from 'react';
import { type Token, type Tokens } from 'marked';
import { CodeBlock } from './code';
import { safeLink } from './links';
import { Formula } from './math';
import { parse, type MathToken } from './parse';

const each = (tokens: Token[] | undefined): ReactNode => tokens?.map((token, i) => <Fragment key={i}>{element(token)}</Fragment>);

const named: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', nbsp: '\u00a0', copy: '©', hellip: '…', mdash: '—', ndash: '–' };
/** The entities that models write; the rest stays as it is. */
export const unescape = (text: string): string =>
  text.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]+));/gi, (whole, decimal?: string, hex?: string, name?: string) => {
    const code = decimal ? Number(decimal) : hex ? parseInt(hex, 16) : undefined;
    if (code !== undefined) return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole;
    return named[name!] ?? whole;
  });

function link(address: string, title: string | null | undefined, children: ReactNode): ReactNode {
  const href = safeLink(address);
  if (href === undefined) return <>{children}</>;
  return (
    <a href={href} title={title ?? undefined} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  );
}

function list({ ordered, start, items }: Tokens.List): ReactNode {
  const entries = items.map((item, i) => (
    <li key={i} className={item.task ? 'task' : undefined}>
      {item.task && <input type="checkbox" checked={item.checked ?? false} readOnly disabled aria-label={item.checked ? 'Done' : 'To do'} />}
      {each(item.tokens)}
    </li>
  ));
  return ordered ? <ol start={typeof start === 'number' ? start : 1}>{entries}</ol> : <ul>{entries}</ul>;
}

function table({ header, rows, align }: Tokens.Table): ReactNode {
  const style = (i: number) => ({ textAlign: align[i] ?? undefined });
  return (
    <div className="table" tabIndex={0} role="group" aria-label="Table">
      <table>
        <thead>
          <tr>
            {header.map((cell, i) => (
              <th key={i} scope="col" style={style(i)}>
                {each(cell.tokens)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, r) => (
            <tr key={r}>
              {row.map((cell, i) => (
                <td key={i} style={style(i)}>
                  {each(cell.tokens)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

// Headings begin below those of the page.
const headings = ['h3', 'h4', 'h5', 'h6', 'h6', 'h6'] as const;

function element(token: Token): ReactNode {
  switch (token.type) {
    case 'paragraph':
      return <p>{each(token.tokens)}</p>;
    case 'text':
      return token.tokens ? each(token.tokens) : unescape(token.text as string);
    case 'escape':
      return unescape(token.text as string);
    case 'heading': {
      const Heading = headings[(token as Tokens.Heading).depth - 1] ?? 'h6';
      return <Heading>{each(token.tokens)}</Heading>;
    }
    case 'code':
      return <CodeBlock text={token.text as string} language={(token as Tokens.Code).lang ?? ''} />;
    case 'codespan':
      return <code>{token.text as string}</code>;
    case 'strong':
      return <strong>{each(token.tokens)}</strong>;
    case 'em':
      return <em>{each(token.tokens)}</em>;
    case 'del':
      return <del>{each(token.tokens)}</del>;
    case 'br':
      return <br />;
    case 'hr':
      return <hr />;
    case 'blockquote':
      return <blockquote>{each(token.tokens)}</blockquote>;
    case 'list':
      return list(token as Tokens.List);
    case 'table':
      return table(token as Tokens.Table);
    case 'link':
      return link((token as Tokens.Link).href, (token as Tokens.Link).title, each(token.tokens));
    case 'image':
      return link((token as Tokens.Image).href, (token as Tokens.Image).title, `[image: ${token.text || 'without description'}]`);
    case 'math':
      return <Formula formula={(token as MathToken).formula} display={(token as MathToken).display} />;
    case 'space':
    case 'def':
    case 'checkbox':
      return null;
    default: // raw HTML, and whatever else there may be
      return token.raw;
  }
}

/** Blocks that are complete do not change while the rest is being written. */
const Block = memo(
  ({ token }: { token: Token }) => element(token),
  (a, b) => a.token.type === b.token.type && a.token.raw === b.token.raw,
);

export const Markdown = memo(({ text }: { text: string }) => {
  const tokens = useMemo(() => parse(text), [text]);
  return (
    <div className="markdown">
      {tokens.map((token, i) => (
        <Block key={i} token={token} />
      ))}
    </div>
  );
});
