import { type Static, Type } from 'typebox'
import { type Db, sql, type Tx } from '../database/database.ts'
import { disconnectSignal } from '../http/body-timeouts.ts'
import { prefersCsv, sendCsv } from '../http/csv.ts'
import { pageOf, pageQuery } from '../http/list.ts'
import { operation } from '../http/operation.ts'
import type { ApiContext, App } from '../http/server.ts'
import { acceptUploads } from '../http/upload.ts'
import type { UploadedFile } from '../http/uploaded-file.ts'
import { type Answer, read, withIdempotency } from '../http/with-idempotency.ts'
import { Id } from '../ids.ts'
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

// 10,000 members with all that can be said of one.
const bodyBytesMax = 16 * 1024 * 1024

// So many rows of a file of results are read at once.
const rowsAtOnce = 2_000

const created = {
  status: 202,
  description: 'The job, which the worker now applies.',
  schema: MemberJobCreated,
} as const
const preview = { status: 200, description: 'With `dryRun=true`: what the job would do.', schema: Preview } as const

export function memberJobRoutes(app: App, { db, withCopying }: ApiContext): void {
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
          'Up to 10,000 actions, decided one after the other as they stand: all or none. `Add` is `inviteMember`, `Replace` is `replaceMember`, `Update` is `updateMember`, `Offboard` is `removeMember`. With any action that cannot be, the answer has the issues of them (at most 1,000), and there is no job. Should one become impossible before the worker applies the job, the job ends as `Rejected`, with nothing done. A job that is sent while another one has not ended is queued behind it (`NotReady`); an action whose e-mail or `workerId` another member has is accepted then, since the job ahead may resolve it. With 100 jobs queued, the next is a `Conflict`.',
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
            description: `The file is the complete list of members: new members are invited, changed ones are updated, offboarded ones are reinstated, and **members who are missing are offboarded**. If these are more than the partner’s share of the members (10 % unless the operator has set another), the job waits for approval. ${ofAccounts} A column that is absent never changes anything. With any row at fault the answer has an issue for each of the first 1,000 and one that counts the rest, and nothing happens. What is done about a member after the file was sent is younger than the file, and stays. A file that is sent while another job has not ended is queued behind it (\`NotReady\`) and compared with the members when its turn comes; then it wins over every job that was sent before it. With 5 files queued, the next is a \`Conflict\`. See docs/guides/import-members.md.`,
            query: FileQuery,
            fileBody: {
              description: `CSV (UTF-8; comma, semicolon or tab) or an Excel sheet, with a header. Columns: ${columns.map(name => `\`${name}\``).join(', ')}; the first five are needed. At most 100 MiB and 1,000,000 rows.`,
              example: `${columns.slice(0, 5).join(',')}\r\nsam.okafor@example.com,Sam,Okafor,+447700900123,Bronze\r\n`,
            },
            success: created,
            alternative: preview,
            problems: ['FileContent'],
          }),
        },
        async (request, reply) => {
          // Made by the scope's parser, and checked to be one.
          const uploaded = request.body as UploadedFile
          return await uploaded.lend(fd =>
            withCopying((copyingDb, copyInto) =>
              withIdempotency(copyingDb, request, reply, async tx => {
                const { partner, now } = request
                const query = request.query as Static<typeof FileQuery>
                const file = { fd, kind: uploaded.kind, removesAccounts, offboardMax: query.offboardMax }
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
        description: 'Newest first.',
        query: Type.Object(pageQuery, { additionalProperties: false }),
        success: { status: 200, description: 'One page of jobs.', schema: MemberJobs },
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const partnerId = request.partner.id
        const page = pageOf(request.query)
        const jobs = await memberImports.list(reader, { partnerId, page })
        const total = await memberImports.count(reader, partnerId)
        return { status: 200, body: { jobs: jobs.map(jobBody), total, ...page } }
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
        success: { status: 200, description: 'The job and how far it is.', schema: MemberJob },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const job = await memberImports.find(reader, { partnerId: request.partner.id, jobId: request.params.jobId })
        return { status: 200, body: jobBody(job) }
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
          success: { status: 200, description: 'The job as it is now.', schema: MemberJob },
          problems: ['NotFound'],
        }),
      },
      async (request, reply) =>
        withIdempotency(db, request, reply, async tx => {
          const { partner, now, params } = request
          const { jobId } = params as { jobId: string }
          const { job, isRepeated } = await decide(tx, { partnerId: partner.id, jobId, now })
          const audit = isRepeated ? undefined : { action, details: { plan: job.plan } }
          return { status: 200, body: jobBody(job), resourceId: jobId, audit }
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
          'What is to be done and what was done, in the order of the file or the actions; who is not in the file comes last. With `accept: text/csv` all of it as a file, whatever `skip` and `take` say, with the outcome added; cells that a spreadsheet would take for a formula begin with an apostrophe. Kept for 30 days after the job’s end.',
        params,
        query: ResultsQuery,
        success: {
          status: 200,
          description: 'The plan in numbers, and one page of results.',
          schema: MemberJobResults,
          csv: {
            description: 'The columns of the file, as they were understood, and the outcome.',
            example:
              "row,action,outcome,member_id,message,email,first_name,last_name,phone,tier\r\n2,Invite,Done,mem_01kah4pzc5e4r8v2m6t0x9y3bd,,sam.okafor@example.com,Sam,Okafor,'+447700900123,Bronze\r\n",
          },
        },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) => {
      const { skip: _skip, take: _take, ...filter } = request.query
      const asked = { partnerId: request.partner.id, jobId: request.params.jobId, filter }
      reply.header('vary', 'accept')
      if (prefersCsv(request.headers.accept)) {
        const { columns } = await memberImports.find(db, asked)
        return sendCsv(request, reply, { name: `${asked.jobId}.csv`, parts: csvOf(db, asked, columns) })
      }
      return await read(db, request, reply, async reader => {
        const page = pageOf(request.query)
        const { plan, id: jobId } = await memberImports.find(reader, asked)
        const results = await listResults(reader, { ...asked, page })
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
    ofAccounts: 'An empty bank account in the file leaves the member’s as it is.',
  },
  {
    version: 'v2',
    id: 'createJobFromCsvV2',
    summary: 'Upload the complete list of members, bank accounts included',
    removesAccounts: true,
    ofAccounts: 'An empty bank account in the file removes the member’s.',
  },
] as const

const reviews = [
  {
    verb: 'approve',
    action: 'member_job.approve',
    summary: 'Approve a member job',
    description:
      'Lets a job that waits for a review go on. It offboards the members that its results name, and none who were added since. Approving one again is the same answer; one that was rejected is a `Conflict`.',
    decide: memberImports.approve,
  },
  {
    verb: 'reject',
    action: 'member_job.reject',
    summary: 'Reject a member job',
    description:
      'Ends a job that waits for a review or in the queue, with nothing done. Rejecting one again is the same answer; one that goes on already is a `Conflict`.',
    decide: memberImports.reject,
  },
] as const

// A dry run is the real one, taken back.
async function answerTo(
  tx: Tx,
  { partner, query, kind }: { partner: { id: string }; query: { dryRun?: boolean }; kind: 'actions' | 'file' },
  create: () => Promise<memberImports.Created>,
): Promise<Answer> {
  if (!query.dryRun) {
    const { jobId, plan, needsReview } = await create()
    const audit = { action: 'member_job.create', details: { kind, plan, needsReview } } as const
    return { status: 202, body: { jobId }, resourceId: jobId, audit }
  }
  await sql`savepoint dry_run`.execute(tx)
  const { jobId, plan, needsReview } = await create()
  const offboard = await memberImports.listOffboarded(tx, { partnerId: partner.id, jobId })
  await sql`rollback to savepoint dry_run`.execute(tx)
  return { status: 200, body: { plan, needsReview, offboard } }
}

function jobBody({ id, status, steps: total, stepsDone, createdAt }: memberImports.MemberJob) {
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

function resultBody({ row, action, outcome, memberId, email, message }: Result) {
  return { row: row === null ? null : String(row), action, outcome, memberId, email, message }
}

async function* csvOf(
  db: Db,
  asked: { partnerId: string; jobId: string; filter: object },
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
