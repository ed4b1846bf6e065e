// Pictures, players and videos: small in the composer, larger in the conversation.

import { useEffect, useState, type ReactNode } from 'react';
import { called, remove, type Attachment } from '../state/attachments';
import { clock } from '../state/format';
import { Icon } from '../ui/icons';

/** An address for a file as long as something shows it. */
function useAddress(file: Blob): string | undefined {
  const [address, setAddress] = useState<string>();
  useEffect(() => {
    const made = URL.createObjectURL(file);
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [file]);
  return address;
}

const labelOf = ({ kind, name }: Attachment): string => `${called[kind]}${name ? ` ${name}` : ''}`;

function Thumbnail({ item }: { item: Attachment }) {
  const address = useAddress(item.file);
  return (
    <li className={`thumbnail ${item.kind}`}>
      {item.kind === 'image' && <img src={address} alt={labelOf(item)} />}
      {item.kind === 'video' && <video src={address} muted playsInline preload="metadata" aria-label={labelOf(item)} />}
      {item.kind === 'audio' && (
        <span className="sound">
          <Icon name="wave" />
          <span>{item.seconds === undefined ? item.name : `Recording, ${clock(item.seconds)}`}</span>
        </span>
      )}
      <button type="button" className="remove" aria-label={`Remove the ${labelOf(item)}`} title="Remove" onClick={() => remove(item.id)}>
        <Icon name="close" />
      </button>
    </li>
  );
}

/** The children are what can be done with them. */
export function Thumbnails({ items, children }: { items: Attachment[]; children: ReactNode }) {
  if (items.length === 0) return null;
  return (
    <div className="thumbnails">
      <ul aria-label="Attachments">
        {items.map((item) => (
          <Thumbnail key={item.id} item={item} />
        ))}
      </ul>
      {children}
    </div>
  );
}

function Shown({ item }: { item: Attachment }) {
  const address = useAddress(item.file);
  const [broken, setBroken] = useState(false);
  if (broken) return <p className="muted">The {labelOf(item)} cannot be shown.</p>;
  if (address === undefined) return null;
  const onError = (): void => setBroken(true);
  if (item.kind === 'audio') return <audio controls preload="metadata" src={address} aria-label={labelOf(item)} onError={onError} />;
  if (item.kind === 'video') return <video controls playsInline preload="metadata" src={address} aria-label={labelOf(item)} onError={onError} />;
  return <img src={address} alt={item.name || 'The picture that was sent'} onError={onError} />;
}

export function Attachments({ items }: { items: Attachment[] | undefined }) {
  if (!items?.length) return null;
  return (
    <div className="attachments">
      {items.map((item) => (
        <Shown key={item.id} item={item} />
      ))}
    </div>
  );
}
