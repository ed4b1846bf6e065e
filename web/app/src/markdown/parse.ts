// Markdown to tokens: marked's lexer with mathematics added. Nothing here makes HTML.

import { Marked, type Token, type TokenizerExtension, type Tokens } from 'marked';

export interface MathToken extends Tokens.Generic {
  type: 'math';
  formula: string;
  display: boolean;
}

const blockRules = [/^\$\$([\s\S]+?)\$\$(?:\n|$)/, /^\\\[([\s\S]+?)\\\](?:\n|$)/];
// `$5 and $6` is money: an opening dollar touches its formula, and no digit follows the closing one.
const inlineRules = [/^\$\$([^$]+?)\$\$/, /^\$(?![\s$])((?:\\.|[^\\$\n])*?[^\s\\$])\$(?!\d)/, /^\\\(([\s\S]+?)\\\)/, /^\\\[([\s\S]+?)\\\]/];

function math(name: string, level: 'block' | 'inline', rules: RegExp[], begins: RegExp): TokenizerExtension {
  return {
    name,
    level,
    start: (source) => {
      const at = source.search(begins);
      return at < 0 ? undefined : at;
    },
    tokenizer(source) {
      for (const rule of rules) {
        const found = rule.exec(source);
        if (!found) continue;
        const display = level === 'block' || found[0].startsWith('$$') || found[0].startsWith('\\[');
        return { type: 'math', raw: found[0], formula: found[1]!.trim(), display } satisfies MathToken;
      }
      return undefined;
    },
  };
}

const marked = new Marked({
  gfm: true,
  breaks: true,
  extensions: [
    math('math', 'block', blockRules, /\n(?:\$\$|\\\[)/),
    math('inlineMath', 'inline', inlineRules, /\$|\\\(|\\\[/),
  ],
});

export const parse = (text: string): Token[] => marked.lexer(text);
