import { Command, Option } from 'commander'
import type { MemberJobId, MemberJobStatus, PartnerId } from '../packages/console/src/generated/operator.ts'
import { examples } from './help.ts'
import { addServerOptions, type OperatorOptions, withOperators } from './operator-client.ts'
import { addPaging, nextPage } from './paging.ts'
import { printResult, table } from './print.ts'

const operations = () => import('../src/operators/member-job-operations.ts')

export const jobCommand = new Command('job')

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
  .option('--json', 'print JSON')
  .addHelpText('after', examples('job list', 'job list --status AwaitingReview Processing'))
  .action(async ({ partner: partnerId, status: statuses, before: after, take, ...options }: ListOptions) => {
    const found = await withOperators(options, operations, api =>
      api.listMemberJobs({ partnerId, statuses, after, take }),
    )
    printResult(options, {
      value: found,
      text: () =>
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
    })
  })

addServerOptions(jobCommand)
