import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { extent } from '../../../../test/runner/extent.ts'
import type { Answer } from '../answers.ts'
import { BankFileProblem } from '../bank-files.ts'
import { answersOf, batchOf, type Part, partsOf, someOrder, textOf } from './files.fixture.ts'
import { readBankFile } from './read-bank-file.ts'
import { writeNotification, writeStatusReport } from './write-answers.ts'
import { writeSepaCreditTransfer } from './write-credit-transfer.ts'

const header = '<GrpHdr><MsgId>M1</MsgId><CreDtTm>2026-03-03T09:00:00+01:00</CreDtTm></GrpHdr>'
const ours = 'MMABCDEFGHIJKLMN'

const withRoot = (content: string) => `<?xml version="1.0" encoding="UTF-8"?>\n<Document>${content}</Document>`
const reportOf = (content: string) => withRoot(`<CstmrPmtStsRpt>${header}${content}</CstmrPmtStsRpt>`)
const group = '<OrgnlGrpInfAndSts><OrgnlMsgId>B1</OrgnlMsgId></OrgnlGrpInfAndSts>'
const account = '<Acct><Id><IBAN>DE75512108001245126199</IBAN></Id></Acct>'
const statementOf = (content: string) =>
  withRoot(`<BkToCstmrStmt>${header}<Stmt>${account}${content}</Stmt></BkToCstmrStmt>`)

/** An entry of 100.00 EUR, booked on 3 March, with changes. */
function entryOf(changes: Record<string, string> = {}): string {
  const fields = {
    Amt: '100.00',
    CdtDbtInd: '<CdtDbtInd>DBIT</CdtDbtInd>',
    RvslInd: '',
    Sts: '<Sts><Cd>BOOK</Cd></Sts>',
    BookgDt: '<BookgDt><Dt>2026-03-03</Dt></BookgDt>',
    AcctSvcrRef: '<AcctSvcrRef>REF1</AcctSvcrRef>',
    BkTxCd: '',
    NtryDtls: '',
    AddtlNtryInf: '',
    ...changes,
  }
  const { Amt, ...others } = fields
  return `<Ntry><Amt Ccy="EUR">${Amt}</Amt>${Object.values(others).join('')}</Ntry>`
}
const credit = { CdtDbtInd: '<CdtDbtInd>CRDT</CdtDbtInd>' }
const details = (...all: string[]) => ({
  NtryDtls: `<NtryDtls>${all.map(each => `<TxDtls>${each}</TxDtls>`).join('')}</NtryDtls>`,
})
const refs = (reference: string) => `<Refs><EndToEndId>${reference}</EndToEndId></Refs>`
const amount = (text: string) => `<Amt Ccy="EUR">${text}</Amt>`
const eur = (cents: bigint) => ({ amount: cents, currency: 'EUR' })

/** The records of a file, without their lines: the files here have one line. */
const recordsOf = async (file: string) =>
  (await partsOf(file)).slice(1).map(part => {
    const { line: _, ...record } = part as Exclude<Part, { type: 'head' }>
    return record
  })

describe('a payment status report', () => {
  const payment = (status: string, more = '') =>
    `<TxInfAndSts><OrgnlEndToEndId>${ours}</OrgnlEndToEndId>${status && `<TxSts>${status}</TxSts>`}${more}</TxInfAndSts>`
  const information = (content: string) =>
    reportOf(`${group}<OrgnlPmtInfAndSts><OrgnlPmtInfId>B1</OrgnlPmtInfId>${content}</OrgnlPmtInfAndSts>`)

  test.each([
    ['ACTC', 'accepted'],
    ['ACCP', 'accepted'],
    ['ACSP', 'accepted'],
    ['ACWC', 'accepted'],
    ['PDNG', 'pending'],
    ['RCVD', 'pending'],
    ['ACSC', 'paid'],
    ['ACCC', 'paid'],
    ['RJCT', 'failed'],
  ])('a payment with %s is %s', async (status, state) => {
    expect(await recordsOf(information(payment(status)))).toEqual([
      {
        ...{ type: 'payment', reference: ours, state, amount: null },
        ...{ entryReference: null, reasonCodes: [], reasonText: null },
      },
    ])
  })

  test('an unknown status changes nothing and is shown', async () => {
    expect(await recordsOf(information(payment('XXXX')))).toMatchObject([
      { state: 'pending', reasonText: 'Status XXXX' },
    ])
  })

  test.each([
    ['ACTC', 'acknowledged'],
    ['ACCP', 'acknowledged'],
    ['ACSC', 'acknowledged'],
    ['PART', 'partly'],
    ['PDNG', 'pending'],
    ['RJCT', 'rejected'],
  ])('a message and a payment information with %s: the batch is %s', async (status, state) => {
    const reason = '<StsRsnInf><Rsn><Cd>FF01</Cd></Rsn><AddtlInf>a</AddtlInf><AddtlInf>b</AddtlInf></StsRsnInf>'
    const batch = { type: 'batch', messageId: 'B1', state, reasonCodes: ['FF01'], reasonText: 'a b' }
    const ofMessage = `<OrgnlGrpInfAndSts><OrgnlMsgId>B1</OrgnlMsgId><GrpSts>${status}</GrpSts>${reason}</OrgnlGrpInfAndSts>`
    expect(await recordsOf(reportOf(ofMessage))).toEqual([{ ...batch, level: 'group' }])
    expect(await recordsOf(information(`<PmtInfSts>${status}</PmtInfSts>${reason}`))).toEqual([
      { ...batch, level: 'payment-information' },
    ])
  })

  test('the status of a payment information comes before its payments, which inherit it', async () => {
    expect(await recordsOf(information(`<PmtInfSts>RJCT</PmtInfSts>${payment('')}${payment('ACSC')}`))).toMatchObject([
      { type: 'batch', state: 'rejected' },
      { type: 'payment', state: 'failed' },
      { type: 'payment', state: 'paid' },
    ])
  })

  test.each(['RCVC', 'RVMC', 'RVNM', 'RVNA'])(
    '%s is a check of the name at every level, never a status',
    async code => {
      const check = { type: 'name-check', messageId: 'B1', reference: null, code }
      const ofMessage = `<OrgnlGrpInfAndSts><OrgnlMsgId>B1</OrgnlMsgId><GrpSts>${code}</GrpSts></OrgnlGrpInfAndSts>`
      expect(await recordsOf(reportOf(ofMessage))).toEqual([check])
      expect(await recordsOf(information(`<PmtInfSts>${code}</PmtInfSts>`))).toEqual([check])
      expect(await recordsOf(information(payment(code)))).toEqual([{ ...check, reference: ours }])
      const asReason = payment('PDNG', `<StsRsnInf><Rsn><Cd>${code}</Cd></Rsn></StsRsnInf>`)
      expect(await recordsOf(information(asReason))).toMatchObject([
        { type: 'payment', state: 'pending', reasonCodes: [] },
        { ...check, reference: ours },
      ])
    },
  )

  test('all reasons of an answer are read in order, codes and words', async () => {
    const reasons =
      '<StsRsnInf><Rsn><Prtry>Z-99</Prtry></Rsn><AddtlInf>a</AddtlInf></StsRsnInf>' +
      '<StsRsnInf><Rsn><Cd>NARR</Cd></Rsn><AddtlInf>b</AddtlInf><AddtlInf>c</AddtlInf></StsRsnInf>' +
      '<StsRsnInf><Rsn><Cd>RVNM</Cd></Rsn></StsRsnInf><StsRsnInf><Rsn><Cd>DU04</Cd></Rsn></StsRsnInf>'
    const given = { reasonCodes: ['Z-99', 'NARR', 'DU04'], reasonText: 'a b c' }
    expect(await recordsOf(information(payment('RJCT', reasons)))).toMatchObject([
      { type: 'payment', state: 'failed', ...given },
      { type: 'name-check', code: 'RVNM' },
    ])
    expect(await recordsOf(information(`<PmtInfSts>RJCT</PmtInfSts>${reasons}`))).toMatchObject([
      { type: 'batch', state: 'rejected', ...given },
      { type: 'name-check', code: 'RVNM' },
    ])
  })

  const unnamed = (status: string, more = '') =>
    `<OrgnlGrpInfAndSts><OrgnlMsgId>NOTPROVIDED</OrgnlMsgId>${status}</OrgnlGrpInfAndSts>${more}`
  const ofBatch = (content: string) =>
    `<OrgnlPmtInfAndSts><OrgnlPmtInfId>B1</OrgnlPmtInfId>${content}</OrgnlPmtInfAndSts>`
  const rejected = '<GrpSts>RJCT</GrpSts><StsRsnInf><Rsn><Cd>FF01</Cd></Rsn></StsRsnInf>'

  test.each([
    ['the status of the group', unnamed(rejected, ofBatch('')), 'group'],
    ['its own status', unnamed('', ofBatch(rejected.replaceAll('GrpSts', 'PmtInfSts'))), 'payment-information'],
  ])(
    'without the id of our message, the payment information names the batch, which has %s',
    async (_, content, level) => {
      expect(await recordsOf(reportOf(content))).toMatchObject([
        { type: 'batch', messageId: 'B1', level, state: 'rejected', reasonCodes: ['FF01'] },
      ])
    },
  )

  test('a status that names neither our message nor a payment information is kept under the bank’s placeholder', async () => {
    expect(await recordsOf(reportOf(unnamed(rejected)))).toMatchObject([
      { type: 'batch', messageId: 'NOTPROVIDED', state: 'rejected' },
    ])
  })

  test('a placeholder is not the reference of a payment', async () => {
    const ids = `<OrgnlInstrId>${ours}</OrgnlInstrId><OrgnlEndToEndId>NOTPROVIDED</OrgnlEndToEndId>`
    const file = information(`<TxInfAndSts>${ids}<TxSts>RJCT</TxSts></TxInfAndSts>`)
    expect(await recordsOf(file)).toMatchObject([{ reference: ours, state: 'failed' }])
  })

  test('a bank’s own reason, the amount and a reference in the instruction id are read', async () => {
    const own =
      `<TxInfAndSts><StsId>S1</StsId><OrgnlInstrId>${ours}</OrgnlInstrId><TxSts>RJCT</TxSts><StsRsnInf><Rsn>` +
      '<Prtry>Z-99</Prtry></Rsn></StsRsnInf><OrgnlTxRef><Amt><InstdAmt Ccy="EUR">1.5</InstdAmt></Amt></OrgnlTxRef></TxInfAndSts>'
    expect(await recordsOf(information(own))).toEqual([
      {
        ...{ type: 'payment', reference: ours, state: 'failed', amount: eur(150n) },
        ...{ entryReference: 'S1', reasonCodes: ['Z-99'], reasonText: null },
      },
    ])
  })

  test('version 2, with prefixes and in an envelope, is read', async () => {
    const file =
      `<e:Envelope xmlns:e="e" xmlns:p="p"><p:Document><p:pain.002.001.02>${header}${group}` +
      `<p:TxInfAndSts><p:OrgnlEndToEndId>${ours}</p:OrgnlEndToEndId><p:TxSts>RJCT</p:TxSts><p:StsRsnInf><p:StsRsn>` +
      '<p:Cd>AC01</p:Cd></p:StsRsn><p:AddtlStsRsnInf>x</p:AddtlStsRsnInf></p:StsRsnInf></p:TxInfAndSts>' +
      '</p:pain.002.001.02></p:Document></e:Envelope>'
    expect(await recordsOf(file)).toMatchObject([{ state: 'failed', reasonCodes: ['AC01'], reasonText: 'x' }])
  })
})

describe('a statement', () => {
  const saidNothing = { isReversal: false, isReturn: false, texts: [], charges: null }
  const booking = { day: '2026-03-03', bankReference: 'REF1', ...saidNothing }
  const paid = {
    type: 'payment',
    reference: ours,
    state: 'paid',
    amount: eur(10_000n),
    entryReference: 'REF1',
    booking,
  }
  const returned = { ...paid, state: 'returned' }
  const noReason = { reasonCodes: [], reasonText: null }
  const entry = {
    ...{ type: 'entry', entryReference: 'REF1', amount: eur(-10_000n), booking },
    ...{ reference: null, reasonCodes: [], reasonText: null },
  }

  test('the head has the id, time and account of the message', async () => {
    const file = statementOf('').replace('<IBAN>', '<IBAN>\n DE75 ').replace('DE75 DE75', 'DE75 ')
    expect(await partsOf(file)).toEqual([
      {
        type: 'head',
        head: {
          ...{ message: 'camt.053', messageId: 'M1', createdAt: new Date('2026-03-03T08:00:00Z') },
          account: 'DE75512108001245126199',
          currency: null,
        },
      },
    ])
  })

  test('a debit with one of our references is paid; without an amount it has the entry’s', async () => {
    expect(await recordsOf(statementOf(entryOf(details(`${refs(ours)}${amount('100')}`))))).toEqual([
      { ...paid, ...noReason },
    ])
    expect(await recordsOf(statementOf(entryOf(details(refs(ours)))))).toEqual([{ ...paid, ...noReason }])
    const inDetails = details(`${refs(ours)}<AmtDtls><TxAmt><Amt Ccy="EUR">100.00</Amt></TxAmt></AmtDtls>`)
    expect(await recordsOf(statementOf(entryOf(inDetails)))).toEqual([{ ...paid, ...noReason }])
  })

  test.each([
    ['RvslInd true', { RvslInd: '<RvslInd>true</RvslInd>' }, 'OTHER', { isReversal: true }],
    ['RvslInd false, and our reference', { RvslInd: '<RvslInd>false</RvslInd>' }, ours, {}],
    [
      'RRTN of the entry',
      { BkTxCd: '<BkTxCd><Domn><Cd>PMNT</Cd><Fmly><Cd>ICDT</Cd><SubFmlyCd>RRTN</SubFmlyCd></Fmly></Domn></BkTxCd>' },
      'OTHER',
      { isReturn: true },
    ],
  ])('a credit with %s is a return, and the record says what the bank says', async (_, changes, reference, said) => {
    const file = statementOf(entryOf({ ...credit, ...changes, ...details(refs(reference)) }))
    expect(await recordsOf(file)).toEqual([{ ...returned, reference, ...noReason, booking: { ...booking, ...said } }])
  })

  test('a return reason makes a return of a credit, and is kept verbatim', async () => {
    const reason = '<RtrInf><Rsn><Cd>AC04</Cd></Rsn><AddtlInf>Konto</AddtlInf><AddtlInf>zu</AddtlInf></RtrInf>'
    const file = statementOf(entryOf({ ...credit, ...details(`${refs('OTHER')}${reason}`) }))
    const said = { reasonCodes: ['AC04'], reasonText: 'Konto zu', booking: { ...booking, isReturn: true } }
    expect(await recordsOf(file)).toEqual([{ ...returned, reference: 'OTHER', ...said }])
    const debit = statementOf(entryOf(details(`${refs('OTHER')}${reason}`)))
    expect(await recordsOf(debit)).toEqual([{ ...entry, reference: 'OTHER', ...said }])
  })

  test('a batch booked as one sum names the batch; its payments, where given, are read one by one', async () => {
    const batch = '<Btch><MsgId>B0</MsgId><PmtInfId>B1</PmtInfId><NbOfTxs>2</NbOfTxs></Btch>'
    expect(await recordsOf(statementOf(entryOf({ NtryDtls: `<NtryDtls>${batch}</NtryDtls>` })))).toEqual([
      { ...entry, reference: 'B1' },
    ])
    const second = 'MM22222222222222'
    const both = details(`${refs(ours)}${amount('60.00')}`, `${refs(second)}${amount('40.00')}`)
    expect(await recordsOf(statementOf(entryOf(both)))).toEqual([
      { ...paid, ...noReason, amount: eur(6_000n) },
      { ...paid, ...noReason, amount: eur(4_000n), reference: second, entryReference: 'REF1/2' },
    ])
    const withoutAmounts = statementOf(entryOf(details(refs(ours), refs(second))))
    expect(await recordsOf(withoutAmounts)).toMatchObject([{ amount: null }, { amount: null }])
  })

  test('the rest of an entry that its transactions leave is a record', async () => {
    const charged = details(`${refs(ours)}${amount('99.00')}`)
    expect(
      await recordsOf(statementOf(entryOf({ ...charged, AddtlNtryInf: '<AddtlNtryInf>fee</AddtlNtryInf>' }))),
    ).toEqual([
      { ...paid, ...noReason, amount: eur(9_900n), booking: { ...booking, texts: ['fee'] } },
      { ...entry, amount: eur(-100n), booking: { ...booking, texts: ['fee'] } },
    ])
  })

  test('the records of an entry add up to it, whatever its transactions', async () => {
    const one = fc.record({
      cents: fc.bigInt({ min: 1n, max: 99_999n }),
      isCredit: fc.boolean(),
      reference: fc.constantFrom(ours, 'OTHER', 'NOTPROVIDED', null),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(one, { maxLength: 6 }), fc.boolean(), async (all, isCredit) => {
        const written = all.map(
          ({ cents, isCredit, reference }) =>
            `${reference === null ? '' : refs(reference)}${amount(`${cents / 100n}.${String(cents % 100n).padStart(2, '0')}`)}` +
            `<CdtDbtInd>${isCredit ? 'CRDT' : 'DBIT'}</CdtDbtInd>`,
        )
        const records = await recordsOf(statementOf(entryOf({ ...(isCredit ? credit : {}), ...details(...written) })))
        let sum = 0n
        for (const record of records) {
          if (record.type === 'entry') sum += record.amount.amount
          if (record.type === 'payment') sum += (record.amount?.amount ?? 0n) * (record.state === 'returned' ? 1n : -1n)
        }
        expect(sum).toBe(isCredit ? 10_000n : -10_000n)
      }),
      { numRuns: 100 },
    )
  })

  test('money that arrives has its sender’s reference and text; a charge has neither', async () => {
    const text = '<RmtInf><Ustrd>float</Ustrd><Ustrd>March</Ustrd></RmtInf>'
    const arrived = entryOf({ ...credit, ...details(`${refs('FUND-7')}${amount('100.00')}${text}`) })
    const charge = entryOf({ AcctSvcrRef: '<NtryRef>7</NtryRef>', ...details(refs('NOTPROVIDED')) })
    expect(await recordsOf(statementOf(arrived + charge))).toEqual([
      { ...entry, amount: eur(10_000n), reference: 'FUND-7', booking: { ...booking, texts: ['float March'] } },
      { ...entry, entryReference: '7', booking: { ...booking, bankReference: null } },
    ])
  })

  test('the bank’s words are kept text by text, the transaction’s first', async () => {
    const said = details(`${refs('X')}<RmtInf><Ustrd>a</Ustrd><Ustrd>b</Ustrd></RmtInf><AddtlTxInf>c</AddtlTxInf>`)
    const file = statementOf(entryOf({ ...said, AddtlNtryInf: '<AddtlNtryInf>d</AddtlNtryInf>' }))
    expect(await recordsOf(file)).toMatchObject([{ booking: { texts: ['a b', 'c', 'd'] } }])
  })

  test.each([
    ['a total', '<Chrgs><TtlChrgsAndTaxAmt Ccy="EUR">5.00</TtlChrgsAndTaxAmt></Chrgs>', 500n],
    ['records', `<Chrgs><Rcrd>${amount('3')}</Rcrd><Rcrd>${amount('2.01')}</Rcrd></Chrgs>`, 501n],
    ['elements, as before version 3', `<Chrgs>${amount('1')}</Chrgs><Chrgs>${amount('2')}</Chrgs>`, 300n],
    ['another currency', '<Chrgs><TtlChrgsAndTaxAmt Ccy="USD">5.00</TtlChrgsAndTaxAmt></Chrgs>', null],
    ['no amount', '<Chrgs><TtlChrgsAndTaxAmt Ccy="EUR">five</TtlChrgsAndTaxAmt></Chrgs>', null],
  ])('charges in %s are read, from the transaction or else from the entry', async (_, charges, told) => {
    const ofEntry = entryOf({ ...credit, ...details(refs('X')), AddtlNtryInf: charges })
    const ofDetail = entryOf({ ...credit, ...details(`${refs('X')}${charges}`) })
    for (const each of [ofEntry, ofDetail])
      expect(await recordsOf(statementOf(each))).toMatchObject([{ booking: { charges: told } }])
  })

  test('a placeholder is not a reference of the bank', async () => {
    for (const placeholder of ['NONREF', 'NOTPROVIDED', 'NOT PROVIDED']) {
      const file = statementOf(entryOf({ AcctSvcrRef: `<AcctSvcrRef>${placeholder}</AcctSvcrRef>` }))
      expect(await recordsOf(file)).toMatchObject([{ booking: { day: '2026-03-03', bankReference: null } }])
    }
  })

  test('entries that are not booked are skipped; old versions write the status without a code', async () => {
    const pending = entryOf({ Sts: '<Sts><Cd>PDNG</Cd></Sts>', ...details(refs(ours)) })
    const planned = entryOf({ Sts: '<Sts>INFO</Sts>' })
    const old = entryOf({ Sts: '<Sts>BOOK</Sts>', BookgDt: '<ValDt><DtTm>2026-03-03T23:59:00+01:00</DtTm></ValDt>' })
    expect(await recordsOf(statementOf(pending + planned + old))).toEqual([entry])
  })

  const balance = (type: string, { more = '', amount: text = '7.05' } = {}) =>
    `<Bal><Tp><CdOrPrtry><Cd>${type}</Cd></CdOrPrtry>${more}</Tp><Amt Ccy="EUR">${text}</Amt>` +
    '<CdtDbtInd>DBIT</CdtDbtInd><Dt><Dt>2026-03-03</Dt></Dt></Bal>'
  const ofPage = { more: '<SubTp><Cd>INTM</Cd></SubTp>', amount: '1.00' }
  const unnumbered = { electronic: null, legal: null }

  test.each(['OPBD', 'PRCD'])(
    'the booked balances of a statement are read, not page or other balances (%s)',
    async opening => {
      const balances = [
        ...[balance('ITBD', { amount: '2.00' }), balance('OPBD', ofPage), balance(opening, { amount: '9.00' })],
        ...[balance('CLBD', ofPage), balance('CLBD'), balance('CLAV', { amount: '3.00' })],
      ]
      expect(await recordsOf(statementOf(balances.join('')))).toEqual([
        {
          ...{ type: 'statement', day: '2026-03-03', coversFrom: '2026-03-03' },
          ...{ opening: eur(-900n), closing: eur(-705n), numbers: unnumbered },
        },
      ])
    },
  )

  test('the numbers of a statement are read, even without balances; the numbers of a notification are not', async () => {
    const numbers = '<ElctrncSeqNb>12</ElctrncSeqNb><LglSeqNb>3</LglSeqNb><CreDtTm>2026-03-04T05:00:00</CreDtTm>'
    const file = statementOf('').replace(account, `${numbers}${account}`)
    expect(await recordsOf(file)).toEqual([
      {
        ...{ type: 'statement', day: '2026-03-04', coversFrom: null },
        ...{ opening: null, closing: null, numbers: { electronic: 12n, legal: 3n } },
      },
    ])
    const notification = file.replaceAll('Stmt>', 'Ntfctn>').replaceAll('BkToCstmrNtfctn', 'BkToCstmrDbtCdtNtfctn')
    expect(await recordsOf(notification)).toEqual([])
    const odd = file.replace('>12<', '>A-12<').replace('>3<', '>-3<')
    expect(await recordsOf(odd)).toEqual([])
  })
})

describe('a file of account reports', () => {
  const statement = (iban: string, content: string) =>
    `<Stmt><Acct><Id><IBAN>${iban}</IBAN></Id></Acct>${content}</Stmt>`
  const statements = (...all: string[]) => withRoot(`<BkToCstmrStmt>${header}${all.join('')}</BkToCstmrStmt>`)
  const [first, second] = ['DE75512108001245126199', 'DE02120300000000202051']

  test('has a head before the entries of each account, in the order of the file', async () => {
    const file = statements(statement(first, entryOf()), statement(second, entryOf()), statement(second, entryOf()))
    const parts = await partsOf(file)
    expect(parts.map(part => (part.type === 'head' ? part.head.account : part.type))).toEqual([
      ...[first, 'entry', second, 'entry', 'entry'],
    ])
  })

  test('without any statement is from a day on which nothing happened', async () => {
    expect(await partsOf(statements())).toMatchObject([{ type: 'head', head: { messageId: 'M1', account: null } }])
  })

  test('loses only the balances whose sign the bank leaves out', async () => {
    const balance =
      '<Bal><Tp><CdOrPrtry><Cd>CLBD</Cd></CdOrPrtry></Tp><Amt Ccy="EUR">7.05</Amt><Dt><Dt>2026-03-02</Dt></Dt></Bal>'
    const undated = entryOf({ BookgDt: '' })
    expect(await recordsOf(statementOf(balance + entryOf() + undated))).toMatchObject([
      { type: 'entry', booking: { day: '2026-03-03' } },
      // The balance still says of which day the statement is.
      { type: 'entry', booking: { day: '2026-03-02' } },
      { type: 'statement', day: '2026-03-02', coversFrom: '2026-03-02', closing: null },
    ])
  })

  test.each([
    ['2026-02-27T00:00:00', '2026-02-27'],
    ['2026-02-27T18:00:00', '2026-02-28'],
    ['2026-03-02T18:00:00', '2026-03-02'],
  ])('covers the days of its period, whole days only: from %s on %s', async (begins, coversFrom) => {
    const period = `<FrToDt><FrDtTm>${begins}</FrDtTm><ToDtTm>2026-03-02T23:59:59</ToDtTm></FrToDt>`
    const balance =
      '<Bal><Tp><CdOrPrtry><Cd>CLBD</Cd></CdOrPrtry></Tp><Amt Ccy="EUR">7.05</Amt><CdtDbtInd>CRDT</CdtDbtInd>' +
      '<Dt><Dt>2026-03-02</Dt></Dt></Bal>'
    expect(await recordsOf(statements(statement(first, balance).replace('<Acct>', `${period}<Acct>`)))).toMatchObject([
      { type: 'statement', day: '2026-03-02', coversFrom },
    ])
  })

  test.each([
    [
      'the end of the period',
      '<FrToDt><FrDtTm>2026-03-01T00:00:00</FrDtTm><ToDtTm>2026-03-01T23:59:59</ToDtTm></FrToDt>',
      '2026-03-01',
    ],
    [
      'the day before a period ends at midnight',
      '<FrToDt><FrDtTm>2026-03-01T00:00:00</FrDtTm><ToDtTm>2026-03-02T00:00:00+01:00</ToDtTm></FrToDt>',
      '2026-03-01',
    ],
    ['the creation of the statement', '<CreDtTm>2026-03-02T06:00:00</CreDtTm>', '2026-03-02'],
    ['the creation of the message', '', '2026-03-03'],
  ])('gives an entry without dates %s', async (_, period, day) => {
    const file = statements(`<Stmt>${period}${account}${entryOf({ BookgDt: '' })}</Stmt>`)
    expect(await recordsOf(file)).toMatchObject([{ booking: { day } }])
  })

  test('in camt.052 proves that the bank has a payment or batch, booked or pending, and nothing else', async () => {
    const batch = 'MMBABCDEFGHIJKLMN'
    const whole = (id: string) => ({ NtryDtls: `<NtryDtls><Btch><PmtInfId>${id}</PmtInfId></Btch></NtryDtls>` })
    const pending = { Sts: '<Sts><Cd>PDNG</Cd></Sts>' }
    const content = [
      entryOf(details(refs(ours))),
      entryOf({ ...pending, ...details(refs(ours)) }),
      entryOf(whole(batch)),
      ...[entryOf(whole('OTHER')), entryOf(), entryOf({ ...credit, ...details(refs(ours)) })],
      entryOf({ RvslInd: '<RvslInd>true</RvslInd>', ...details(refs(ours)) }),
      entryOf({ Sts: '<Sts><Cd>INFO</Cd></Sts>', ...details(refs(ours)) }),
    ]
    const balance =
      '<Bal><Tp><CdOrPrtry><Cd>CLBD</Cd></CdOrPrtry></Tp><Amt Ccy="EUR">7.05</Amt><CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>2026-03-02</Dt></Dt></Bal>'
    const file = withRoot(
      `<BkToCstmrAcctRpt>${header}<Rpt>${account}${balance}${content.join('')}</Rpt></BkToCstmrAcctRpt>`,
    )
    expect((await partsOf(file))[0]).toMatchObject({ head: { message: 'camt.052' } })
    const accepted = {
      ...{ type: 'payment', reference: ours, state: 'accepted', amount: null, entryReference: null },
      ...{ reasonCodes: [], reasonText: null },
    }
    expect(await recordsOf(file)).toEqual([
      accepted,
      accepted,
      { type: 'batch', messageId: batch, level: 'group', state: 'acknowledged', reasonCodes: [], reasonText: null },
    ])
  })
})

describe('a file', () => {
  test('records have the line where they begin', async () => {
    const lines = statementOf(`\n\n${entryOf()}\r\n${entryOf()}\n`)
    expect((await partsOf(lines)).slice(1)).toMatchObject([{ line: 4 }, { line: 5 }])
  })

  test('is read the same however it arrives, and in any of the encodings', async () => {
    const text = '<AddtlNtryInf>Überweisung nicht ausgeführt</AddtlNtryInf>'
    const file = statementOf(entryOf({ AddtlNtryInf: text }))
    const expected = await partsOf(file)
    expect(expected[1]).toMatchObject({ booking: { texts: ['Überweisung nicht ausgeführt'] } })
    for (const chunkBytes of [1, 2, 7, 1_000])
      expect(await partsOf(file, { chunkBytes }), `${chunkBytes} bytes`).toEqual(expected)
    expect(await partsOf(`\ufeff${file}`)).toEqual(expected)
    const latin1 = Buffer.from(file.replace('UTF-8', 'ISO-8859-1'), 'latin1')
    expect(await partsOf(latin1)).toEqual(expected)
    const declared = file.replace('UTF-8', 'UTF-16')
    for (const text of [`\ufeff${declared}`, declared, `\ufeff${file}`]) {
      const littleEndian = Buffer.from(text, 'utf16le')
      for (const bytes of [littleEndian, Buffer.from(littleEndian).swap16()])
        for (const chunkBytes of [1, 3, 1_000]) expect(await partsOf(bytes, { chunkBytes })).toEqual(expected)
    }
    // Converted to UTF-8, but not in its declaration.
    expect(await partsOf(declared)).toEqual(expected)
  })

  test('comments, instructions and CDATA do not change what is read', async () => {
    const odd = '<Am<!-- -->'.replace('<Am<!-- -->', '<Amt Ccy="EUR"><!-- 9 -->1<?x 9?>00<![CDATA[.00]]></Amt>')
    const file = statementOf(entryOf().replace('<Amt Ccy="EUR">100.00</Amt>', odd))
    expect(await recordsOf(file)).toMatchObject([{ amount: eur(-10_000n) }])
  })

  const deep = (levels: number) => statementOf(`${'<a>'.repeat(levels)}${'</a>'.repeat(levels)}`)
  const long = 'x'.repeat(100_000)
  const withText = (text: string) => statementOf(entryOf({ AddtlNtryInf: `<AddtlNtryInf>${text}</AddtlNtryInf>` }))
  const withAmount = (text: string) => statementOf(entryOf({ Amt: text }))
  const doctype = (content: string) => `<!DOCTYPE Document [${content}]>${statementOf('').replace(/^.*\n/, '')}`
  const laughs = Array.from({ length: 9 }, (_, i) => `<!ENTITY l${i + 1} "${`&l${i};`.repeat(10)}">`).join('')

  test.each<[string, string | Buffer, number | null, string]>([
    ['nothing', '', 1, 'The file is empty'],
    ['no XML', 'HDR1A999999', 1, 'The XML is broken'],
    ['another message', withRoot('<FIToFICstmrCdtTrf/>'), 2, 'FIToFICstmrCdtTrf is not read'],
    ['no message', '<html></html>', 1, 'holds no pain.002, camt.052, camt.053 or camt.054'],
    ['two messages', withRoot('<BkToCstmrStmt/><BkToCstmrStmt/>'), 2, 'one message'],
    [
      'no head',
      withRoot(`<BkToCstmrStmt><Stmt>${account}</Stmt></BkToCstmrStmt>`),
      null,
      'head of the message is missing',
    ],
    ['no message id', statementOf('').replace('<MsgId>M1</MsgId>', ''), 2, 'MsgId is missing'],
    ['an impossible time', statementOf('').replace('09:00:00', '99:00:00'), 2, 'is not a time'],
    ['two accounts of one statement', statementOf(account.replace('DE75', 'DE76')), 2, 'names a second account'],
    ['an entry of no account', statementOf(`</Stmt><Stmt>${entryOf()}`), 2, 'The account of the entry is missing'],
    ['a DOCTYPE', doctype(''), 1, 'A DOCTYPE is not allowed'],
    ['entities that grow', doctype(`<!ENTITY l0 "lol">${laughs}`), 1, 'A DOCTYPE is not allowed'],
    ['an external entity', doctype('<!ENTITY x SYSTEM "file:///etc/passwd">'), 1, 'A DOCTYPE is not allowed'],
    ['an endless DOCTYPE', `<!DOCTYPE ${long}`, 1, 'longer than any field'],
    ['an undeclared entity', withText('&x;'), 2, 'The XML is broken'],
    ['a surrogate', withText('&#xD800;'), 2, 'The XML is broken'],
    ['NUL', withText('\0'), 2, 'The XML is broken'],
    ['nesting', deep(50), 2, 'More than 40 nested elements'],
    ['an endless text', withText(long), 2, 'longer than any field'],
    ['an endless text that is not read', statementOf(`<Odd>${long}`), 2, 'longer than any field'],
    ['a text of many pieces', withText('<!-- -->1234567890'.repeat(1_000)), 2, 'longer than any field'],
    ['an endless tag', statementOf(`<${long}`), 2, 'longer than any field'],
    ['an endless attribute', statementOf(`<Ntry a="${long}`), 2, 'longer than any field'],
    ['an endless comment', statementOf(`<!-- ${long}`), 2, 'longer than any field'],
    ['invalid UTF-8', Buffer.concat([Buffer.from(withRoot('')), Buffer.from([0xff])]), 1, 'not in UTF-8'],
    ['half a character of UTF-16', Buffer.from(`\ufeff${withText('\ud800')}`, 'utf16le'), 1, 'not in the encoding'],
    ['an unknown encoding', statementOf('').replace('UTF-8', 'EBCDIC'), 1, 'The encoding EBCDIC is not read'],
    ['a negative amount', withAmount('-100.00'), 2, '-100.00 is not an amount'],
    ['an amount with an exponent', withAmount('1e2'), 2, '1e2 is not an amount'],
    ['an amount with a comma', withAmount('100,00'), 2, '100,00 is not an amount'],
    ['an empty amount', withAmount('.'), 2, '. is not an amount'],
    ['too large an amount', withAmount('1'.repeat(19)), 2, 'is not an amount'],
    ['more minor units than the database holds', withAmount('1'.repeat(18)), 2, 'is too large an amount'],
    ['tenths of a cent', withAmount('100.001'), 2, '100.001 has more decimals than EUR allows'],
    ['no currency', withAmount('1').replace(' Ccy="EUR"', ''), 2, 'No currency'],
    ['an odd currency', withAmount('1').replace('"EUR"', '"eur"'), 2, 'eur currency is not'],
    ['no amount', statementOf(entryOf().replace(/<Amt.*<\/Amt>/, '')), 2, 'The entry has no amount'],
    ['no direction', statementOf(entryOf({ CdtDbtInd: '' })), 2, 'CdtDbtInd is missing'],
    ['an odd direction', statementOf(entryOf({ CdtDbtInd: '<CdtDbtInd>X</CdtDbtInd>' })), 2, 'neither CRDT nor DBIT'],
    ['no status', statementOf(entryOf({ Sts: '' })), 2, 'Sts is missing'],
    [
      'no date anywhere',
      statementOf(entryOf({ BookgDt: '' })).replace(/<CreDtTm>.*<.CreDtTm>/, ''),
      2,
      'Neither the entry nor its statement has a date',
    ],
    ['an impossible day', statementOf(entryOf().replace('03-03', '02-30')), 2, '2026-02-30 is not a day'],
    ['transactions without amounts', statementOf(entryOf(details(refs(ours), refs('OTHER')))), 2, 'have no amounts'],
    ['a payment without reference', reportOf(`${group}<TxInfAndSts></TxInfAndSts>`), 2, 'OrgnlEndToEndId is missing'],
    [
      'an entry before the account',
      statementOf('').replace(account, entryOf()),
      2,
      'The account of the entry is missing',
    ],
  ])('with %s is refused with its line', async (_, file, line, message) => {
    const problem = await problemOf(partsOf(file))
    expect(problem.message).toContain(message)
    expect(problem.line).toBe(line)
  })

  test('that is cut off anywhere is refused', async () => {
    const whole = await textOf(writeNotification(answersOf([{ ...answer(7), state: 'paid' }])))
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: whole.trimEnd().length - 1 }), async end => {
        await problemOf(partsOf(whole.slice(0, end)))
      }),
      { numRuns: 100 },
    )
  })

  test('of ours that comes back is refused, not read as an answer', async () => {
    const file = await textOf(writeSepaCreditTransfer()(batchOf([someOrder])))
    expect((await problemOf(partsOf(file))).message).toContain('CstmrCdtTrfInitn is not read')
  })

  test('with changed bytes is refused or read, and breaks nothing else', async () => {
    const file = Buffer.from(await textOf(writeStatusReport(answersOf([answer(1), answer(2)]))))
    const change = fc.record({ at: fc.nat(file.length - 1), byte: fc.nat(255) })
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 8 }), async changes => {
        const changed = Buffer.from(file)
        for (const { at, byte } of changes) changed[at] = byte
        await partsOf(changed).catch(error => expect(error).toBeInstanceOf(BankFileProblem))
      }),
      { numRuns: 300 },
    )
  })

  test('is refused as soon as it is larger than its limits', async () => {
    const file = statementOf(entryOf().repeat(100))
    const tooManyBytes = await problemOf(partsOf(file, { limits: { bytesMax: 1_000, recordsMax: 100 } }))
    expect(tooManyBytes.message).toContain('The file is larger than 1000 bytes')
    const tooManyRecords = await problemOf(partsOf(file, { limits: { bytesMax: 1e6, recordsMax: 99 } }))
    expect(tooManyRecords.message).toContain('The file has more than 99 records')
    expect(await partsOf(file, { limits: { bytesMax: 1e6, recordsMax: 100 } })).toHaveLength(101)
  })

  const marker = '<Here/>'
  test.each([
    ['entries', statementOf(marker), entryOf(details(refs(ours)))],
    ['transactions of one entry', statementOf(entryOf(details(refs(ours) + marker))), `</TxDtls><TxDtls>${refs(ours)}`],
    [
      'reasons',
      reportOf(`${group}<TxInfAndSts><OrgnlInstrId>1</OrgnlInstrId>${marker}</TxInfAndSts>`),
      '<StsRsnInf><AddtlInf>abc</AddtlInf></StsRsnInf>',
    ],
    ['other elements', statementOf(marker), '<Odd>    </Odd>\n'],
  ])('with endless %s is read in flat memory', async (_, file, repeated) => {
    const [before = '', after = ''] = file.split(marker)
    const block = Buffer.from(repeated.repeat(Math.ceil(100_000 / repeated.length)))
    const blocks = extent({ short: 20, long: 80 })
    let heldMb = Number.POSITIVE_INFINITY
    async function* bytes() {
      yield Buffer.from(before)
      yield block
      const startMb = usedMb()
      for (let count = 0; count < blocks; count++) yield block
      heldMb = usedMb() - startMb
      yield Buffer.from(after)
    }
    for await (const _ of readBankFile(bytes(), { bytesMax: 1e9, recordsMax: 1e9 }));
    // Keeping the records would take several times as much memory as the file.
    expect(heldMb).toBeLessThan(blocks / 40)
  })
})

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

function usedMb(): number {
  collectGarbage()
  return process.memoryUsage().heapUsed / 1e6
}

const answer = (number: number): Answer => ({
  ...{ reference: `MMAAAAAAAAAAAAA${'ABCDEFGH'[number]}`, amount: 1_999n, state: 'failed' },
  ...{ reasonCode: 'AC04', reasonText: null },
})

async function problemOf(read: Promise<unknown>): Promise<BankFileProblem> {
  const problem = await read.catch((error: unknown) => error)
  if (!(problem instanceof BankFileProblem)) throw new Error(`It was not refused: ${String(problem)}`)
  return problem
}
