import { randomBytes } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import type { CopyInto } from '../database/copy.ts'
import { sql, type Tx } from '../database/database.ts'
import { lockByName } from '../database/named-locks.ts'
import { problem } from '../kernel/errors.ts'
import * as memberImports from '../member-imports/member-imports.ts'
import * as members from '../members/members.ts'
import type { Partner } from '../partners/partners.ts'
import { csvLines } from '../tabular/tabular.ts'
import type { Tier } from '../tiers/rules.ts'

/** The transitions of a member import that a partner can request, with their causes. */
export const importTransitions = {
  'new > AwaitingReview': 'A file that offboards more members than the caller agreed to waits for a review.',
  'new > Processing': 'A batch of actions is accepted.',
  'new > NotReady': 'Actions are queued behind a file that waits for a review.',
  'AwaitingReview > Processing': 'A file is approved.',
  'AwaitingReview > Rejected': 'A file is rejected.',
  'NotReady > Processing': 'The job ahead of queued actions ends.',
  'NotReady > AwaitingReview': 'The job ahead of a queued file ends.',
  'NotReady > Rejected': 'Queued actions are rejected.',
  'Processing > Completed': 'Actions are applied.',
  'Processing > Rejected': 'Actions become invalid before they are applied.',
} as const
export type ImportTransition = keyof typeof importTransitions

export function isImportTransition(name: string): name is ImportTransition {
  return name in importTransitions
}

/** The parts of a file upload: where its body is kept, and how its rows are copied in the transaction. */
type Upload = { openFile: () => Promise<FileHandle>; copyInto: CopyInto }

const pageSize = 1_000

type ProvokedTransition = { partner: Partner; tier: Tier; transition: ImportTransition; upload: Upload; now: Date }

/**
 * Creates imports by the operations that partners use, so that the worker, or this function, takes a job through the transition. The jobs
 * change only a member that is created for the purpose. Imports that wait for a review or are queued are rejected first.
 * @returns the import that goes through the transition
 * @throws Problem `Conflict` while an import is being applied
 */
export async function provokeImportTransition(
  tx: Tx,
  { partner, tier, transition, upload, now }: ProvokedTransition,
): Promise<string> {
  const partnerId = partner.id
  await takeTurns(tx, partnerId)
  await rejectWaiting(tx, { partnerId, now })
  const email = () => `test-value-${randomBytes(6).toString('hex')}@example.com`
  const invite = async (address: string) => {
    const body = { email: address, firstName: 'Sam', lastName: 'Okafor', tier: tier.name }
    return (await members.invite(tx, { partner: { ...partner, autoActivate: true }, body, now })).id
  }
  const memberId = await invite(email())
  const actions = async () => {
    const change = { type: 'Update' as const, memberId, firstName: 'Samuel' }
    return (await memberImports.createFromActions(tx, { partner, actions: [change], now })).importId
  }
  const file = () => fileWithout(tx, { partner, memberId, upload, now })
  const reject = (importId: string) => memberImports.review(tx, { partnerId, importId, to: 'Rejected', now })

  switch (transition) {
    case 'new > AwaitingReview':
      return await file()
    case 'new > Processing':
    case 'Processing > Completed':
      return await actions()
    case 'new > NotReady': {
      await file()
      return await actions()
    }
    case 'AwaitingReview > Processing': {
      const importId = await file()
      await memberImports.review(tx, { partnerId, importId, to: 'Processing', now })
      return importId
    }
    case 'AwaitingReview > Rejected': {
      const importId = await file()
      await reject(importId)
      return importId
    }
    case 'NotReady > Processing': {
      const ahead = await file()
      const importId = await actions()
      await reject(ahead)
      return importId
    }
    case 'NotReady > AwaitingReview': {
      await actions()
      return await file()
    }
    case 'NotReady > Rejected': {
      const ahead = await file()
      const importId = await actions()
      await reject(importId)
      await reject(ahead)
      return importId
    }
    case 'Processing > Rejected': {
      const taken = email()
      const add = { type: 'Add' as const, email: taken, firstName: 'Sam', lastName: 'Okafor', tier: tier.name }
      const { importId } = await memberImports.createFromActions(tx, { partner, actions: [add], now })
      await invite(taken)
      return importId
    }
    default:
      return transition satisfies never
  }
}

// Otherwise two concurrent transitions would queue their imports behind each other’s.
async function takeTurns(tx: Tx, partnerId: string): Promise<void> {
  await lockByName(tx, 'provoked member imports of', partnerId)
}

// Newest first: a queued import is rejected before the import ahead of it, which it would otherwise follow.
async function rejectWaiting(tx: Tx, { partnerId, now }: { partnerId: string; now: Date }): Promise<void> {
  const { rows } = await sql<{ id: string; status: memberImports.MemberImport['status'] }>`
    select id, status from member_imports
     where partner_id = ${partnerId} and ended_at is null order by id desc`.execute(tx)
  if (rows.some(({ status }) => status === 'Processing'))
    throw problem('Conflict', 'A member job is being applied; try again when it has ended', {}, { 'retry-after': '1' })
  for (const { id } of rows) await memberImports.review(tx, { partnerId, importId: id, to: 'Rejected', now })
}

type FileOfOthers = { partner: Partner; memberId: string; upload: Upload; now: Date }

/** Uploads the list of all members as they are, except for one, whose offboarding has to be approved. */
async function fileWithout(
  tx: Tx,
  { partner, memberId, upload: { openFile, copyInto }, now }: FileOfOthers,
): Promise<string> {
  const lines = [['email', 'first_name', 'last_name', 'phone', 'tier']]
  for (let skip = 0; ; skip += pageSize) {
    const page = await members.list(tx, { partnerId: partner.id, filter: {}, page: { skip, take: pageSize } })
    for (const { id, status, email, firstName, lastName, phone, tier } of page) {
      if (id !== memberId && status !== 'inactive') lines.push([email, firstName, lastName, phone ?? '', tier])
    }
    if (page.length < pageSize) break
  }
  const handle = await openFile()
  try {
    await handle.writeFile(csvLines(lines))
    const file = { fd: handle.fd, kind: 'csv' as const, removesAccounts: false, offboardMax: 0 }
    const signal = new AbortController().signal
    return (await memberImports.createFromFile(tx, { partner, file, copyInto, signal, now })).importId
  } finally {
    await handle.close()
  }
}
