import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import writeExcelFile from 'write-excel-file/node'
import { locatedId } from '../../test/harness/api-response.ts'
import { type ConsoleUser, signIn } from '../../test/harness/console.ts'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { euAccount } from '../../test/harness/samples.ts'

let harness: Harness
let clerk: ConsoleUser
beforeAll(async () => {
  harness = await startHarness()
  clerk = await signIn(harness, { roles: ['payroll'] })
})
afterAll(() => harness.stop())

const path = '/console/v1/pay-run-files'
const csv = { 'content-type': 'text/csv' }
const xlsx = { 'content-type': 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet' }
const check = (raw: string | Buffer, { user = clerk, headers = csv } = {}) => user.call('POST', path, { raw, headers })
const faultsOf = ({ body }: { body: { issues: { row: string; message: string }[] } }) =>
  body.issues.map(({ row, message }) => `${row}: ${message}`)
let count = 0

async function addMember(options = {}): Promise<{ memberId: string; workerId: string; email: string }> {
  const memberId = await harness.addMember(options)
  count += 1
  const { body } = await harness.call('PATCH', `/v1/members/${memberId}`, { body: { workerId: `AC-${count}` } })
  return { memberId, workerId: body.workerId, email: body.email }
}

/** Uploads a part of the checked file, as the console does. */
const upload = (
  { payDetails, idempotencyKey }: { payDetails: object[]; idempotencyKey: string },
  key = idempotencyKey,
) => clerk.call('POST', '/v1/pay/run', { body: { payDetails }, headers: { 'x-idempotency-key': key } })

describe('a file of pay', () => {
  test('names members by id, worker id or e-mail address, and has amounts as people write them', async () => {
    const [a, b, c] = [await addMember(), await addMember(), await addMember()]
    const gbp = (amount: number) => ({ amount, currency: 'GBP' })
    const rows = [
      [a.memberId, '', '', '120.00'],
      ['', b.workerId, '', '-7.5'],
      ['', '', c.email.toUpperCase(), '95'],
      [a.memberId, a.workerId, a.email, '0.01'],
    ]
    const { status, body } = await check(
      `Member ID,worker_id,E-mail,Amount\n${rows.map(row => row.join()).join('\n')}\n`,
    )
    expect(status).toBe(200)
    expect(body).toEqual({
      ...{ lineCount: 4, memberCount: 3, totals: [gbp(20_751)] },
      parts: [
        {
          idempotencyKey: expect.stringMatching(/^pay-run-file\.[0-9a-f]{40}\.0\.first$/),
          sent: null,
          payDetails: [
            { memberId: a.memberId, money: gbp(12_000) },
            { memberId: b.memberId, money: gbp(-750) },
            { memberId: c.memberId, money: gbp(9_500) },
            { memberId: a.memberId, money: gbp(1) },
          ],
        },
      ],
    })
  })

  test('is in each member’s currency, even if the file does not name one', async () => {
    const [a, b] = [await addMember(), await addMember({ tier: 'Silver EU', account: euAccount })]
    const { body } = await check(`worker_id;amount;currency\n${a.workerId};1.50;GBP\n${b.workerId};2;\n`)
    expect(body.totals).toEqual([
      { amount: 200, currency: 'EUR' },
      { amount: 150, currency: 'GBP' },
    ])
    expect(faultsOf(await check(`worker_id,amount,currency\n${b.workerId},2,GBP\n`))).toEqual([
      "2: currency: must be EUR, the currency of the member's pay",
    ])
  })

  test('may be a workbook, whose sums are read with the digits that it shows', async () => {
    const { workerId, memberId } = await addMember()
    const text = (value: string) => ({ type: String, value })
    const sheet = [
      [text('worker_id'), text('amount')],
      [text(workerId), { type: Number, value: 0.1 + 0.2 }],
    ]
    const { body } = await check(await writeExcelFile(sheet as never).toBuffer(), { headers: xlsx })
    expect(body.parts[0].payDetails).toEqual([{ memberId, money: { amount: 30, currency: 'GBP' } }])
    const numbers = [
      sheet[0],
      [
        { type: Number, value: 7 },
        { type: Number, value: 1.005 },
      ],
    ]
    expect(faultsOf(await check(await writeExcelFile(numbers as never).toBuffer(), { headers: xlsx }))).toEqual([
      '2: worker_id: the cell is a number (7), which loses leading zeros; format the column as text and type it again',
    ])
  })

  test('is refused with every faulty row, naming each column and its fault', async () => {
    const [a, b, gone] = [await addMember(), await addMember(), await addMember()]
    await harness.call('DELETE', `/v1/members/${gone.memberId}`)
    const foreign = await harness.addMember({ key: harness.other.key })
    const rows = [
      `${a.memberId},,,1.005`,
      `${a.memberId},,,£5`,
      `${a.memberId},,,"1,234.50"`,
      `${a.memberId},,,`,
      `,unknown-id,,1`,
      `${foreign},,,1`,
      `,,${gone.email},1`,
      `${a.memberId},${b.workerId},,1`,
      `,,,1`,
      `pr_1,,,1`,
      `${a.memberId},,,1`,
    ]
    const answer = await check(`member_id,worker_id,email,amount\n${rows.join('\n')}\n`)
    expect(answer.status).toBe(400)
    const amount = 'must be in GBP, such as 120.00, without a currency symbol or thousands separators'
    expect(faultsOf(answer)).toEqual([
      `2: amount: ${amount}`,
      `3: amount: ${amount}`,
      `4: amount: ${amount}`,
      '5: amount: is empty',
      '6: worker_id: there is no such member',
      '7: member_id: there is no such member',
      '8: email: the member is inactive; reinstate the member first',
      '9: worker_id: belongs to another member than member_id',
      '10: member_id: is empty',
      '11: member_id: must begin with mem_',
    ])
  })

  test('has amounts with decimals or in minor units, which must agree if both are present', async () => {
    const { memberId } = await addMember()
    const paid = { amount: 12_000, currency: 'GBP' }
    for (const file of [
      `member_id,amount\n${memberId},120.00\n`,
      `member_id,amount_decimal\n${memberId},120.00\n`,
      `member_id,amount_minor\n${memberId},12000\n`,
      `member_id,amount,amount_minor\n${memberId},120,12000\n`,
    ])
      expect((await check(file)).body.totals).toEqual([paid])
    expect(faultsOf(await check(`member_id,amount,amount_minor\n${memberId},12000,12000\n`))).toEqual([
      '2: amount is 12000 and amount_minor is 12000, which is not the same amount; correct one, or delete its column',
    ])
    const [fault] = faultsOf(await check(`member_id,amount,currency,amount_decimal\n${memberId},12000,GBP,120.00\n`))
    expect(fault).toMatch(/^1: the file has both amount and amount_decimal;/)
    expect(faultsOf(await check('name,pay\nSam,1\n'))[0]).toMatch(/^1: the column member_id is missing/)
    expect(faultsOf(await check('email,amount\n'))).toEqual(['1: the file has no lines below the header'])
  })

  test('names the first thousand rows with errors, and counts the others', async () => {
    const rows = Array.from({ length: 1_234 }, (_, index) => `unknown-${index},1`)
    const { body } = await check(`worker_id,amount\n${rows.join('\n')}\n`)
    expect(body.issues).toHaveLength(1_001)
    expect(body.issues[0].row).toBe('2')
    expect(body.issues[1_000].message).toBe('234 more rows have errors; fix the others first')
  })

  test('is recognised when it is sent again in any format, and can be sent again on purpose', async () => {
    const { memberId, workerId } = await addMember()
    const [part] = (await check(`member_id,amount\n${memberId},10\n`)).body.parts
    const sent = await upload(part)
    expect(sent.status).toBe(201)
    expect((await upload(part)).headers['idempotency-replayed']).toBe('true')
    const colleague = await signIn(harness, { roles: ['payroll'] })
    const again = (await check(`worker_id;amount;name\n${workerId};10.00;Sam\n`, { user: colleague })).body.parts[0]
    expect(again.sent).toEqual({ payRunId: locatedId(sent), at: expect.any(String) })

    const second = await upload(again)
    expect([second.status, second.headers['idempotency-replayed']]).toEqual([201, undefined])
    const third = (await check(`member_id,amount\n${memberId},10\n`)).body
    expect(third.parts[0].sent.payRunId).toBe(locatedId(second))
    expect((await check(`member_id,amount\n${memberId},11\n`)).body.parts[0].sent).toBeNull()
    expect((await check(`member_id,amount\n${`${memberId},10\n`.repeat(2)}`)).body.parts[0].sent).toBeNull()
  })

  test('can be sent again after a revert, as a new pay run', async () => {
    const { memberId } = await addMember()
    const text = `member_id,amount\n${memberId},10\n`
    const first = await upload((await check(text)).body.parts[0])
    await harness.call('POST', `/v1/pay/runs/${locatedId(first)}/revert`)
    const [part] = (await check(text)).body.parts
    expect(part.sent).toBeNull()
    const second = await upload(part)
    expect([second.status, second.headers['idempotency-replayed']]).toEqual([201, undefined])
    expect((await check(text)).body.parts[0].sent.payRunId).toBe(locatedId(second))
  })

  test('is not mistaken for another partner’s file', async () => {
    const { memberId } = await addMember()
    const foreign = await harness.addMember({ key: harness.other.key })
    const line = (id: string) => ({ memberId: id, money: { amount: 1_234, currency: 'GBP' } })
    await harness.call('POST', '/v1/pay/run', { key: harness.other.key, body: { payDetails: [line(foreign)] } })
    expect((await check(`member_id,amount\n${memberId},12.34\n`)).body.parts[0].sent).toBeNull()
    await harness.call('POST', '/v1/pay/run', { body: { payDetails: [line(memberId)] } })
    expect((await check(`member_id,amount\n${memberId},12.34\n`)).body.parts[0].sent).not.toBeNull()
  })

  test('of more lines than a pay run has is split into pay runs', async () => {
    const { memberId } = await addMember()
    const { body } = await check(`member_id,amount\n${`${memberId},0.01\n`.repeat(100_001)}`)
    expect(body).toMatchObject({ lineCount: 100_001, memberCount: 1, totals: [{ amount: 100_001, currency: 'GBP' }] })
    expect(body.parts.map(({ payDetails }: { payDetails: object[] }) => payDetails.length)).toEqual([100_000, 1])
    expect(body.parts[0].idempotencyKey).not.toBe(body.parts[1].idempotencyKey)
  })

  test('can be checked by users who may upload a pay run, and the check changes nothing', async () => {
    const { memberId } = await addMember()
    const before = (await harness.call('GET', '/v1/pay/runs')).body.total
    const text = `member_id,amount\n${memberId},10\n`
    for (const [role, expected] of [
      ['admin', 200],
      ['support', 403],
      ['viewer', 403],
    ] as const)
      expect((await check(text, { user: await signIn(harness, { roles: [role] }) })).status, role).toBe(expected)
    expect((await harness.call('POST', path, { raw: text, headers: csv, key: null })).status).toBe(401)
    expect(
      (await clerk.call('POST', path, { raw: text, headers: csv, partner: harness.other.partner.id })).status,
    ).toBe(404)
    expect((await harness.call('GET', '/v1/pay/runs')).body.total).toBe(before)
  })

  test('with the same pay as a week before is a new pay run, even while the earlier key is valid', async () => {
    const { memberId } = await addMember()
    const send = async () => {
      const raw = `member_id,amount\n${memberId},10\n`
      const [part] = (await harness.call('POST', path, { raw, headers: csv })).body.parts
      const headers = { 'x-idempotency-key': part.idempotencyKey }
      const { payDetails } = part
      return { part, answer: await harness.call('POST', '/v1/pay/run', { body: { payDetails }, headers }) }
    }
    await send()
    harness.clock.advance({ minutes: 6.5 * 24 * 60 })
    const { part, answer } = await send()
    expect(part.sent).toBeNull()
    expect([answer.status, answer.headers['idempotency-replayed']]).toEqual([201, undefined])
  })
})
