// A picture from the camera, where there is one.

import { useEffect, useRef, useState } from 'react';
import { add, attach } from '../state/attachments';
import { messageOf } from '../state/format';
import { useHasDevice } from '../ui/devices';
import { Dialog } from '../ui/dialog';
import { Icon } from '../ui/icons';

function CameraDialog({ onClose }: { onClose: () => void }) {
  const video = useRef<HTMLVideoElement>(null);
  const [facing, setFacing] = useState<'environment' | 'user'>('environment');
  const [several, setSeveral] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const [live, setLive] = useState(false);
  useEffect(() => {
    let stream: MediaStream | undefined;
    let gone = false;
    const open = async (): Promise<void> => {
      try {
        const got = await navigator.mediaDevices.getUserMedia({ video: { facingMode: facing, width: { ideal: 1920 } } });
        if (gone) return got.getTracks().forEach((track) => track.stop());
        stream = got;
        video.current!.srcObject = got;
        setError(null);
        const devices = await navigator.mediaDevices.enumerateDevices();
        setSeveral(devices.filter(({ kind }) => kind === 'videoinput').length > 1);
      } catch (failure) {
        if (!gone) setError(`The camera cannot be used: ${messageOf(failure)}`);
      }
    };
    void open();
    return () => {
      gone = true;
      setLive(false);
      stream?.getTracks().forEach((track) => track.stop());
    };
  }, [facing]);
  const take = async (): Promise<void> => {
    const { videoWidth: width, videoHeight: height } = video.current!;
    const canvas = new OffscreenCanvas(width, height);
    canvas.getContext('2d')!.drawImage(video.current!, 0, 0);
    add(attach('image', 'photo.jpg', await canvas.convertToBlob({ type: 'image/jpeg', quality: 0.92 })));
    onClose();
  };
  return (
    <Dialog title="Take a picture" onClose={onClose}>
      {error && (
        <p className="failed" role="alert">
          {error}
        </p>
      )}
      <video ref={video} className="viewfinder" autoPlay playsInline muted hidden={error !== null} aria-label="What the camera sees" onLoadedData={() => setLive(true)} />
      <div className="actions">
        {several && (
          <button type="button" onClick={() => setFacing(facing === 'user' ? 'environment' : 'user')}>
            <Icon name="retry" />
            Other camera
          </button>
        )}
        <button type="button" className="primary" disabled={!live} onClick={() => void take()}>
          <Icon name="camera" />
          Take the picture
        </button>
      </div>
    </Dialog>
  );
}

export function Camera() {
  const has = useHasDevice('videoinput');
  const [open, setOpen] = useState(false);
  if (!has) return null;
  return (
    <>
      <button type="button" className="round" aria-label="Take a picture" title="Take a picture" onClick={() => setOpen(true)}>
        <Icon name="camera" />
      </button>
      {open && <CameraDialog onClose={() => setOpen(false)} />}
    </>
  );
}
