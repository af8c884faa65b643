import { Type } from 'typebox'
import { hasMoreField, nextQuery, readPage } from '../contract/list.ts'
import { named, operation } from '../http/operation.ts'
import { Id } from '../kernel/ids.ts'
import { namedObject, strictObject, wordOf } from '../kernel/schemas.ts'
import { Instant, InstantOrNull } from '../kernel/time.ts'
import * as inspection from '../member-imports/inspection.ts'
import { JobStatus, PlanInNumbers } from '../member-imports/schema.ts'

const listMemberJobs = operation({
  route: 'GET /operator/v1/member-jobs',
  isForOperators: true,
  tag: 'Partners',
  summary: 'List member jobs',
  description: 'The lists of members that partners have sent, with their plan and progress, newest first.',
  query: strictObject({
    partnerId: Type.Optional(Id('partner', 'Only jobs of this partner.')),
    statuses: Type.Optional(
      Type.Array(JobStatus, { minItems: 1, maxItems: 5, description: 'Only jobs in these states.' }),
    ),
    ...nextQuery('memberJob', 'job'),
  }),
  success: {
    description: 'One page of jobs.',
    schema: namedObject('ListedMemberJobs', {
      jobs: Type.Array(
        namedObject('ListedMemberJob', {
          id: Id('memberJob'),
          partnerId: Id('partner'),
          kind: wordOf(['actions', 'file']),
          status: JobStatus,
          plan: PlanInNumbers,
          stepsDone: Type.Integer({ minimum: 0, description: 'How many changes of the plan are made.' }),
          createdAt: Instant,
          reviewedAt: InstantOrNull,
          endedAt: InstantOrNull,
        }),
      ),
      ...hasMoreField,
    }),
  },
  async read(reader, { query }) {
    const { partnerId, statuses, after } = query
    const filter = { partnerId, statuses }
    const { rows, hasMore } = await readPage(query, take => inspection.list(reader, { filter, before: after, take }))
    return { body: { jobs: rows, hasMore } }
  },
})

export const memberJobOperations = named({ listMemberJobs })
