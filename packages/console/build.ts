import { existsSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const folder = import.meta.dirname
const sdk = fileURLToPath(new URL('../sdk/src/index.ts', import.meta.url))

/** Builds the console into `dist`, or into the given folder. */
export async function buildConsole(target = path.join(folder, 'dist')): Promise<void> {
  const { build } = await import('vite')
  await build({
    root: folder,
    base: '/console/',
    configFile: false,
    logLevel: 'error',
    resolve: { alias: { '@midmonth/sdk': sdk } },
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    build: {
      outDir: target,
      emptyOutDir: true,
      target: 'es2022',
      // The content security policy does not allow `data:` for scripts, styles and fonts.
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
    },
  })
}

if (process.argv[1] === import.meta.filename) {
  // An installation without development dependencies has no bundler. It serves everything except the console.
  if (existsSync(path.join(folder, '../../node_modules/vite'))) await buildConsole()
  else process.stderr.write('The console is not built: install with development dependencies to build it.\n')
}
