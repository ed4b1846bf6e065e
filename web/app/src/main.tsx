import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { startEngine } from '#engine';
import { AppContext, idInAddress, type App } from './app_context';
import { Chats } from './state/chats';
import { Database } from './state/db';
import { Models } from './state/models';
import { Perf } from './state/perf';
import { Runtime } from './state/runtime';
import { keepOffline } from './offline';
import { Root } from './views/root';
import './styles/base.css';
import './styles/layout.css';
import './styles/chat.css';
import './styles/markdown.css';
import './styles/panels.css';
import './styles/media.css';

const perf = new Perf();
const runtime = new Runtime(startEngine, perf);
const app: App = { perf, runtime, chats: new Chats(() => Database.open(), runtime, perf), models: new Models(runtime) };

void app.chats.start(idInAddress);
document.addEventListener('visibilitychange', () => void (document.visibilityState === 'visible' ? app.chats.refresh() : app.chats.keepRunning()));
void runtime.retry();
keepOffline();

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <AppContext value={app}>
      <Root />
    </AppContext>
  </StrictMode>,
);
