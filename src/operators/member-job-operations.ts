import { Type } from 'typebox'
import { cutPage, hasMoreField, pageOf, pageQuery } from '../contract/list.ts'
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
    after: Type.Optional(Id('memberJob', 'The id of the last job of this page, to get the next page.')),
    take: pageQuery.take,
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
    const { take } = pageOf(query)
    const filter = { partnerId, statuses }
    const { rows, hasMore } = cutPage(await inspection.list(reader, { filter, before: after, take: take + 1 }), {
      take,
    })
    return { body: { jobs: rows, hasMore } }
  },
})

export const memberJobOperations = named({ listMemberJobs })
