import { Command, Option } from 'commander'
import * as inspection from '../src/member-imports/inspection.ts'
import { findState } from '../src/partners/partners.ts'
import { examples } from './help.ts'
import { addPaging, type Paging, pageOf } from './paging.ts'
import { printResult, table } from './print.ts'
import { withDatabase } from './with-database.ts'

export const jobCommand = new Command('job')

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
  .action(
    async ({ json, partner, status, ...paging }: Paging & { json?: boolean; partner?: string; status?: string[] }) => {
      const filter = {
        ...(partner === undefined ? {} : { partnerId: partner }),
        ...(status === undefined ? {} : { statuses: status }),
      }
      const found = await withDatabase(async db => {
        if (partner !== undefined) await findState(db, partner)
        return await inspection.list(db, { filter, before: paging.before, take: paging.take + 1 })
      })
      const { shown, hasMore, more } = pageOf(found, paging)
      printResult(
        { json },
        {
          value: { jobs: shown, hasMore },
          text: () =>
            table(
              shown.map(({ id, partnerId, kind, status: state, plan, stepsDone, createdAt, endedAt }) => ({
                id,
                partner: partnerId,
                kind,
                status: state,
                invite: plan.invite,
                update: plan.update,
                reinstate: plan.reinstate,
                offboard: plan.offboard,
                done: `${stepsDone} of ${plan.invite + plan.update + plan.reinstate + plan.offboard}`,
                created: createdAt.toISOString(),
                ended: endedAt?.toISOString() ?? null,
              })),
            ) + more,
        },
      )
    },
  )
