/** Node 18 has Web Crypto only as a module. The name is a variable, so that bundlers for workers don't try to resolve it. */
const moduleOfNode18 = 'node:crypto'

export async function webCrypto(): Promise<typeof globalThis.crypto> {
  return globalThis.crypto ?? (await import(/* @vite-ignore */ /* webpackIgnore: true */ moduleOfNode18)).webcrypto
}

export async function randomId(): Promise<string> {
  return (await webCrypto()).randomUUID()
}
