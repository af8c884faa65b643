import { cursorOf, cursorQuery, pageOf, pageQuery, refuseSkipWith } from '../contract/list.ts'
import type { Db, Tx } from '../database/database.ts'
import { csvHeaders } from '../http/bodies/csv.ts'
import { maskProfile } from '../http/masked-accounts.ts'
import { named, type Operation, type OperationResponse, operationWith } from '../http/operation.ts'
import { strictObject } from '../kernel/schemas.ts'
import { type Column, columns } from '../members/fields.ts'
import { fileCells } from '../members/rows.ts'
import { csvLines } from '../tabular/tabular.ts'
import { payroll, staff } from '../users/roles.ts'
import * as memberImports from './member-imports.ts'
import { countResults, listResults, type Result } from './results.ts'
import {
  ActionsQuery,
  FileQuery,
  MemberJob,
  MemberJobCreated,
  MemberJobResults,
  MemberJobs,
  NewMemberJob,
  Preview,
  ResultsQuery,
} from './schema.ts'

const operation = operationWith({ tag: 'Member jobs' })

// 10,000 members with every field set.
const bodyBytesMax = 16 * 1024 * 1024

// Results read per query while streaming the CSV.
const rowsAtOnce = 2_000

const created = {
  status: 202,
  description: 'The job was accepted; the worker applies it.',
  schema: MemberJobCreated,
} as const
const preview = {
  description: 'With `dryRun=true`: what the job would do. Nothing is changed.',
  schema: Preview,
} as const

const createJob = operation({
  route: 'POST /v1/members/jobs',
  scope: 'members:write',
  roles: payroll,
  sdk: 'memberJobs.create',
  bodyBytesMax,
  // 10,000 actions take seconds on a busy machine.
  answerMsMax: 30_000,
  summary: 'Change many members',
  description:
    'Applies up to 10,000 actions atomically, in the given order. `Add` has the rules of `inviteMember`, `Replace` of `replaceMember`, `Update` of `updateMember` and `Offboard` of `removeMember`. Each action sees the effect of the actions before it. If any action is invalid, no job is created and the response lists the issues (at most 1,000). If an action becomes invalid before the worker applies the job, the job ends as `Rejected` and nothing is changed. Jobs run one at a time per partner: while another job is unfinished, a new one is queued (`NotReady`). A queued job may contain an e-mail or `workerId` that belongs to another member, because a job ahead of it may free it; this is checked again when the job is applied. With 100 jobs queued, the request fails with `Conflict`.',
  query: ActionsQuery,
  body: NewMemberJob,
  success: created,
  alternative: preview,
  problems: ['InvalidAddMemberPayload', 'InvalidUpdateMemberPayload', 'InvalidRemoveMemberPayload'],
  async write(tx, { partner, query, body: { actions }, now }) {
    return await respond(tx, {
      partner,
      isDryRun: query.dryRun,
      kind: 'actions',
      create: () => memberImports.createFromActions(tx, { partner, actions, now }),
    })
  },
})

const createJobFromCsv = uploadOperation({
  route: 'PUT /v1/members/jobs/csv',
  sdk: 'memberJobs.createFromFile',
  summary: 'Upload the complete list of members',
  removesAccounts: false,
  ofAccounts: 'An empty bank account in the file leaves the member’s account unchanged.',
})

const createJobFromCsvV2 = uploadOperation({
  route: 'PUT /v2/members/jobs/csv',
  sdk: 'memberJobs.createFromFileV2',
  summary: 'Upload the complete list of members, including bank accounts',
  removesAccounts: true,
  ofAccounts: 'An empty bank account in the file removes the member’s account.',
})

const getJobs = operation({
  route: 'GET /v1/members/jobs',
  scope: 'members:read',
  roles: staff,
  sdk: 'memberJobs.list',
  summary: 'List member jobs',
  description: 'Newest first. If `after` or `before` is unknown, the response is `NotFound`.',
  query: strictObject({ ...pageQuery, ...cursorQuery('memberJob') }),
  success: { description: 'One page of jobs.', schema: MemberJobs },
  problems: ['NotFound'],
  async read(reader, { partner: { id: partnerId }, query }) {
    const page = pageOf(query)
    const imports = await memberImports.list(reader, { partnerId, page, cursor: cursorOf(query) })
    const total = await memberImports.count(reader, partnerId)
    return { body: { jobs: imports.map(jobBody), total, ...page } }
  },
})

const getJob = operation({
  route: 'GET /v1/members/jobs/:jobId',
  scope: 'members:read',
  roles: staff,
  sdk: 'memberJobs.get',
  summary: 'Get a member job',
  success: { description: 'The job and its progress.', schema: MemberJob },
  async read(reader, { partner, params: { jobId } }) {
    return { body: jobBody(await memberImports.find(reader, { partnerId: partner.id, importId: jobId })) }
  },
})

const approveJob = reviewOperation({
  verb: 'approve',
  summary: 'Approve a member job',
  description:
    'Approves a job that is waiting for review. The job offboards the members that its results name, but no members that were added later. Idempotent; a job that is queued or rejected is a `Conflict`.',
  to: 'Processing',
})

const rejectJob = reviewOperation({
  verb: 'reject',
  summary: 'Reject a member job',
  description:
    'Rejects a job that is queued or waiting for review. None of its changes are applied. Idempotent; a job that is already running or completed is a `Conflict`.',
  to: 'Rejected',
})

const getJobResults = operation({
  route: 'GET /v1/members/jobs/:jobId/results',
  scope: 'members:read',
  roles: staff,
  sdk: { json: 'memberJobs.listResults', file: 'memberJobs.exportResults' },
  summary: 'Get the results of a member job',
  description:
    'Planned and applied changes, in the order of the file or the actions; members missing from the file come last. With `accept: text/csv`, returns all matching results as a file with the outcome added, ignoring `skip` and `take`; cells that a spreadsheet would read as a formula are prefixed with an apostrophe. Results are kept for some time after the job ends: 30 days, unless the operator has set another number.',
  query: ResultsQuery,
  success: {
    description: 'The number of planned changes by kind, and one page of results.',
    schema: MemberJobResults,
    csv: {
      description: 'The columns of the file as they were read, and the outcome of each row.',
      example:
        "row,action,outcome,member_id,message,email,first_name,last_name,phone,tier\r\n2,Invite,Done,mem_01kah4pzc5e4r8v2m6t0x9y3bd,,sam.okafor@example.com,Sam,Okafor,'+447700900123,Bronze\r\n",
    },
  },
  async run(call, { read, download }) {
    const { partner, params, query, context } = call
    const { skip, take: _take, after, ...filter } = query
    const asked = { partnerId: partner.id, importId: params.jobId, filter }
    if (call.prefersCsv) {
      const { columns } = await memberImports.find(context.db, asked)
      const headers = csvHeaders(`${asked.importId}.csv`)
      const isMasked = call.user !== undefined
      const parts = csvOf(context.db, asked, { columns, isMasked })
      if (isMasked || !columns.some(isDisclosed)) return download({ headers, parts })
      const details = { count: await countResults(context.db, asked), filter }
      return download({
        headers,
        parts,
        disclosed: { action: 'member_job.export', resourceId: asked.importId, details },
      })
    }
    return await read(async reader => {
      const page = pageOf(query)
      const { plan, id: jobId } = await memberImports.find(reader, asked)
      refuseSkipWith({ skip, after })
      const results = await listResults(reader, { ...asked, after, page })
      const total = await countResults(reader, asked)
      return { body: { jobId, plan, results: results.map(resultBody), total, ...page } }
    })
  },
})

export const memberImportOperations = named({
  createJob,
  createJobFromCsv,
  createJobFromCsvV2,
  getJobs,
  getJob,
  approveJob,
  rejectJob,
  getJobResults,
})

/** An upload of the complete list of members. */
function uploadOperation({
  removesAccounts,
  ofAccounts,
  ...names
}: {
  route: `PUT /${string}`
  summary: string
  sdk: string
  removesAccounts: boolean
  ofAccounts: string
}) {
  return operation({
    ...names,
    scope: 'members:write',
    roles: payroll,
    description: `Synchronises the members with a file that lists all of them: new members are invited, changed members are updated, offboarded members are reinstated, and **members missing from the file are offboarded**. If it would offboard more than the partner’s limit (10 % of the members unless the operator has set another share), the job waits for approval. ${ofAccounts} Columns that are absent change nothing. If any row is invalid, no job is created: the response has one issue for each of the first 1,000 invalid rows and one with the number of the others. Changes made to a member after the file was sent take precedence over the file. Jobs run one at a time per partner: while another job is unfinished, the file is queued (\`NotReady\`) and compared with the members as the earlier jobs leave them, so it overrides every job that was sent before it. With 5 files queued, the request fails with \`Conflict\`. See docs/guides/import-members.md.`,
    query: FileQuery,
    fileBody: {
      name: 'MembersFile',
      description: `CSV (UTF-8; comma, semicolon or tab) or an Excel sheet, with a header. Columns: ${columns.map(name => `\`${name}\``).join(', ')}; the first five are required. At most 100 MiB and 1,000,000 rows.`,
      example: `${columns.slice(0, 5).join(',')}\r\nsam.okafor@example.com,Sam,Okafor,+447700900123,Bronze\r\n`,
    },
    success: created,
    alternative: preview,
    problems: ['FileContent'],
    async run(call, { write }) {
      const { partner, query, file: uploaded, now, signal } = call
      const { withCopying } = call.context
      return await uploaded.lend(fd =>
        withCopying((copyingDb, copyInto) =>
          write(async tx => {
            const file = { fd, kind: uploaded.tableKind, removesAccounts, offboardMax: query.offboardMax }
            return await respond(tx, {
              partner,
              isDryRun: query.dryRun,
              kind: 'file',
              create: () => memberImports.createFromFile(tx, { partner, file, copyInto, signal, now }),
            })
          }, copyingDb),
        ),
      )
    },
  })
}

function reviewOperation({
  verb,
  to,
  ...texts
}: Pick<Operation, 'summary' | 'description'> & { verb: 'approve' | 'reject'; to: 'Processing' | 'Rejected' }) {
  return operation({
    route: `POST /v1/members/jobs/:jobId/${verb}`,
    scope: 'members:write',
    roles: payroll,
    sdk: `memberJobs.${verb}`,
    ...texts,
    success: { description: 'The current state of the job.', schema: MemberJob },
    async write(tx, { partner, params: { jobId }, now }) {
      const { memberImport, isRepeated } = await memberImports.review(tx, {
        partnerId: partner.id,
        importId: jobId,
        to,
        now,
      })
      const details = { plan: memberImport.plan }
      const audit = isRepeated ? undefined : ({ action: `member_job.${verb}`, details } as const)
      return { body: jobBody(memberImport), resourceId: jobId, audit }
    },
  })
}

async function respond(
  tx: Tx,
  {
    partner,
    isDryRun,
    kind,
    create,
  }: {
    partner: { id: string }
    isDryRun: boolean | undefined
    kind: 'actions' | 'file'
    create: () => Promise<memberImports.Created>
  },
): Promise<OperationResponse> {
  if (isDryRun) return { status: 200, body: await memberImports.preview(tx, { partnerId: partner.id, create }) }
  const { importId, plan, needsReview } = await create()
  const audit = { action: 'member_job.create', details: { kind, plan, needsReview } } as const
  return { body: { jobId: importId }, resourceId: importId, audit }
}

function jobBody({ id, status, steps: total, stepsDone, createdAt }: memberImports.MemberImport) {
  return {
    id,
    progress: {
      type: status,
      totalActions: total,
      totalComplete: stepsDone,
      totalProcessing: status === 'Processing' ? total - stepsDone : 0,
    },
    createdAt,
  }
}

function resultBody({ step, row, action, outcome, memberId, email, message }: Result) {
  return { step, row: row === null ? null : String(row), action, outcome, memberId, email, message }
}

// As in a list of members.
const isDisclosed = (column: Column) => ['account_number', 'iban', 'dob'].includes(column)

async function* csvOf(
  db: Db,
  asked: { partnerId: string; importId: string; filter: object },
  { columns, isMasked }: { columns: readonly Column[]; isMasked: boolean },
): AsyncGenerator<string> {
  const header = ['row', 'action', 'outcome', 'member_id', 'message', ...columns]
  yield csvLines([header])
  for (let after = 0; ; ) {
    const results = await listResults(db, { ...asked, after, page: { skip: 0, take: rowsAtOnce } })
    const last = results.at(-1)
    if (last === undefined) return
    after = last.step
    yield csvLines(
      results.map(result => [
        ...[result.row === null ? '' : String(result.row), result.action, result.outcome],
        ...[result.memberId ?? '', result.message ?? ''],
        ...fileCells(isMasked ? maskProfile(result) : result, columns),
      ]),
    )
  }
}
