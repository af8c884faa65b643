import { type Static, Type } from 'typebox'
import { cursorOf, cursorQuery, pageOf, pageQuery, refuseSkipWith } from '../contract/list.ts'
import type { Db, Tx } from '../database/database.ts'
import { disconnectSignal } from '../http/bodies/body-timeouts.ts'
import { prefersCsv, sendCsv } from '../http/bodies/csv.ts'
import { acceptUploads } from '../http/bodies/upload.ts'
import type { UploadedFile } from '../http/bodies/uploaded-file.ts'
import { operation } from '../http/described-route.ts'
import type { ApiContext, App } from '../http/server/server.ts'
import { type Answer, read, withIdempotency } from '../http/with-idempotency.ts'
import { Id } from '../kernel/ids.ts'
import { type Column, columns } from '../members/fields.ts'
import { fileCells } from '../members/rows.ts'
import { csvLines } from '../tabular/tabular.ts'
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

const tag = 'Member jobs'
const params = Type.Object({ jobId: Id('memberJob') })

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
  status: 200,
  description: 'With `dryRun=true`: what the job would do. Nothing is changed.',
  schema: Preview,
} as const

export function memberImportRoutes(app: App, { db, withCopying }: ApiContext): void {
  app.post(
    '/v1/members/jobs',
    {
      bodyLimit: bodyBytesMax,
      // 10,000 actions take seconds on a busy machine.
      config: { scope: 'members:write', answerMsMax: 30_000 },
      schema: operation({
        id: 'createJob',
        tag,
        summary: 'Change many members',
        description:
          'Applies up to 10,000 actions atomically, in the given order. `Add` has the rules of `inviteMember`, `Replace` of `replaceMember`, `Update` of `updateMember` and `Offboard` of `removeMember`. Each action sees the effect of the actions before it. If any action is invalid, no job is created and the response lists the issues (at most 1,000). If an action becomes invalid before the worker applies the job, the job ends as `Rejected` and nothing is changed. Jobs run one at a time per partner: while another job is unfinished, a new one is queued (`NotReady`). A queued job may contain an e-mail or `workerId` that belongs to another member, because a job ahead of it may free it; this is checked again when the job is applied. With 100 jobs queued, the request fails with `Conflict`.',
        query: ActionsQuery,
        body: NewMemberJob,
        success: created,
        alternative: preview,
        problems: ['InvalidAddMemberPayload', 'InvalidUpdateMemberPayload', 'InvalidRemoveMemberPayload'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { partner, body, now, query } = request
        return await answerTo(tx, { partner, query, kind: 'actions' }, () =>
          memberImports.createFromActions(tx, { partner, actions: body.actions, now }),
        )
      }),
  )

  // A separate scope, since only these operations take files.
  app.register(async (scope: App) => {
    acceptUploads(scope)
    for (const { version, id, summary, removesAccounts, ofAccounts } of uploads) {
      scope.put(
        `/${version}/members/jobs/csv`,
        {
          config: { scope: 'members:write' },
          schema: operation({
            id,
            tag,
            summary,
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
          }),
        },
        async (request, reply) => {
          // The scope's content type parser always produces an UploadedFile.
          const uploaded = request.body as UploadedFile
          return await uploaded.lend(fd =>
            withCopying((copyingDb, copyInto) =>
              withIdempotency(copyingDb, request, reply, async tx => {
                const { partner, now } = request
                const query = request.query as Static<typeof FileQuery>
                const file = { fd, kind: uploaded.tableKind, removesAccounts, offboardMax: query.offboardMax }
                return await answerTo(tx, { partner, query, kind: 'file' }, () =>
                  memberImports.createFromFile(tx, { partner, file, copyInto, signal: disconnectSignal(reply), now }),
                )
              }),
            ),
          )
        },
      )
    }
  })

  app.get(
    '/v1/members/jobs',
    {
      config: { scope: 'members:read' },
      schema: operation({
        id: 'getJobs',
        tag,
        summary: 'List member jobs',
        description: 'Newest first. If `after` or `before` is unknown, the response is `NotFound`.',
        query: Type.Object({ ...pageQuery, ...cursorQuery('memberJob') }, { additionalProperties: false }),
        success: { status: 200, description: 'One page of jobs.', schema: MemberJobs },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const partnerId = request.partner.id
        const page = pageOf(request.query)
        const imports = await memberImports.list(reader, { partnerId, page, cursor: cursorOf(request.query) })
        const total = await memberImports.count(reader, partnerId)
        return { status: 200, body: { jobs: imports.map(jobBody), total, ...page } }
      }),
  )

  app.get(
    '/v1/members/jobs/:jobId',
    {
      config: { scope: 'members:read' },
      schema: operation({
        id: 'getJob',
        tag,
        summary: 'Get a member job',
        params,
        success: { status: 200, description: 'The job and its progress.', schema: MemberJob },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const memberImport = await memberImports.find(reader, {
          partnerId: request.partner.id,
          importId: request.params.jobId,
        })
        return { status: 200, body: jobBody(memberImport) }
      }),
  )

  for (const { verb, action, summary, description, decide } of reviews) {
    app.post(
      `/v1/members/jobs/:jobId/${verb}`,
      {
        config: { scope: 'members:write' },
        schema: operation({
          id: `${verb}Job`,
          tag,
          summary,
          description,
          params,
          success: { status: 200, description: 'The current state of the job.', schema: MemberJob },
          problems: ['NotFound'],
        }),
      },
      async (request, reply) =>
        withIdempotency(db, request, reply, async tx => {
          const { partner, now, params } = request
          const { jobId } = params as { jobId: string }
          const { memberImport, isRepeated } = await decide(tx, { partnerId: partner.id, importId: jobId, now })
          const audit = isRepeated ? undefined : { action, details: { plan: memberImport.plan } }
          return { status: 200, body: jobBody(memberImport), resourceId: jobId, audit }
        }),
    )
  }

  app.get(
    '/v1/members/jobs/:jobId/results',
    {
      config: { scope: 'members:read' },
      schema: operation({
        id: 'getJobResults',
        tag,
        summary: 'Get the results of a member job',
        description:
          'Planned and applied changes, in the order of the file or the actions; members missing from the file come last. With `accept: text/csv`, returns all matching results as a file with the outcome added, ignoring `skip` and `take`; cells that a spreadsheet would read as a formula are prefixed with an apostrophe. Results are kept for 30 days after the job ends.',
        params,
        query: ResultsQuery,
        success: {
          status: 200,
          description: 'The number of planned changes by kind, and one page of results.',
          schema: MemberJobResults,
          csv: {
            description: 'The columns of the file as they were read, and the outcome of each row.',
            example:
              "row,action,outcome,member_id,message,email,first_name,last_name,phone,tier\r\n2,Invite,Done,mem_01kah4pzc5e4r8v2m6t0x9y3bd,,sam.okafor@example.com,Sam,Okafor,'+447700900123,Bronze\r\n",
          },
        },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) => {
      const { skip, take: _take, after, ...filter } = request.query
      const asked = { partnerId: request.partner.id, importId: request.params.jobId, filter }
      reply.header('vary', 'accept')
      if (prefersCsv(request.headers.accept)) {
        const { columns } = await memberImports.find(db, asked)
        return sendCsv(request, reply, { name: `${asked.importId}.csv`, parts: csvOf(db, asked, columns) })
      }
      return await read(db, request, reply, async reader => {
        const page = pageOf(request.query)
        const { plan, id: jobId } = await memberImports.find(reader, asked)
        refuseSkipWith({ skip, after })
        const results = await listResults(reader, { ...asked, after, page })
        const total = await countResults(reader, asked)
        return { status: 200, body: { jobId, plan, results: results.map(resultBody), total, ...page } }
      })
    },
  )
}

const uploads = [
  {
    version: 'v1',
    id: 'createJobFromCsv',
    summary: 'Upload the complete list of members',
    removesAccounts: false,
    ofAccounts: 'An empty bank account in the file leaves the member’s account unchanged.',
  },
  {
    version: 'v2',
    id: 'createJobFromCsvV2',
    summary: 'Upload the complete list of members, including bank accounts',
    removesAccounts: true,
    ofAccounts: 'An empty bank account in the file removes the member’s account.',
  },
] as const

const reviews = [
  {
    verb: 'approve',
    action: 'member_job.approve',
    summary: 'Approve a member job',
    description:
      'Approves a job that is waiting for review. The job offboards the members that its results name, but no members that were added later. Idempotent; a job that is queued or rejected is a `Conflict`.',
    decide: memberImports.approve,
  },
  {
    verb: 'reject',
    action: 'member_job.reject',
    summary: 'Reject a member job',
    description:
      'Rejects a job that is queued or waiting for review. None of its changes are applied. Idempotent; a job that is already running or completed is a `Conflict`.',
    decide: memberImports.reject,
  },
] as const

async function answerTo(
  tx: Tx,
  { partner, query, kind }: { partner: { id: string }; query: { dryRun?: boolean }; kind: 'actions' | 'file' },
  create: () => Promise<memberImports.Created>,
): Promise<Answer> {
  if (query.dryRun) {
    return { status: 200, body: await memberImports.preview(tx, { partnerId: partner.id, create }) }
  }
  const { importId, plan, needsReview } = await create()
  const audit = { action: 'member_job.create', details: { kind, plan, needsReview } } as const
  return { status: 202, body: { jobId: importId }, resourceId: importId, audit }
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
    createdAt: createdAt.toISOString(),
  }
}

function resultBody({ step, row, action, outcome, memberId, email, message }: Result) {
  return { step, row: row === null ? null : String(row), action, outcome, memberId, email, message }
}

async function* csvOf(
  db: Db,
  asked: { partnerId: string; importId: string; filter: object },
  columns: readonly Column[],
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
        ...fileCells(result, columns),
      ]),
    )
  }
}
