import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { ApiResponse } from '../../../test/harness/api-response.ts'
import { type ConsoleUser, signIn } from '../../../test/harness/console.ts'
import { FileRailScene } from '../../../test/payouts/file-rail-scene.ts'
import { list } from './exceptions.ts'

let scene: FileRailScene
let key: Awaited<ReturnType<FileRailScene['harness']['addOperator']>>
let users: ConsoleUser[]
beforeAll(async () => {
  scene = await FileRailScene.start()
  key = await scene.harness.addOperator()
})
afterAll(() => scene.harness.stop())
beforeEach(async () => {
  await scene.nextWeek()
})

let messages = 0
/** Imports entries of the bank, each an amount in cents, a reference and a text. */
const booked = async (...entries: [amount: number, reference: string, text: string][]) => {
  messages += 1
  const lines = entries.map(
    ([amount, reference, text], index) => `entry;${amount}EUR;${reference};E${messages}-${index};2026-03-11;${text}`,
  )
  await scene.answer(`head;M${messages}`, ...lines)
}
/** Sessions expire when the clock moves on. */
const signInUsers = async () => {
  users = [await signIn(scene.harness, { isOperator: true }), await signIn(scene.harness, { isOperator: true })]
}
const by = (index: number, method: string, path: string, body?: object) =>
  users[index]?.call(method, `/operator/v1${path}`, {
    partner: null,
    ...(body === undefined ? {} : { body }),
  }) as Promise<ApiResponse>
const rail = () => scene.settings.name
const preview = async (text: string) =>
  (await key.call('GET', `/payout-exceptions/by-text?${new URLSearchParams({ rail: rail(), text })}`)).body
const closeAll = (text: string, fingerprint: string) =>
  key.call('POST', '/payout-exceptions/by-text/close', { body: { rail: rail(), text, note: 'not ours', fingerprint } })
const openWith = async (text: string) =>
  (await scene.open()).filter(each => each.bankText?.includes(text)).map(({ amount }) => Number(amount))
const eur = (amount: number) => ({ amount, currency: 'EUR' })

test('closing by a text closes what the preview says, and nothing else', async () => {
  await booked(
    [-701, '', 'Kontoführung  MÄRZ'],
    [-702, '', 'kontoführung märz'],
    [33, '', 'Zinsen: Kontoführung März'],
    [-704, '', 'Kontoführung April'],
  )
  const { fingerprint, ...shown } = await preview(' KONTOFÜHRUNG   märz ')
  const out = { direction: 'out', count: 2, sum: eur(1_403) }
  expect(shown).toEqual({ sums: [{ direction: 'in', count: 1, sum: eur(33) }, out], count: 3, keptCount: 0 })
  const closed = await closeAll('kontoführung märz', fingerprint)
  expect([closed.status, closed.body]).toEqual([200, shown])
  expect(await openWith('ührung')).toEqual([-704])
  const all = await list(scene.harness.db, { state: 'closed', take: 3 })
  expect(all.map(({ decision, closedBy, note }) => ({ decision, closedBy, note }))).toEqual(
    Array(3).fill({ decision: 'ignore', closedBy: key.id, note: 'not ours' }),
  )
  expect((await closeAll('kontoführung märz', fingerprint)).status).toBe(409)
  expect(await scene.disagreements()).toEqual([])
})

test('a set that has changed since its preview is refused, and nothing is closed', async () => {
  await booked([-711, '', 'Changing set'])
  const { fingerprint } = await preview('changing set')
  await booked([-712, '', 'Changing set'])
  const refused = await closeAll('changing set', fingerprint)
  expect([refused.status, refused.body.issues[0].message]).toEqual([
    409,
    'The entries with this text have changed since the preview; preview them again',
  ])
  expect(await openWith('Changing set')).toEqual([-711, -712])
})

test('an entry with a reference of ours, in any letter case, is never closed by its text', async () => {
  const { payments, messageId } = await scene.sent(4_321)
  const reference = payments[0]?.reference ?? ''
  const settlement = `MMS${scene.harness.payCycle.id.slice(-14).toUpperCase()}`
  await booked(
    [-721, '', `Referred: ${reference.toLowerCase()}`],
    [-722, '', `Referred ${messageId.toLowerCase().replace(/(.{4})/g, '$1 ')}`],
    [-723, '', `Referred ${settlement.toLowerCase()}`],
    [-724, reference.toLowerCase(), 'Referred'],
    [-725, '', 'Referred to KNOWN SUPPLIERPAYMENTS'],
    [-726, '', `Referred ${'x'.repeat(1_200)} ${reference}`],
  )
  const { fingerprint, count, keptCount } = await preview('referred')
  expect({ count, keptCount }).toEqual({ count: 1, keptCount: 5 })
  expect((await closeAll('referred', fingerprint)).status).toBe(200)
  // The settlement's entry names its partner, and is thus in another chunk.
  expect(await openWith('Referred')).toEqual([-721, -722, -724, -726, -723])
})

test('an entry with the amount of an open, given-back or returned payment, or of its batch, is never closed by its text', async () => {
  const { payments } = await scene.sent(6_101, 6_102, 6_103)
  const [, failed, returned] = payments.map(({ reference }) => reference)
  await scene.answer(`head;S${messages}`, `failed;${failed};6102EUR;AC04`, `paid;${returned};6103EUR`)
  await scene.answer(`head;T${messages}`, `returned;${returned};6103EUR;AC04;R;2026-03-12`)
  expect(await scene.statusesOf(payments)).toEqual(['submitted', 'failed', 'returned'])
  const total = 6_101 + 6_102 + 6_103
  const kept = [6_101, -6_101, 6_102, -6_102, 6_103, -6_103, -total, -(total - 6_102)]
  await booked(...[...kept, -6_104].map((amount): [number, string, string] => [amount, '', 'Same sum']))
  const { fingerprint, ...shown } = await preview('same sum')
  expect(shown).toMatchObject({ count: 1, keptCount: kept.length, sums: [{ sum: eur(6_104) }] })
  await closeAll('same sum', fingerprint)
  expect(await openWith('Same sum')).toEqual(kept)
})

test('an exception of another kind is untouched, and so is one with a proposed decision', async () => {
  const { messageId } = await scene.sent(7_001)
  await booked([-741, '', 'Two people'], [-742, messageId, 'Two people'])
  await signInUsers()
  const [other, exception] = (await scene.open())
    .filter(({ bankText }) => bankText === 'Two people')
    .sort((a, b) => (a.kind < b.kind ? -1 : 1))
  expect([other?.kind, exception?.kind]).toEqual(['amount', 'money_out'])
  const writeOff = { decision: 'write_off', partnerId: scene.harness.partner.id, note: 'gone' }
  expect((await by(0, 'POST', `/payout-exceptions/${exception?.id}/close`, writeOff)).status).toBe(200)
  const { count, keptCount, fingerprint } = await preview('two people')
  expect({ count, keptCount }).toEqual({ count: 0, keptCount: 1 })
  expect((await closeAll('two people', fingerprint)).status).toBe(409)
})

test('a rule takes two people; then it closes new entries that are not ours, until it is paused or ended', async () => {
  const { payments } = await scene.sent(8_001)
  await booked([-751, '', 'Ruled out before'])
  await signInUsers()
  const rule = { rail: rail(), text: 'Ruled  OUT', note: 'charges' }
  expect((await key.call('POST', '/payout-rules', { body: rule })).status).toBe(403)
  const proposed = (await by(0, 'POST', '/payout-rules', rule)).body
  expect(proposed).toMatchObject({ text: 'ruled out', status: 'proposed', confirmedBy: null })
  expect((await by(0, 'POST', '/payout-rules', rule)).body).toEqual(proposed)
  await booked([-752, '', 'Ruled out: one person'])
  expect(await openWith('Ruled out')).toEqual([-751, -752])
  const { id } = (await by(1, 'POST', '/payout-rules', rule)).body
  expect((await by(1, 'POST', '/payout-rules', rule)).status).toBe(409)

  const ofPayment = payments[0]?.reference.toLowerCase()
  await booked([-753, '', 'Ruled out: two people'], [-754, '', `Ruled out: ${ofPayment}`], [-8_001, '', 'Ruled out'])
  expect(await openWith('Ruled out')).toEqual([-751, -752, -754, -8_001])
  const [closed] = await list(scene.harness.db, { state: 'closed', take: 1 })
  const note = `Rule ${id}, "ruled out": charges`
  expect(closed).toMatchObject({ amount: -753n, kind: 'money_out', decision: 'ignore', closedBy: 'system', note })
  expect((await key.call('GET', '/payout-rules')).body.rules[0]).toMatchObject({ id, closedCount: 1, status: 'active' })

  expect((await key.call('POST', `/payout-rules/${id}/pause`)).body.status).toBe('paused')
  await booked([-755, '', 'Ruled out while paused'])
  expect((await key.call('POST', `/payout-rules/${id}/resume`)).status).toBe(403)
  expect((await by(0, 'POST', `/payout-rules/${id}/resume`)).body.status).toBe('active')
  await booked([-756, '', 'Ruled out again'])
  expect((await key.call('POST', `/payout-rules/${id}/end`)).body).toMatchObject({ status: 'ended', closedCount: 2 })
  await booked([-757, '', 'Ruled out at the end'])
  expect(await openWith('Ruled out')).toEqual([-751, -752, -754, -8_001, -755, -757])
  expect((await by(0, 'POST', `/payout-rules/${id}/resume`)).status).toBe(409)
  expect(await scene.disagreements()).toEqual([])
})

test('a text that is too short, and a rail that is not there, are refused', async () => {
  const asked = async (query: Record<string, string>) =>
    (await key.call('GET', `/payout-exceptions/by-text?${new URLSearchParams(query)}`)).status
  expect(await asked({ rail: rail(), text: 'a    b' })).toBe(400)
  expect(await asked({ rail: rail(), text: 'abcd' })).toBe(400)
  expect(await asked({ rail: 'none', text: 'charges' })).toBe(404)
})

// Last, because of the settlement that nothing has posted.
describe('the database refuses to close by its text', () => {
  /** Past the application. @returns how many it closed */
  const closeInDatabase = async (where: string) => {
    const fenced = (await scene.open()).filter(({ bankText }) => bankText?.startsWith('Fenced'))
    const { rowCount } = await scene.harness.pool.query(
      `update payout_exceptions set closed_at = now(), closed_by = 'x', decision = 'ignore', closed_by_text = 'fenced'
        where closed_at is null and id = any($1) and ${where}`,
      [fenced.map(({ id }) => id)],
    )
    return rowCount
  }
  const refusal = 'may be about a payment, batch or settlement of ours'
  const { sent, unpaid, given } = { sent: 9_011, unpaid: 9_020, given: 9_400 }
  let words: Record<string, string>
  beforeAll(async () => {
    await scene.nextWeek()
    const { payments, messageId } = await scene.sent(sent, unpaid, given)
    const [open, failed, returned] = payments.map(({ reference }) => reference)
    await scene.answer('head;FENCE-1', `failed;${failed};${unpaid}EUR;AC04`, `paid;${returned};${given}EUR`)
    await scene.answer('head;FENCE-2', `returned;${returned};${given}EUR;AC04;R;2026-03-12`)
    const { partner, payCycle, pool } = scene.harness
    await pool.query(
      `insert into settlement_dues (partner_id, pay_cycle_id, currency, amount, received, settled_at)
       values ($1, $2, 'EUR', 97130, 20000, now())`,
      [partner.id, payCycle.id],
    )
    const settlement = `MMS${payCycle.id.slice(-14).toUpperCase()}`
    words = { open: open?.toLowerCase() ?? '', batch: messageId.replace(/(.{4})/g, '$1 '), settlement }
  })

  test.each<[string, number]>([
    ['a payment that is open', -sent],
    ['a payment that failed', unpaid],
    ['a payment that was returned', given],
    ['a batch', -(sent + unpaid + given)],
    ['a batch less the payments that failed', -(sent + given)],
    ['a settlement', 97_130],
    ['the part of a settlement that is due', -77_130],
  ])('an entry with the amount of %s', async (_, amount) => {
    await booked([amount, '', 'Fenced amount'], [-9_999, '', 'Fenced amount'])
    await expect(closeInDatabase(`amount in (${amount}, -9999)`)).rejects.toThrow(refusal)
    expect(await closeInDatabase('amount = -9999')).toBe(1)
  })

  test.each(['open', 'batch', 'settlement'])(
    'an entry with the reference of a payment, batch or settlement: %s',
    async name => {
      await booked([-9_998, '', `Fenced: KOMMUNIKATION ${words[name]}`], [-9_997, '', `Fenced ${name}: SUMME`])
      await expect(closeInDatabase('partner_id is null')).rejects.toThrow(refusal)
      expect(await closeInDatabase('amount = -9997')).toBe(1)
    },
  )

  test('an entry as it is opened', async () => {
    const copied = scene.harness.pool.query(
      `insert into payout_exceptions (id, rail, kind, fingerprint, amount, currency, reason, opened_at, closed_at, closed_by, decision,
                                      closed_by_text)
       values ('pex_fenced', 'sepa', 'money_out', 'fenced', -1, 'EUR', 'x', now(), now(), 'x', 'ignore', 'fenced')`,
    )
    await expect(copied).rejects.toThrow('an entry is opened before it is closed by its text')
  })
})
