import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ConsoleUser, pageHeaders, signIn } from '../../../test/harness/console.ts'
import { type Harness, startHarness } from '../../../test/harness/harness.ts'
import { logoBytesMax } from '../../partners/logos.ts'

let harness: Harness
let admin: ConsoleUser
beforeAll(async () => {
  harness = await startHarness()
  admin = await signIn(harness, { roles: ['admin'] })
})
afterAll(() => harness.stop())

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
)
/** A JPEG picture up to its dimensions, which follow a segment to skip. */
const jpegOf = (width: number, height: number) => {
  const frame = Buffer.from('ffc0000b080000000001', 'hex')
  frame.writeUInt16BE(height, 5)
  frame.writeUInt16BE(width, 7)
  return Buffer.concat([Buffer.from('ffd8ffe000040000', 'hex'), frame])
}
const webpOf = (kind: string, content: string) =>
  Buffer.concat([Buffer.from(`RIFF\x1e\0\0\0WEBP${kind}\x0a\0\0\0`, 'latin1'), Buffer.from(content, 'hex')])
const [jpeg, webp] = [jpegOf(480, 160), webpOf('VP8L', '2f1f000000')]
const set = (bytes: Buffer | string, user = admin) =>
  user.call('PUT', '/console/v1/logo', { body: { data: Buffer.from(bytes).toString('base64') } })
const getAs = async ({ token }: ConsoleUser, partner = harness.partner.id) => {
  const headers = { ...pageHeaders(token), 'midmonth-partner': partner }
  return (await harness.app.inject({ url: '/console/v1/logo', headers })).statusCode
}
const pageOf = async (of: Pick<Harness, 'call' | 'addMember'>) => {
  const session = { memberId: await of.addMember(), scope: 'read' }
  const { token } = (await of.call('POST', '/v1/member-sessions', { body: session })).body
  return await harness.app.inject({ url: '/m/logo', headers: { authorization: `Bearer ${token}` } })
}

test('members of the partner see the logo that an admin sets, until it is removed', async () => {
  expect((await pageOf(harness)).statusCode).toBe(204)
  for (const [bytes, type] of [
    [jpeg, 'image/jpeg'],
    [webp, 'image/webp'],
    [png, 'image/png'],
  ] as const) {
    expect((await set(bytes)).body).toEqual({ mediaType: type })
    const shown = await pageOf(harness)
    expect([shown.statusCode, shown.headers['content-type']]).toEqual([200, type])
    expect(shown.rawPayload.equals(bytes)).toBe(true)
  }
  const { headers } = await pageOf(harness)
  expect(headers).toMatchObject({
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; sandbox",
    'cross-origin-resource-policy': 'same-origin',
  })
  expect(await getAs(admin)).toBe(200)
  expect((await admin.call('DELETE', '/console/v1/logo')).body).toEqual({ removed: true })
  expect((await admin.call('DELETE', '/console/v1/logo')).body).toEqual({ removed: false })
  expect((await pageOf(harness)).statusCode).toBe(204)
})

test('a file that is not a small PNG, JPEG or WebP picture is refused by its bytes, and changes nothing', async () => {
  expect((await set(png)).status).toBe(200)
  const svg = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
  for (const bytes of [svg, '<html><script>alert(1)</script></html>', 'GIF89a', `\n${svg}`, 'RIFF1234WAVE']) {
    const refusal = await set(bytes)
    expect([refusal.status, refusal.body.issues[0].message]).toEqual([
      400,
      'The file must be a PNG, JPEG or WebP picture',
    ])
  }
  const large = await set(Buffer.concat([png, Buffer.alloc(logoBytesMax)]))
  expect([large.status, large.body.issues[0].message]).toEqual([
    400,
    'The file is larger than 100 KiB; use a smaller one',
  ])
  expect((await set(Buffer.alloc(3 * logoBytesMax))).status).toBeGreaterThanOrEqual(400)
  expect((await admin.call('PUT', '/console/v1/logo', { body: { data: 'no base64!' } })).status).toBe(400)
  expect((await pageOf(harness)).rawPayload.equals(png)).toBe(true)
})

test('a picture with a side of more than 2,000 pixels is refused by the dimensions in its bytes', async () => {
  const pngOf = (width: number, height: number) => {
    const bytes = Buffer.from(png)
    bytes.writeUInt32BE(width, 16)
    bytes.writeUInt32BE(height, 20)
    return bytes
  }
  const pictures: [Buffer, string | undefined][] = [
    [pngOf(2_000, 2_000), undefined],
    [pngOf(2_001, 1), '2001 × 1'],
    [pngOf(1, 50_000), '1 × 50000'],
    [jpegOf(2_000, 2_000), undefined],
    [jpegOf(300, 20_000), '300 × 20000'],
    [webpOf('VP8 ', '0000009d012ad007d007'), undefined],
    [webpOf('VP8 ', '0000009d012ad1070100'), '2001 × 1'],
    [webpOf('VP8L', '2fff3f0000'), '16384 × 1'],
    [webpOf('VP8X', '00000000cf0700cf0700'), undefined],
    [webpOf('VP8X', '00000000000000d00700'), '1 × 2001'],
  ]
  for (const [bytes, size] of pictures) {
    const { status, body } = await set(bytes)
    const message = `The picture is ${size} pixels; the limit is 2000 × 2000`
    if (size === undefined) expect(status).toBe(200)
    else expect([status, body.issues[0].message]).toEqual([400, message])
  }
  for (const bytes of [png.subarray(0, 20), jpeg.subarray(0, -4), webp.subarray(0, 22)])
    expect((await set(bytes)).body.issues[0].message).toBe('The file must be a PNG, JPEG or WebP picture')
})

test('only admins of the partner can set its logo, and members see only their employer’s logo', async () => {
  expect((await set(png)).status).toBe(200)
  const payroll = await signIn(harness, { roles: ['payroll'] })
  expect((await set(jpeg, payroll)).status).toBe(403)
  const stranger = await signIn(harness, { roles: ['admin'], partnerId: harness.other.partner.id })
  expect(await getAs(stranger)).toBe(404)
  expect((await stranger.call('DELETE', '/console/v1/logo', { partner: harness.partner.id })).status).toBe(404)
  expect(await getAs(stranger, harness.other.partner.id)).toBe(204)
  expect((await harness.app.inject({ url: '/m/logo' })).statusCode).toBe(401)
  expect((await harness.call('GET', '/console/v1/logo')).status).toBe(401)
})
