import { Command, Option } from 'commander'
import { lastFour } from '../src/bank-accounts/rules.ts'
import { inWords, toWire } from '../src/kernel/money.ts'
import { systemClock } from '../src/main.ts'
import * as members from '../src/members/members.ts'
import { findState } from '../src/partners/partners.ts'
import * as inspection from '../src/withdrawals/inspection.ts'
import * as withdrawals from '../src/withdrawals/withdrawals.ts'
import { examples } from './help.ts'
import { addPaging, type Paging, pageOf } from './paging.ts'
import { partnerNow } from './partner-clock.ts'
import { printResult, sheet, table } from './print.ts'
import { withDatabase } from './with-database.ts'

export const withdrawalCommand = new Command('withdrawal')

withdrawalCommand
  .command('show')
  .description('Show a withdrawal: its status history, its amounts and when the bank is contacted next.')
  .argument('<withdrawal>', 'the withdrawal’s id, w_…')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('withdrawal show w_…'))
  .action(async (withdrawalId: string, options) => {
    const { found, details } = await withDatabase(async db => {
      const known = await inspection.find(db, { withdrawalId, now: systemClock() })
      if (known === undefined)
        throw new Error(`There is no withdrawal ${withdrawalId}; run midmonth withdrawal list to see the ids`)
      const { partnerId } = known
      const inspected = await inspection.find(db, { withdrawalId, now: await partnerNow(db, partnerId) })
      return { found: inspected ?? known, details: await withdrawals.find(db, { partnerId, withdrawalId }) }
    })
    const { account, balanceAfter, timeline, reference, expectedAt } = details
    const { currency } = found
    const holder = { lastFour: lastFour(account) }
    printResult(options, {
      value: {
        ...onWire(found),
        bankAccount: holder,
        balanceAfter: toWire({ amount: balanceAfter, currency }),
        paymentReference: reference,
        expectedAt,
        timeline,
      },
      text: () =>
        [
          sheet({
            id: found.id,
            partner: found.partnerId,
            member: found.memberId,
            status: found.status,
            stuck: found.stuck ?? 'no',
            amount: inWords({ amount: found.grossAmount, currency }),
            fee: inWords({ amount: found.fee, currency }),
            'employer fee': inWords({ amount: found.employerFee, currency }),
            net: inWords({ amount: found.netAmount, currency }),
            'balance after': inWords({ amount: balanceAfter, currency }),
            account: `…${holder.lastFour}`,
            intent: found.withdrawalIntentId,
            'pay cycle': found.payCycleId,
            'adjusted in': found.adjustedInCycleId,
            created: found.createdAt.toISOString(),
            'next step due': found.dueAt?.toISOString() ?? null,
            'bank attempts': found.attempts,
            'payment reference': reference,
            'expected by': expectedAt?.toISOString() ?? null,
          }),
          '',
          table(timeline.map(({ status, at, reason }) => ({ status, at: at.toISOString(), reason }))),
        ].join('\n'),
    })
  })

const statuses = ['held', 'submitted', 'paid', 'failed', 'returned', 'cancelled'] as const

addPaging(
  withdrawalCommand
    .command('list')
    .description('List withdrawals, newest first.')
    .option(
      '--stuck',
      'only withdrawals that need attention, with the reason; by real time without --partner or --member, by the partner’s clock with them',
    )
    .addOption(new Option('--status <status...>', 'only withdrawals with these statuses').choices(statuses))
    .option('--partner <partner>', 'only withdrawals of this partner')
    .option('--member <member>', 'only withdrawals of this member'),
  'withdrawal',
)
  .option('--json', 'print JSON')
  .addHelpText(
    'after',
    examples('withdrawal list --stuck', 'withdrawal list --status held submitted --partner par_… --json'),
  )
  .action(async ({ json, stuck, status, partner, member, ...paging }: ListOptions) => {
    const filter = {
      ...(stuck ? { isStuck: true } : {}),
      ...(status === undefined ? {} : { statuses: status }),
      ...(partner === undefined ? {} : { partnerId: partner }),
      ...(member === undefined ? {} : { memberId: member }),
    }
    const found = await withDatabase(async db => {
      if (partner !== undefined) await findState(db, partner)
      const owner = partner ?? (member === undefined ? undefined : await members.findPartnerOf(db, member))
      const now = owner === undefined ? systemClock() : await partnerNow(db, owner)
      return await inspection.list(db, { filter, before: paging.before, take: paging.take + 1, now })
    })
    const { shown, hasMore, more } = pageOf(found, paging)
    printResult({ json }, { value: { withdrawals: shown.map(onWire), hasMore }, text: () => inTable(shown) + more })
  })

type ListOptions = Paging & {
  json?: boolean
  stuck?: boolean
  status?: (typeof statuses)[number][]
  partner?: string
  member?: string
}

/** A withdrawal with its amounts as Money objects. */
export function onWire({ grossAmount, netAmount, fee, employerFee, currency, ...withdrawal }: inspection.Inspected) {
  const money = (of: bigint) => toWire({ amount: of, currency })
  return {
    ...withdrawal,
    amount: money(grossAmount),
    netAmount: money(netAmount),
    fee: money(fee),
    employerFee: money(employerFee),
  }
}

export function inTable(found: inspection.Inspected[]): string {
  return table(
    found.map(({ id, partnerId, memberId, status, netAmount, currency, createdAt, attempts, stuck }) => ({
      id,
      partner: partnerId,
      member: memberId,
      status,
      net: inWords({ amount: netAmount, currency }),
      created: createdAt.toISOString(),
      'bank attempts': attempts,
      stuck: stuck ?? null,
    })),
  )
}
