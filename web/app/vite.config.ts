// The app: vite build web/app   ->   web/app/dist. With --mode test a scripted engine takes the place of the real one.

import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';
import { VitePWA } from 'vite-plugin-pwa';

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));

/** The model that the app opens with. Without it the app is built all the same, and says so when it starts. */
function embeddedModel(file: string): Plugin {
  const fileName = 'models/nano.gguf';
  return {
    name: 'embedded-model',
    configureServer(server) {
      server.middlewares.use(`/${fileName}`, (_request, response) => {
        response.statusCode = existsSync(file) ? 200 : 404;
        response.end(existsSync(file) ? readFileSync(file) : '');
      });
    },
    generateBundle() {
      if (existsSync(file)) this.emitFile({ type: 'asset', fileName, source: readFileSync(file) });
      else this.warn(`${file} is not there: the app is built without an embedded model.`);
    },
  };
}

/** KaTeX names every font in three formats; all browsers with WebAssembly read the first. */
function oneFontFormat(): Plugin {
  return {
    name: 'one-font-format',
    enforce: 'pre',
    transform(code, id) {
      if (!id.includes('katex') || !id.endsWith('.css')) return undefined;
      return code.replace(/,\s*url\([^)]*\.(?:woff|ttf)\)\s*format\([^)]*\)/g, '');
    },
  };
}

/** The development server writes scripts and styles into the page, which the page's policy forbids. */
function noPolicyInDevelopment(): Plugin {
  return {
    name: 'no-policy-in-development',
    apply: 'serve',
    transformIndexHtml: (html) => html.replace(/<meta\s+http-equiv="Content-Security-Policy"[\s\S]*?\/>/, ''),
  };
}

export default defineConfig(({ mode }) => ({
  root: path('.'),
  base: './',
  resolve: {
    alias: {
      bezel: path('../dist/index.js'),
      '#engine': path(mode === 'test' ? './src/engine/fake.ts' : './src/engine/real.ts'),
    },
  },
  worker: { format: 'es' },
  build: {
    outDir: path('./dist'),
    emptyOutDir: true,
    assetsInlineLimit: 0, // data: addresses are not allowed by the page's own policy
    target: 'es2022',
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'], // the first with light-dark(), and older than WebGPU almost everywhere
  },
  plugins: [
    react(),
    noPolicyInDevelopment(),
    oneFontFormat(),
    embeddedModel(path(process.env.BEZEL_APP_MODEL ? `../../${process.env.BEZEL_APP_MODEL}` : '../../models/nano.gguf')),
    VitePWA({
      registerType: 'prompt',
      injectRegister: false,
      workbox: {
        globPatterns: ['**/*.{html,js,css,wasm,woff2,svg,png,gguf}'],
        maximumFileSizeToCacheInBytes: 20 << 20,
        navigateFallback: null,
        cleanupOutdatedCaches: true,
      },
      manifest: {
        id: './',
        name: 'bezel',
        short_name: 'bezel',
        description: 'Chat with Gemma 4 on your own device. Nothing leaves it.',
        start_url: './',
        scope: './',
        display: 'standalone',
        background_color: '#faf9f7',
        theme_color: '#faf9f7',
        categories: ['productivity', 'utilities'],
        icons: [
          { src: 'icon-192.png', sizes: '192x192', type: 'image/png' },
          { src: 'icon-512.png', sizes: '512x512', type: 'image/png' },
          { src: 'icon-maskable-512.png', sizes: '512x512', type: 'image/png', purpose: 'maskable' },
          { src: 'icon.svg', sizes: 'any', type: 'image/svg+xml' },
        ],
      },
    }),
  ],
}));
