import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'

const folder = fileURLToPath(new URL('../packages/withdraw-component/', import.meta.url))

/** Bundles `<midmonth-withdraw>` to one classic script, which a page of another origin can load without CORS. */
export async function withdrawComponent(): Promise<string> {
  const bundle = await rolldown({ input: `${folder}component.ts`, cwd: folder, tsconfig: false })
  try {
    const { output } = await bundle.generate({ format: 'iife', minify: true })
    return `/*! Midmonth, Apache-2.0 */\n${output[0].code}\n`
  } finally {
    await bundle.close()
  }
}
