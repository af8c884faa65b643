import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'

// Writes beside the exact tag of each image the digest that its registry gives for it now, so that every later build has the same bytes.
// Without an answer from the registry, an image stays as it is: a digest is never written that was not looked up.

const limits = { answerMsMax: 10_000 }

/** The files that name images of others. */
const files = ['Dockerfile', 'compose.yaml']

export const imagePattern =
  /(?<=[\s=])(?<registry>[\w-]+(?:\.[\w-]+)+)\/(?<name>[\w./-]+):(?<tag>[\w.-]+)(?:@sha256:[0-9a-f]{64})?/g

const manifestTypes = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
]

/**
 * @param options.addressOf the address of a registry
 * @returns a line about each image, and whether all were looked up
 */
export async function pinImages(
  folder: string,
  { addressOf = publicAddressOf }: { addressOf?: (registry: string) => string } = {},
): Promise<{ lines: string[]; isComplete: boolean }> {
  const lines: string[] = []
  let isComplete = true
  for (const file of files) {
    const text = await readFile(path.join(folder, file), 'utf8')
    const digests = new Map<string, string>()
    const images = new Map([...text.matchAll(imagePattern)].map(match => [withoutDigest(match[0]), match.groups]))
    for (const [image, { registry = '', name = '', tag = '' } = {}] of images) {
      try {
        const digest = await digestOf(addressOf(registry), { name, tag })
        digests.set(image, digest)
        lines.push(`${file}: ${image} is ${digest}`)
      } catch (error) {
        isComplete = false
        lines.push(`${file}: ${image} stays as it is: ${reasonOf(error)}`)
      }
    }
    const pinned = text.replace(imagePattern, reference => {
      const digest = digests.get(withoutDigest(reference))
      return digest === undefined ? reference : `${withoutDigest(reference)}@${digest}`
    })
    if (pinned !== text) await writeFile(path.join(folder, file), pinned)
  }
  return { lines, isComplete }
}

function withoutDigest(reference: string): string {
  return reference.replace(/@.*/, '')
}

function publicAddressOf(registry: string): string {
  return `https://${registry === 'docker.io' ? 'registry-1.docker.io' : registry}`
}

/** Looks a digest up, and checks it against the manifest. @throws if the registry does not answer, or answers something else */
async function digestOf(address: string, { name, tag }: { name: string; tag: string }): Promise<string> {
  const url = `${address}/v2/${name}/manifests/${tag}`
  const asked = await get(url, {})
  const response = asked.status === 401 ? await get(url, { authorization: `Bearer ${await tokenFor(asked)}` }) : asked
  if (!response.ok) throw new Error(`${address} answered with ${response.status}`)
  const manifest = Buffer.from(await response.arrayBuffer())
  const digest = `sha256:${createHash('sha256').update(manifest).digest('hex')}`
  if (response.headers.get('docker-content-digest') !== digest)
    throw new Error(`${address} answered with another digest than that of its manifest`)
  return digest
}

/** An anonymous token, as the registry asks for it. Source: Docker Registry v2 token authentication */
async function tokenFor({ headers }: Response): Promise<string> {
  const challenge = headers.get('www-authenticate') ?? ''
  const { realm, ...query } = Object.fromEntries(
    [...challenge.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]),
  )
  if (!/^bearer /i.test(challenge) || realm === undefined) throw new Error('the registry asks for a login')
  const response = await get(`${realm}?${new URLSearchParams(query as Record<string, string>)}`, {})
  const { token, access_token: accessToken } = (await response.json()) as { token?: string; access_token?: string }
  return token ?? accessToken ?? ''
}

async function get(url: string, headers: Record<string, string>): Promise<Response> {
  const accept = manifestTypes.join(', ')
  return await fetch(url, { headers: { accept, ...headers }, signal: AbortSignal.timeout(limits.answerMsMax) })
}

function reasonOf(error: unknown): string {
  const { message, cause } = error as Error
  return cause instanceof Error ? cause.message : message
}

if (import.meta.main) {
  const { lines, isComplete } = await pinImages(path.join(import.meta.dirname, '..'))
  console.log(lines.join('\n'))
  process.exitCode = isComplete ? 0 : 1
}
