import { Option } from 'commander'
import type { MemberJobId, MemberJobStatus, PartnerId } from '../packages/console/src/generated/operator.ts'
import { addServerOptions, OperatorCommand, type OperatorOptions } from './operator-client.ts'
import { addPaging, nextPage } from './paging.ts'
import { table } from './print.ts'

const operations = () => import('../src/operators/member-job-operations.ts')

export const jobCommand = new OperatorCommand('job', operations).description(
  'Inspect member jobs: imported lists of members, and batches of changes.',
)

type ListOptions = OperatorOptions & {
  json?: boolean
  partner?: PartnerId
  status?: MemberJobStatus[]
  take: number
  before?: MemberJobId
}

addPaging(
  jobCommand
    .command('list')
    .description('List member jobs with their plan and progress, newest first.')
    .option('--partner <partner>', 'only jobs of this partner')
    .addOption(
      new Option('--status <status...>', 'only jobs with these statuses').choices([
        'AwaitingReview',
        'Processing',
        'Completed',
        'Rejected',
      ]),
    ),
  'memberJob',
)
  .examples('job list', 'job list --status AwaitingReview Processing')
  .prints(
    (api, { partner: partnerId, status: statuses, before: after, take }: ListOptions) =>
      api.listMemberJobs({ partnerId, statuses, after, take }),
    found =>
      table(
        found.jobs.map(({ id, partnerId, kind, status, plan, stepsDone, createdAt, endedAt }) => ({
          id,
          partner: partnerId,
          kind,
          status,
          invite: plan.invite,
          update: plan.update,
          reinstate: plan.reinstate,
          offboard: plan.offboard,
          done: `${stepsDone} of ${plan.invite + plan.update + plan.reinstate + plan.offboard}`,
          created: createdAt,
          ended: endedAt,
        })),
      ) + nextPage(found.jobs, found),
  )

addServerOptions(jobCommand)
