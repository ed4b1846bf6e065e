import { useEffect, useState } from 'react';

/** Is there such a device? Browsers tell that much without asking for permission. */
export function useHasDevice(wanted: MediaDeviceKind): boolean {
  const [has, setHas] = useState(false);
  useEffect(() => {
    const { mediaDevices } = navigator;
    if (!mediaDevices?.enumerateDevices) return;
    const look = async (): Promise<void> => {
      const devices = await mediaDevices.enumerateDevices().catch(() => []);
      setHas(devices.some(({ kind }) => kind === wanted));
    };
    void look();
    mediaDevices.addEventListener?.('devicechange', look);
    return () => mediaDevices.removeEventListener?.('devicechange', look);
  }, [wanted]);
  return has;
}
