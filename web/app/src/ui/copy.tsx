import { useState } from 'react';
import { Icon } from './icons';
import { toast } from './toast';

export function CopyButton({ text, what }: { text: string; what: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
      setTimeout(() => setCopied(false), 1500);
      toast(`Copied the ${what}.`);
    } catch {
      toast('The browser did not allow copying. Select the text and copy it by hand.');
    }
  };
  return (
    <button type="button" className="quiet" onClick={() => void copy()} aria-label={`Copy the ${what}`} title={`Copy the ${what}`}>
      <Icon name={copied ? 'check' : 'copy'} />
    </button>
  );
}
