import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { imagePattern, pinImages } from '../scripts/pin-images.ts'

const manifest = '{"schemaVersion":2}'
const digest = `sha256:${createHash('sha256').update(manifest).digest('hex')}`

/** A registry that answers with the manifest of every image to those who have fetched a token for it. */
let answers: { digest: string; asked: string[] }
const registry = createServer((request, response) => {
  const { url = '', headers } = request
  const { port } = registry.address() as AddressInfo
  const [, name] = /^\/v2\/(.+)\/manifests\//.exec(url) ?? []
  answers.asked.push(url)
  if (name === undefined) {
    const { searchParams } = new URL(url, 'http://localhost')
    response.end(JSON.stringify({ token: `${searchParams.get('service')} ${searchParams.get('scope')}` }))
    return
  }
  const scope = `repository:${name}:pull`
  if (headers.authorization !== `Bearer here ${scope}`) {
    const challenge = `Bearer realm="http://127.0.0.1:${port}/token",service="here",scope="${scope}"`
    response.writeHead(401, { 'www-authenticate': challenge }).end()
    return
  }
  response.writeHead(200, { 'docker-content-digest': answers.digest }).end(manifest)
})
let folder: string
let address: string
beforeAll(async () => {
  await once(registry.listen(0, '127.0.0.1'), 'listening')
  address = `http://127.0.0.1:${(registry.address() as AddressInfo).port}`
})
beforeEach(async () => {
  answers = { digest, asked: [] }
  folder = await mkdtemp(path.join(tmpdir(), 'midmonth-images-'))
  for (const file of ['Dockerfile', 'compose.yaml']) await cp(file, path.join(folder, file))
})
afterAll(async () => {
  registry.close()
  await rm(folder, { recursive: true })
})

const filesIn = async (at: string) =>
  await Promise.all(['Dockerfile', 'compose.yaml'].map(file => readFile(path.join(at, file), 'utf8')))

test('every image of others is named by an exact tag', async () => {
  const images = (await filesIn('.')).flatMap(text => [...text.matchAll(imagePattern)])
  expect(images.map(({ groups }) => `${groups?.name}:${groups?.tag}`)).toEqual([
    expect.stringMatching(/^library\/node:\d+\.\d+\.\d+-[a-z-]+$/),
    expect.stringMatching(/^library\/postgres:\d+\.\d+-[a-z]+$/),
    expect.stringMatching(/^library\/caddy:\d+\.\d+\.\d+-[a-z]+$/),
    expect.stringMatching(/^prom\/prometheus:v\d+\.\d+\.\d+$/),
  ])
  const named = (await filesIn('.')).join('\n').matchAll(/^ARG BASE=(.+)$|^ +image: (?!midmonth:)(.+)$/gm)
  expect([...named].map(([, base, image]) => base ?? image)).toEqual(images.map(([reference]) => reference))
})

test('an image is pinned by the digest that its registry gives, and once more when it has changed', async () => {
  const addressOf = () => address
  expect(await pinImages(folder, { addressOf })).toMatchObject({ isComplete: true })
  const pinned = (await filesIn(folder)).join('\n')
  const images = [...pinned.matchAll(imagePattern)].map(([reference]) => reference)
  expect(images).toHaveLength(4)
  for (const image of images) expect(image).toMatch(new RegExp(`^docker\\.io/.+:[\\w.-]+@${digest}$`))
  expect(pinned.replaceAll(`@${digest}`, '')).toBe((await filesIn('.')).join('\n').replaceAll(/@sha256:\w+/g, ''))
  expect(await pinImages(folder, { addressOf })).toMatchObject({ isComplete: true })
  expect((await filesIn(folder)).join('\n')).toBe(pinned)
})

test('an image that a file names twice is looked up once, and pinned in both places', async () => {
  const dockerfile = path.join(folder, 'Dockerfile')
  const text = '  image: docker.io/library/postgres:18.1-trixie\n'
  await writeFile(dockerfile, text + text)
  await pinImages(folder, { addressOf: () => address })
  expect(await readFile(dockerfile, 'utf8')).toBe(text.replace('\n', `@${digest}\n`).repeat(2))
  expect(answers.asked.filter(url => url === '/v2/library/postgres/manifests/18.1-trixie')).toHaveLength(2)
})

test.each([
  ['does not answer', () => 'http://127.0.0.1:1', 'stays as it is: '],
  ['gives another digest than that of its manifest', () => address, 'another digest'],
])('if a registry %s, nothing is written, and the script says so', async (_, addressOf, said) => {
  answers.digest = `sha256:${'0'.repeat(64)}`
  const { lines, isComplete } = await pinImages(folder, { addressOf })
  expect(isComplete).toBe(false)
  expect(lines).toHaveLength(4)
  for (const line of lines) expect(line).toContain(said)
  expect(await filesIn(folder)).toEqual(await filesIn('.'))
})
