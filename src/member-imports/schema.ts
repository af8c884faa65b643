import { type Static, Type } from 'typebox'
import { pageFields, pageQuery, totalField } from '../contract/list.ts'
import { strict } from '../contract/strict.ts'
import { Id } from '../kernel/ids.ts'
import { MemberUpdate, NewMember } from '../members/schema.ts'

const memberId = Id('member')
const AddMember = Type.Object({ type: Type.Literal('Add'), ...NewMember.properties }, { title: 'AddMember', ...strict })
const ReplaceMember = Type.Object(
  { type: Type.Literal('Replace'), memberId, ...NewMember.properties },
  { title: 'ReplaceMember', ...strict },
)
const UpdateMember = Type.Object(
  { type: Type.Literal('Update'), memberId, ...MemberUpdate.properties },
  { title: 'UpdateMember', ...strict },
)
const OffboardMember = Type.Object({ type: Type.Literal('Offboard'), memberId }, { title: 'OffboardMember', ...strict })

/** One change of a batch: the body of the single-member operation, with its type and the member's id. */
export type MemberAction = Static<typeof AddMember | typeof ReplaceMember | typeof UpdateMember | typeof OffboardMember>
// Discriminated by type, so that an action is validated against its own schema and not against all four.
export const MemberAction = Type.Unsafe<MemberAction>({
  type: 'object',
  required: ['type'],
  discriminator: { propertyName: 'type' },
  oneOf: [AddMember, ReplaceMember, UpdateMember, OffboardMember],
})

export const NewMemberJob = Type.Object(
  { actions: Type.Array(MemberAction, { minItems: 1, maxItems: 10_000 }) },
  { title: 'NewMemberJob', ...strict },
)

const dryRun = Type.Optional(
  Type.Boolean({
    default: false,
    description: 'Run the same checks and return the plan with status 200, without changing anything.',
  }),
)

export const ActionsQuery = Type.Object({ dryRun }, strict)

export const FileQuery = Type.Object(
  {
    dryRun,
    offboardMax: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 1_000_000_000,
        description:
          'The job waits for review if it would offboard more members than this, even if the partner’s limit allows it. Send the number that a dry run has shown and that was agreed to.',
      }),
    ),
  },
  strict,
)

const numberOf = (description: string) => Type.Integer({ minimum: 0, description })
export const PlanInNumbers = Type.Object(
  {
    invite: numberOf('New members.'),
    update: numberOf('Members whose data changes.'),
    reinstate: numberOf('Inactive members that are reinstated.'),
    offboard: numberOf('Members that become inactive; for a file, those missing from it.'),
    unchanged: numberOf('Rows or actions that change nothing.'),
  },
  { title: 'MemberJobPlan', ...strict },
)

const NeedsReview = Type.Boolean({
  description: 'Whether the job waits for approval because it offboards too many members.',
})

export const Preview = Type.Object(
  {
    plan: PlanInNumbers,
    needsReview: NeedsReview,
    offboard: Type.Array(memberId, {
      maxItems: 1_000,
      description: 'Members that would be offboarded (at most the first 1,000).',
    }),
  },
  { title: 'MemberJobPreview', ...strict },
)

export const MemberJobCreated = Type.Object({ jobId: Id('memberJob') }, { title: 'MemberJobCreated', ...strict })

export const JobStatus = Type.Enum(['Processing', 'Completed', 'AwaitingReview', 'NotReady', 'Rejected'], {
  title: 'MemberJobStatus',
  type: 'string',
  description:
    '`NotReady`: queued behind another job of the partner. `AwaitingReview`: waiting for `approve` or `reject`.',
})

export const MemberJob = Type.Object(
  {
    id: Id('memberJob'),
    progress: Type.Object(
      {
        type: JobStatus,
        totalActions: numberOf(
          'Actions in the job; for a file, planned changes without the unchanged rows. While the job is queued, this is the plan from when it was sent.',
        ),
        totalComplete: numberOf('Actions that have been processed.'),
        totalProcessing: numberOf('Actions that remain while the job is being processed.'),
      },
      strict,
    ),
    createdAt: Type.String({ format: 'date-time' }),
  },
  { title: 'MemberJob', ...strict },
)

export const MemberJobs = Type.Object(
  { jobs: Type.Array(MemberJob), ...totalField, ...pageFields },
  { title: 'MemberJobs', ...strict },
)

export const actions = ['Invite', 'Update', 'Reinstate', 'Offboard', 'Unchanged'] as const
export type Action = (typeof actions)[number]
const outcomes = ['Pending', 'Done', 'Failed', 'NotDone'] as const

const ResultAction = Type.Enum([...actions], { title: 'MemberJobResultAction', type: 'string' })
const ResultOutcome = Type.Enum([...outcomes], {
  title: 'MemberJobResultOutcome',
  type: 'string',
  description:
    '`Pending`: not processed yet. `Failed`: no longer possible when it was processed; `message` says why. `NotDone`: the job was rejected.',
})

const MemberJobResult = Type.Object(
  {
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
    memberId: Type.Union([memberId, Type.Null()]),
    email: Type.Union([Type.String(), Type.Null()]),
    message: Type.Union([Type.String(), Type.Null()]),
  },
  { title: 'MemberJobResult', ...strict },
)

export const MemberJobResults = Type.Object(
  {
    jobId: Id('memberJob'),
    plan: PlanInNumbers,
    results: Type.Array(MemberJobResult),
    ...totalField,
    ...pageFields,
  },
  { title: 'MemberJobResults', ...strict },
)

export const ResultsQuery = Type.Object(
  {
    actions: Type.Optional(Type.Array(ResultAction, { maxItems: 5 })),
    outcomes: Type.Optional(Type.Array(ResultOutcome, { maxItems: 4 })),
    ...pageQuery,
    after: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 2_147_483_647,
        description:
          'To get the next page, the `step` of the last result of this page. Cannot be combined with `skip`.',
      }),
    ),
  },
  strict,
)
