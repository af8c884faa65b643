import * as auditLog from '../audit-log/audit-log.ts'
import { type BankAccount, lastFour } from '../bank-accounts/rules.ts'
import type { Db } from '../database/database.ts'
import { allToWire, type Currency } from '../kernel/money.ts'
import { detachedUntil } from '../ledger/detached.ts'
import * as memberImports from '../member-imports/inspection.ts'
import * as members from '../members/members.ts'
import * as metadata from '../metadata/metadata.ts'
import { listSessions } from '../partners/member-sessions.ts'
import { lineBody } from '../statements/schema.ts'
import { listCurrencies, listCycleSums, readStatement } from '../statements/statement.ts'
import { detailsBody } from '../withdrawals/bodies.ts'
import * as intents from '../withdrawals/intents.ts'
import { statuses } from '../withdrawals/lifecycle.ts'
import { statusAt } from '../withdrawals/rules.ts'
import * as withdrawals from '../withdrawals/withdrawals.ts'

// Rows read per query.
const rowsAtOnce = 200

type Asked = {
  partner: { id: string; name: string }
  memberId: string
  /** Whether the member reads it, whose browser gets no whole account. */
  isOwn: boolean
  bankOf: (currency: Currency) => 'simulated' | 'connected' | null
  now: Date
}

/** One part of an export: one value, or rows that are read page by page. */
export type Section = { name: string; value: unknown } | { name: string; pages: AsyncIterable<unknown[]> }

/**
 * Everything about one person, for the right of access (GDPR art. 15). The profile is read at once, so that a member who does not
 * exist is refused before the response begins; the rest as the response is read. It is not one snapshot.
 * @throws Problem `MemberNotFound`, also for another partner's member
 */
export async function openExport(db: Db, asked: Asked): Promise<Section[]> {
  const { partner, memberId, now } = asked
  const of = { partnerId: partner.id, memberId }
  return [
    { name: 'generatedAt', value: now },
    { name: 'employer', value: partner.name },
    { name: 'profile', value: await profileOf(db, asked) },
    { name: 'statementSince', value: await detachedUntil(db) },
    { name: 'payCycles', pages: payCycles(db, of) },
    { name: 'statement', pages: statement(db, { ...of, now }) },
    { name: 'intents', pages: intentsOf(db, asked) },
    { name: 'withdrawals', pages: withdrawalsOf(db, asked) },
    { name: 'imports', pages: memberImports.listStepsOf(db, of) },
    { name: 'auditEntries', pages: auditEntries(db, asked) },
    { name: 'sessions', pages: once(() => listSessions(db, of)) },
  ]
}

async function profileOf(db: Db, { partner, memberId, isOwn }: Asked) {
  const of = { partnerId: partner.id, memberId }
  const member = await members.find(db, of)
  const { id, ...profile } = member
  const found = await metadata.find(db, { partnerId: partner.id, resourceId: memberId })
  const { reviewReason, ...own } = await members.findRecord(db, of)
  return {
    ...{ memberId: id, ...profile, ...shown(member.accountDetails, isOwn), metadata: found, ...own },
    // A review may look into a fraud, so the member is not warned.
    reviewReason: isOwn ? null : reviewReason,
  }
}

const shown = (account: BankAccount | null, isOwn: boolean) => ({
  accountDetails: isOwn ? null : account,
  lastFour: account === null ? null : lastFour(account),
})

type OfMember = members.OfMember

async function* payCycles(db: Db, of: OfMember) {
  yield (await listCycleSums(db, of)).map(({ currency, available, owed, ...sum }) => ({
    ...sum,
    ...allToWire({ available, owed }, currency),
  }))
}

async function* statement(db: Db, { now: asOf, ...of }: OfMember & { now: Date }) {
  for (const currency of await listCurrencies(db, of)) {
    for (let last: string | undefined; ; ) {
      const cursor = last === undefined ? undefined : ({ side: 'after', id: last } as const)
      const page = { skip: 0, take: rowsAtOnce }
      const { lines, hasMore } = await readStatement(db, { ...of, currency, asOf, page, cursor })
      yield lines.map(line => lineBody(line, currency))
      last = lines.at(-1)?.id
      if (!hasMore || last === undefined) break
    }
  }
}

async function* intentsOf(db: Db, { partner, memberId, isOwn, now }: Asked) {
  const { createdAt: since } = await members.findRecord(db, { partnerId: partner.id, memberId })
  for await (const ids of intents.listUnusedIds(db, { partnerId: partner.id, memberId, since, now })) {
    const page: unknown[] = []
    for (const intentId of ids) {
      const intent = await intents.find(db, { partnerId: partner.id, intentId })
      const { currency, grossAmount: amount, netAmount, fee, tier, createdAt, expiresAt } = intent
      page.push({
        ...{ withdrawalIntentId: intentId, status: statusAt(intent, now), tier },
        ...allToWire({ amount, netAmount, fee }, currency),
        ...shown(intent.account, isOwn),
        ...{ createdAt, expiresAt },
      })
    }
    yield page
  }
}

async function* withdrawalsOf(db: Db, { partner, memberId, isOwn, bankOf }: Asked) {
  const partnerId = partner.id
  for await (const ids of idsOfWithdrawals(db, { partnerId, memberId })) {
    const details = await withdrawals.findAll(
      db,
      ids.map(withdrawalId => ({ partnerId, withdrawalId })),
    )
    yield ids.flatMap(id => {
      const withdrawal = details.get(id)
      if (withdrawal === undefined) return []
      return [{ withdrawal: detailsBody(withdrawal, { bankOf }), accountDetails: isOwn ? null : withdrawal.account }]
    })
  }
}

async function* idsOfWithdrawals(db: Db, { partnerId, memberId }: OfMember): AsyncGenerator<string[]> {
  const filter = { memberId, statuses: [...statuses] }
  for (let last: string | undefined; ; ) {
    const cursor = last === undefined ? undefined : ({ side: 'after', id: last } as const)
    const page = { skip: 0, take: rowsAtOnce }
    const ids = (await withdrawals.list(db, { partnerId, filter, page, cursor })).map(({ id }) => id)
    if (ids.length > 0) yield ids
    last = ids.at(-1)
    if (ids.length < rowsAtOnce) return
  }
}

/**
 * Those of the member and of the member's withdrawals. Names and addresses of actors are not the person's data. Members are not told of
 * reviews, nor by their end.
 */
async function* auditEntries(db: Db, { partner: { id: partnerId }, memberId, isOwn }: Asked) {
  const bodies = (entries: auditLog.Entry[]) =>
    entries
      .filter(({ action }) => !isOwn || action !== 'member.release')
      .map(({ at, action, actorKind: by, details }) => ({ at, action, by, details }))
  for await (const entries of auditLog.listAll(db, { partnerId, resourceId: memberId })) yield bodies(entries)
  for await (const resourceIds of idsOfWithdrawals(db, { partnerId, memberId }))
    for await (const entries of auditLog.listAll(db, { partnerId, resourceIds })) yield bodies(entries)
}

async function* once<Row>(read: () => Promise<Row[]>): AsyncGenerator<Row[]> {
  yield await read()
}

/** The export as JSON, as it is read. */
export async function* jsonOf(sections: readonly Section[]): AsyncGenerator<string> {
  for (const [index, section] of sections.entries()) {
    yield `${index === 0 ? '{' : ','}${JSON.stringify(section.name)}:`
    if ('value' in section) {
      yield JSON.stringify(section.value)
      continue
    }
    let separator = '['
    for await (const rows of section.pages)
      for (const row of rows) {
        yield separator + JSON.stringify(row)
        separator = ','
      }
    yield separator === '[' ? '[]' : ']'
  }
  yield '}'
}
