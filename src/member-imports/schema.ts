import { type Static, Type } from 'typebox'
import { pageFields, pageQuery, totalField } from '../http/list.ts'
import { Id } from '../ids.ts'
import { MemberUpdate, NewMember } from '../members/schema.ts'

const strict = { additionalProperties: false }

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

/** One change of a batch: what the operation of one member would take, with its type and the member. */
export type MemberAction = Static<typeof AddMember | typeof ReplaceMember | typeof UpdateMember | typeof OffboardMember>
// By its type, so that an action is judged as what it says it is, and not by trial against all four.
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
    description: 'Only say what the job would do, by the same code, and do nothing: 200 with the plan.',
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
          'The job waits for a review when it offboards more than these, whatever the partner’s share: what a dry run has shown, and the caller has agreed to.',
      }),
    ),
  },
  strict,
)

const numberOf = (description: string) => Type.Integer({ minimum: 0, description })
const PlanInNumbers = Type.Object(
  {
    invite: numberOf('New members.'),
    update: numberOf('Members of whom something changes.'),
    bringBack: numberOf('Inactive members who become members again.'),
    offboard: numberOf('Members who become inactive; with a file, those who are not in it.'),
    unchanged: numberOf('Rows or actions that change nothing.'),
  },
  { title: 'MemberJobPlan', ...strict },
)

const NeedsReview = Type.Boolean({
  description: 'Whether the job waits for approval, because it offboards more than the partner’s share of the members.',
})

export const Preview = Type.Object(
  {
    plan: PlanInNumbers,
    needsReview: NeedsReview,
    offboard: Type.Array(memberId, {
      maxItems: 1_000,
      description: 'Who would be offboarded: the first 1,000 of them.',
    }),
  },
  { title: 'MemberJobPreview', ...strict },
)

export const MemberJobCreated = Type.Object({ jobId: Id('memberJob') }, { title: 'MemberJobCreated', ...strict })

const JobStatus = Type.Enum(['Processing', 'Completed', 'AwaitingReview', 'NotReady', 'Rejected'], {
  type: 'string',
  description:
    '`NotReady`: queued behind another job of the partner, and decided when its turn comes. `AwaitingReview`: waits for `approve` or `reject`.',
})

export const MemberJob = Type.Object(
  {
    id: Id('memberJob'),
    progress: Type.Object(
      {
        type: JobStatus,
        totalActions: numberOf(
          'Every action of the job; of a file, all of the plan but what is unchanged. While the job is queued, of the plan as it looked when it was sent.',
        ),
        totalComplete: numberOf('What has been done.'),
        totalProcessing: numberOf('What is still to be done, while the job is being processed.'),
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

const actions = ['Invite', 'Update', 'BringBack', 'Offboard', 'Unchanged'] as const
const outcomes = ['Pending', 'Done', 'Failed', 'NotDone'] as const

const MemberJobResult = Type.Object(
  {
    row: Type.Union([Type.String(), Type.Null()], {
      description:
        'Row of the file (the header is "1"), or place of the action from "1"; null for who is not in the file.',
      examples: ['17'],
    }),
    action: Type.Enum([...actions], { type: 'string' }),
    outcome: Type.Enum([...outcomes], {
      type: 'string',
      description:
        '`Pending`: it waits for its turn. `Failed`: it had become impossible meanwhile, `message` says why. `NotDone`: the job was rejected.',
    }),
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
    actions: Type.Optional(Type.Array(Type.Enum([...actions], { type: 'string' }), { maxItems: 5 })),
    outcomes: Type.Optional(Type.Array(Type.Enum([...outcomes], { type: 'string' }), { maxItems: 4 })),
    ...pageQuery,
  },
  strict,
)
