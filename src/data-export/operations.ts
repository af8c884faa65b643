import type { Db } from '../database/database.ts'
import { type Call, consoleOperation, type Download, named, operation } from '../http/operation.ts'
import { strictObject } from '../kernel/schemas.ts'
import { RevealReason } from '../members/schema.ts'
import { payroll } from '../users/roles.ts'
import { jsonOf, openExport } from './export.ts'
import { pageOf } from './page.ts'
import { DataExport } from './schema.ts'

const success = {
  description: 'The data, by section.',
  schema: DataExport,
  html: { description: 'The same as a page to read, save and print.', example: '<!doctype html>…' },
} as const

const exportMemberData = operation({
  route: 'GET /v1/members/:memberId/data-export',
  mayReadReplica: true,
  scope: 'members:read',
  roles: 'keysOnly',
  sdk: 'members.exportData',
  tag: 'Members',
  summary: 'Export everything about a member',
  description:
    'For a request of access (GDPR art. 15): profile, balances, statement, intents, withdrawals with their payments, lists that named the member, the audit log about the member, and sessions. With `accept: text/html`, a page that a person can read. Changes while it is read may be missing. Each export is in the audit log.',
  success,
  async run(call, { source, download }) {
    return download(await exportOf(call, await source(), { memberId: call.params.memberId, isOwn: false }))
  },
})

const exportOwnData = operation({
  route: 'GET /v1/me/data-export',
  mayReadReplica: true,
  session: 'read',
  tag: 'Member sessions',
  summary: 'Export everything about the member',
  description:
    'Like `exportMemberData`, for the member. Accounts are shown by their last four characters; the employer has the whole numbers. With `accept: text/html`, a page to read, save and print.',
  success,
  async run(call, { source, download }) {
    return download(await exportOf(call, await source(), { memberId: call.memberSession.memberId, isOwn: true }))
  },
})

/** The page, unmasked, for a person in the console who gives a reason. */
const exportMemberPage = consoleOperation({
  route: 'POST /console/v1/members/:memberId/data-export',
  mayReadReplica: true,
  console: 'user',
  roles: payroll,
  body: strictObject({ reason: RevealReason }),
  async run(call, { source, download }) {
    const { params, body } = call
    return download(
      await exportOf(call, await source(), { memberId: params.memberId, isOwn: false, reason: body.reason }),
    )
  },
})

export const dataExportOperations = named({ exportMemberData, exportOwnData, exportMemberPage })

async function exportOf(
  { partner, now, context, prefersHtml }: Call,
  db: Db,
  { memberId, isOwn, reason }: { memberId: string; isOwn: boolean; reason?: string },
): Promise<Download> {
  const sections = await openExport(db, { partner, memberId, isOwn, bankOf: context.bankOf, now })
  const isPage = prefersHtml || reason !== undefined
  const type = isPage ? 'text/html' : 'application/json'
  return {
    headers: {
      'content-type': `${type}; charset=utf-8`,
      // Nothing in the page runs or loads.
      'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    },
    parts: isPage ? pageOf(sections) : jsonOf(sections),
    disclosed: { action: 'member.data_export', resourceId: memberId, details: { count: 1, isOwn, reason } },
  }
}
