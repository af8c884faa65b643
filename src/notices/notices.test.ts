import pino from 'pino'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { type MailServer, startMailServer } from '../../test/servers/mail-server.ts'
import { type Receiver, startReceiver, verify } from '../../test/servers/receiver.ts'
import { readSettings } from '../config.ts'
import { sql } from '../database/database.ts'
import { exposeInstallation } from '../diagnosis/installation-metrics.ts'
import { noticeTasks } from '../diagnosis/tasks.ts'
import { retentionOf } from '../kernel/retention.ts'
import { newSecret } from '../webhooks/signing.ts'
import { beat } from '../worker/heartbeats.ts'
import { openNoticeChannels } from './channels.ts'
import { noticeSettingsOf } from './settings.ts'

const secret = newSecret()
let harness: Harness
let receiver: Receiver
let mail: MailServer
let operator: Awaited<ReturnType<Harness['addOperator']>>
beforeAll(async () => {
  harness = await startHarness()
  receiver = await startReceiver()
  mail = await startMailServer()
  operator = await harness.addOperator()
})
afterAll(async () => {
  await harness.stop()
  await receiver.stop()
  await mail.stop()
})
beforeEach(async () => {
  await sql`delete from operator_notices`.execute(harness.ownerDb)
  await beat(harness.db, { workerId: 'worker-1', host: 'node-1', processId: 1 })
  await work()
  for (const all of [receiver.received, mail.received]) all.length = 0
})

const environment = () => ({
  MIDMONTH_NOTIFY_WEBHOOK_URL: `${receiver.url}?room=ops`,
  MIDMONTH_NOTIFY_WEBHOOK_SECRET: secret,
  MIDMONTH_NOTIFY_EMAIL: 'ops@example.com',
  MIDMONTH_NOTIFY_EMAIL_FROM: 'midmonth@example.com',
  MIDMONTH_SMTP_URL: mail.url,
  MIDMONTH_PUBLIC_URL: 'https://pay.example.com',
})
function work(env: NodeJS.ProcessEnv = environment()) {
  const settings = noticeSettingsOf(readSettings(env))
  const channels = openNoticeChannels(settings, { clockMs: Date.now })
  const retention = retentionOf(readSettings({}))
  const tasks = noticeTasks(channels, { mode: 'sandbox', rails: [], retention, reminderMs: settings.reminderMs })
  const { db, clock } = harness
  return tasks['notify-operators']({ db, log: pino({ level: 'silent' }), now: clock.now })
}
const pause = (id: string) => operator.call('POST', `/partners/${id}/pause`, { body: { reason: 'a private reason' } })
const resume = (id: string) => operator.call('POST', `/partners/${id}/resume`, { body: {} })
const status = async () => (await operator.call('GET', '/status')).body.attention.join('\n')

test('what begins and what is over is reported once each, signed and by e-mail, without names and reasons, also by several workers', async () => {
  const { partner } = await harness.addPartner('Quux Couriers')
  await work()
  expect([receiver.received, mail.received]).toEqual([[], []])

  await pause(partner.id)
  await Promise.all([work(), work(), work()])
  await work()
  expect(receiver.received).toHaveLength(1)
  const [request] = receiver.received
  if (request === undefined) throw new Error('No request')
  const began = { kind: 'pausedPartner', subject: partner.id, since: harness.clock.now().toISOString() }
  expect(request.path).toBe('/hook?room=ops')
  expect(verify(secret, request)).toMatchObject({
    type: 'status.changed',
    timestamp: began.since,
    data: {
      mode: 'sandbox',
      url: 'https://pay.example.com',
      state: 'needsAttention',
      began: [began],
      ended: [],
      open: [began],
      isReminder: false,
    },
  })
  expect(mail.received).toHaveLength(1)
  expect(mail.received[0]).toMatchObject({ from: 'midmonth@example.com', to: 'ops@example.com' })
  expect(mail.received[0]?.message).toMatch(/^Subject: Midmonth: 1 thing needs attention$/m)
  expect(mail.received[0]?.message.replace(/=\n/g, '')).toContain(
    `New:\n- ${partner.id} is paused; resume it with midmonth partner resume`,
  )

  await resume(partner.id)
  await work()
  await work()
  expect(receiver.bodies().slice(1)).toMatchObject([{ data: { state: 'fine', began: [], ended: [began], open: [] } }])
  expect(mail.received[1]?.message).toMatch(/^Subject: Midmonth: all is well again$/m)
  const said = JSON.stringify([receiver.received, mail.received])
  for (const hidden of ['Quux', 'private reason', operator.id]) expect(said).not.toContain(hidden)
})

test('what lasts is reported again after the hours that are set, with the time since when', async () => {
  const { partner } = await harness.addPartner('Lasting')
  await pause(partner.id)
  await work()
  const since = harness.clock.now().toISOString()
  harness.clock.advance({ minutes: 23 * 60 })
  await work()
  expect(receiver.received).toHaveLength(1)
  harness.clock.advance({ minutes: 60 })
  await work()
  await work()
  expect(receiver.bodies().slice(1)).toMatchObject([{ data: { began: [], open: [{ since }], isReminder: true } }])
  expect(mail.received[1]?.message).toMatch(/^Subject: Midmonth: 1 thing still needs attention$/m)
  await resume(partner.id)
})

test('a message that does not arrive is retried with its id, less and less often, and the status and the metrics say so meanwhile', async () => {
  const { partner } = await harness.addPartner('Failing')
  receiver.answerWith(503)
  mail.refuseWith('451 try again later')
  await pause(partner.id)
  await work()
  await work()
  expect(receiver.received).toHaveLength(1)
  for (let minute = 1; minute <= 8; minute++) {
    harness.clock.advance({ minutes: 1 })
    await work()
  }
  // At once, and after about 1, 3 and 7 minutes.
  expect(receiver.received).toHaveLength(4)
  // From then on, the failure of the other channel is something else to say.
  expect(new Set(receiver.received.slice(0, 3).map(({ headers }) => headers['webhook-id'])).size).toBe(1)
  expect(await status()).toMatch(
    /Messages to operators by webhook do not arrive \(503, 4 attempts\); check MIDMONTH_NOTIFY_WEBHOOK_URL/,
  )
  expect(await status()).toMatch(/by email do not arrive \(451, 4 attempts\); check MIDMONTH_SMTP_URL/)
  const asked = { mode: 'sandbox', retention: retentionOf(readSettings({})), now: harness.clock.now() } as const
  expect(await exposeInstallation(harness.db, asked)).toContain('midmonth_notices_failing{channel="webhook"} 4')

  receiver.answerWith(200)
  harness.clock.advance({ minutes: 60 })
  await work()
  expect(await status()).not.toContain('by webhook')
  // The other channel says what the first one cannot.
  const kinds = receiver
    .bodies()
    .at(-1)
    .data.open.map(({ kind, subject }: { kind: string; subject: string }) => [kind, subject])
  expect(kinds).toContainEqual(['failingNotices', 'email'])
  mail.refuseWith(undefined)
  harness.clock.advance({ minutes: 60 })
  await work()
  expect(mail.received.at(-1)?.message).toContain(partner.id)
  await resume(partner.id)
})

test('a message whose worker was killed is sent again with the same id', async () => {
  const { partner } = await harness.addPartner('Killed')
  await pause(partner.id)
  await work()
  const [id] = receiver.received.map(({ headers }) => headers['webhook-id'])
  const body = JSON.stringify({ ...receiver.bodies()[0].data, id, at: receiver.bodies()[0].timestamp })
  await sql`update operator_notices set reported = '[]', reported_at = null, attempts = 1, message = ${body}`.execute(
    harness.ownerDb,
  )
  await work()
  expect(receiver.received.map(({ headers }) => headers['webhook-id'])).toEqual([id, id])
  await resume(partner.id)
})

test('while one worker has a channel and another does not, no message is repeated, and a day later the channel is forgotten', async () => {
  const { partner } = await harness.addPartner('Rolling')
  await pause(partner.id)
  for (const env of [environment(), {}, environment(), {}]) await work(env)
  expect(receiver.received).toHaveLength(1)
  expect(mail.received).toHaveLength(1)

  harness.clock.advance({ minutes: 24 * 60 + 1 })
  await work({})
  expect((await sql`select channel from operator_notices`.execute(harness.ownerDb)).rows).toEqual([])
  await resume(partner.id)
})

test('a worker whose clock was ahead delays no message', async () => {
  const { partner } = await harness.addPartner('Ahead')
  harness.clock.advance({ minutes: 30 })
  await work()
  harness.clock.advance({ minutes: -30 })
  await pause(partner.id)
  await work()
  expect(receiver.received).toHaveLength(1)

  // An attempt that a worker began at a time that is still far away, and could not record.
  await sql`update operator_notices set next_attempt_at = ${new Date(harness.clock.now().getTime() + 2 * 3_600_000)}`.execute(
    harness.ownerDb,
  )
  await resume(partner.id)
  await work()
  expect(receiver.received).toHaveLength(2)
})

test.each([
  ['MIDMONTH_NOTIFY_WEBHOOK_URL', 'https://alerts.example.com', 'requires MIDMONTH_NOTIFY_WEBHOOK_SECRET'],
  ['MIDMONTH_NOTIFY_EMAIL', 'ops@example.com', 'requires MIDMONTH_SMTP_URL'],
  ['MIDMONTH_NOTIFY_WEBHOOK_URL', 'http://alerts.example.com', 'must be like'],
  ['MIDMONTH_NOTIFY_EMAIL', 'ops@example.com, x', 'must be like'],
  ['MIDMONTH_SMTP_URL', 'https://mail.example.com', 'must be like'],
])('%s=%s is refused: it %s', (name, value, problem) => {
  expect(() => noticeSettingsOf(readSettings({ [name]: value }))).toThrow(`${name} ${problem}`)
})
