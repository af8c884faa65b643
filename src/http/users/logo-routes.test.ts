import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ConsoleUser, pageHeaders, signIn } from '../../../test/console.ts'
import { type Harness, startHarness } from '../../../test/harness.ts'
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
const jpeg = Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, 0xe0]), Buffer.alloc(40)])
const webp = Buffer.from('RIFF\x1a\0\0\0WEBPVP8L\r\0\0\0', 'latin1')
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

test('a logo that an admin sets is what the members of the partner see, and is gone once it is removed', async () => {
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

test('what is not a small PNG, JPEG or WebP picture is refused by its bytes, and changes nothing', async () => {
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
  expect([large.status, large.body.issues[0].message]).toEqual([400, 'The file has more than 100 KiB'])
  expect((await set(Buffer.alloc(3 * logoBytesMax))).status).toBeGreaterThanOrEqual(400)
  expect((await admin.call('PUT', '/console/v1/logo', { body: { data: 'no base64!' } })).status).toBe(400)
  expect((await pageOf(harness)).rawPayload.equals(png)).toBe(true)
})

test('only admins of the partner reach its logo, and its members only that of their employer', async () => {
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
