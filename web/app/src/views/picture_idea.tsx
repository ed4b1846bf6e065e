// A picture that nobody has seen before, and the question what it shows.

import { useEffect, useState } from 'react';
import { useApp } from '../app_context';
import { drawShapes } from '../media/shapes';
import { attach } from '../state/attachments';

export function PictureIdea() {
  const { chats } = useApp();
  const [picture, setPicture] = useState<{ file: Blob; address: string } | null>(null);
  useEffect(() => {
    let address: string | undefined;
    let gone = false;
    void drawShapes().then((file) => {
      if (gone) return;
      address = URL.createObjectURL(file);
      setPicture({ file, address });
    });
    return () => {
      gone = true;
      if (address) URL.revokeObjectURL(address);
    };
  }, []);
  if (!picture) return null;
  return (
    <button type="button" className="picture-idea" onClick={() => void chats.send('Describe what you see.', [attach('image', 'shapes.png', picture.file)])}>
      <img src={picture.address} alt="" width="38" height="38" />
      Describe what you see.
    </button>
  );
}
