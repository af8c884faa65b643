import { type Static, Type } from 'typebox'
import { pageFields, pageQuery, totalField } from '../contract/list.ts'
import { Id } from '../kernel/ids.ts'
import { namedObject, nullable, strictObject, wordOf } from '../kernel/schemas.ts'
import { MemberUpdate, NewMember } from '../members/schema.ts'

const memberId = Id('member')
const AddMember = namedObject('AddMember', { type: Type.Literal('Add'), ...NewMember.properties })
const ReplaceMember = namedObject('ReplaceMember', { type: Type.Literal('Replace'), memberId, ...NewMember.properties })
const UpdateMember = namedObject('UpdateMember', { type: Type.Literal('Update'), memberId, ...MemberUpdate.properties })
const OffboardMember = namedObject('OffboardMember', { type: Type.Literal('Offboard'), memberId })

/** One change of a batch: the body of the single-member operation, with its type and the member's id. */
export type MemberAction = Static<typeof AddMember | typeof ReplaceMember | typeof UpdateMember | typeof OffboardMember>
// Discriminated by type, so that an action is validated against its own schema and not against all four.
export const MemberAction = Type.Unsafe<MemberAction>({
  type: 'object',
  required: ['type'],
  discriminator: { propertyName: 'type' },
  oneOf: [AddMember, ReplaceMember, UpdateMember, OffboardMember],
})

export const NewMemberJob = namedObject('NewMemberJob', {
  actions: Type.Array(MemberAction, { minItems: 1, maxItems: 10_000 }),
})

const dryRun = Type.Optional(
  Type.Boolean({
    default: false,
    description: 'Run the same checks and return the plan with status 200, without changing anything.',
  }),
)

export const ActionsQuery = strictObject({ dryRun })

export const FileQuery = strictObject({
  dryRun,
  offboardMax: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 1_000_000_000,
      description:
        'The job waits for review if it would offboard more members than this, even if the partner’s limit allows it. Send the number that a dry run has shown and that was agreed to.',
    }),
  ),
})

const numberOf = (description: string) => Type.Integer({ minimum: 0, description })
export const PlanInNumbers = namedObject('MemberJobPlan', {
  invite: numberOf('New members.'),
  update: numberOf('Members whose data changes.'),
  reinstate: numberOf('Inactive members that are reinstated.'),
  offboard: numberOf('Members that become inactive; for a file, those missing from it.'),
  unchanged: numberOf('Rows or actions that change nothing.'),
})

const NeedsReview = Type.Boolean({
  description: 'Whether the job waits for approval because it offboards too many members.',
})

export const Preview = namedObject('MemberJobPreview', {
  plan: PlanInNumbers,
  needsReview: NeedsReview,
  offboard: Type.Array(memberId, {
    maxItems: 1_000,
    description: 'Members that would be offboarded (at most the first 1,000).',
  }),
})

export const MemberJobCreated = namedObject('MemberJobCreated', { jobId: Id('memberJob') })

export const JobStatus = wordOf(['Processing', 'Completed', 'AwaitingReview', 'NotReady', 'Rejected'], {
  title: 'MemberJobStatus',
  description:
    '`NotReady`: queued behind another job of the partner. `AwaitingReview`: waiting for `approve` or `reject`.',
})

export const MemberJob = namedObject('MemberJob', {
  id: Id('memberJob'),
  progress: strictObject({
    type: JobStatus,
    totalActions: numberOf(
      'Actions in the job; for a file, planned changes without the unchanged rows. While the job is queued, this is the plan from when it was sent.',
    ),
    totalComplete: numberOf('Actions that have been processed.'),
    totalProcessing: numberOf('Actions that remain while the job is being processed.'),
  }),
  createdAt: Type.String({ format: 'date-time' }),
})

export const MemberJobs = namedObject('MemberJobs', { jobs: Type.Array(MemberJob), ...totalField, ...pageFields })

export const actions = ['Invite', 'Update', 'Reinstate', 'Offboard', 'Unchanged'] as const
export type Action = (typeof actions)[number]
const outcomes = ['Pending', 'Done', 'Failed', 'NotDone'] as const

const ResultAction = wordOf(actions, { title: 'MemberJobResultAction' })
const ResultOutcome = wordOf(outcomes, {
  title: 'MemberJobResultOutcome',
  description:
    '`Pending`: not processed yet. `Failed`: no longer possible when it was processed; `message` says why. `NotDone`: the job was rejected.',
})

const MemberJobResult = namedObject('MemberJobResult', {
  step: Type.Integer({
    minimum: 1,
    description: 'The position of the result in the job; the cursor of this list.',
  }),
  row: Type.Union([Type.String(), Type.Null()], {
    description:
      'Row of the file (the header is "1") or position of the action (starting at "1"); null for members missing from the file.',
    examples: ['17'],
  }),
  action: ResultAction,
  outcome: ResultOutcome,
  memberId: nullable(memberId),
  email: nullable(Type.String()),
  message: nullable(Type.String()),
})

export const MemberJobResults = namedObject('MemberJobResults', {
  jobId: Id('memberJob'),
  plan: PlanInNumbers,
  results: Type.Array(MemberJobResult),
  ...totalField,
  ...pageFields,
})

export const ResultsQuery = strictObject({
  actions: Type.Optional(Type.Array(ResultAction, { maxItems: 5 })),
  outcomes: Type.Optional(Type.Array(ResultOutcome, { maxItems: 4 })),
  ...pageQuery,
  after: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 2_147_483_647,
      description: 'To get the next page, the `step` of the last result of this page. Cannot be combined with `skip`.',
    }),
  ),
})
