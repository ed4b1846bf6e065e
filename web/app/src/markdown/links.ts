// Which addresses a model may link to.

export function safeLink(address: string): string | undefined {
  try {
    const { protocol, href } = new URL(address);
    return protocol === 'https:' || protocol === 'http:' || protocol === 'mailto:' ? href : undefined;
  } catch {
    return undefined; // relative addresses too: they would lead into this app
  }
}
