import { Command } from 'commander'
import { check, lastFour } from '../src/bank-accounts/rules.ts'
import type { Reader } from '../src/database/database.ts'
import { inWords, toWire } from '../src/kernel/money.ts'
import { banksOf, readRails, systemClock } from '../src/main.ts'
import * as members from '../src/members/members.ts'
import { release } from '../src/members/restrictions.ts'
import * as inspection from '../src/withdrawals/inspection.ts'
import { recordChange } from './actor.ts'
import { name } from './arguments.ts'
import { examples } from './help.ts'
import { partnerNow } from './partner-clock.ts'
import { printResult, sheet } from './print.ts'
import { withDatabase, withTransaction } from './with-database.ts'
import { inTable, onWire } from './withdrawal.ts'

export const memberCommand = new Command('member')

// Enough to answer "what happened to my money?"; withdrawal list shows the rest.
const withdrawalsShown = 5

memberCommand
  .command('show')
  .description(
    'Show a member: status, tier, bank account, available balance, recent withdrawals, and why a withdrawal would be refused.',
  )
  .argument('<member>', 'the member’s id, mem_…')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('member show mem_…'))
  .action(async (memberId: string, options) => {
    const { partnerId, member, eligibility, latest } = await withDatabase(async (db, settings) => {
      const owner = await ownerOf(db, memberId)
      const asked = { partnerId: owner, memberId }
      const now = await partnerNow(db, owner)
      const rails = await readRails(settings)
      const bankOf = banksOf(settings, rails)
      return {
        partnerId: owner,
        member: await members.find(db, asked),
        eligibility: await inspection.findEligibility(db, {
          ...asked,
          hasRail: currency => bankOf(currency) !== null,
          accountRefusal: (currency, account) =>
            rails.find(rail => rail.currency === currency)?.accountRefusal(account),
          now,
        }),
        latest: await inspection.list(db, { filter: asked, take: withdrawalsShown, now }),
      }
    })
    // Always defined: a foreign key gives every member a tier.
    if (eligibility === undefined) throw new Error(`There is no member ${memberId}`)
    const { status, email, firstName, lastName, workerId, accountDetails, enablePayroll } = member
    const { tier, available, refusal, withdrawalsToday, withdrawalsThisCycle, accountRefused, reviewReason } =
      eligibility
    const account =
      accountDetails === null ? null : { lastFour: lastFour(accountDetails), check: check(accountDetails) }
    const money = { amount: available, currency: tier.currency }
    const common = { id: memberId, partnerId, status, email, firstName, lastName, workerId, enablePayroll }
    printResult(options, {
      value: {
        ...common,
        tier: tier.name,
        tierVersion: tier.version,
        bankAccount: account,
        available: toWire(money),
        canWithdraw: refusal === null,
        refusal,
        accountRefused,
        reviewReason,
        withdrawalsToday,
        withdrawalsThisCycle,
        withdrawals: latest.map(onWire),
      },
      text: () =>
        [
          sheet({
            id: memberId,
            partner: partnerId,
            name: `${firstName} ${lastName}`,
            email,
            'worker id': workerId,
            status,
            tier: `${tier.name}, version ${tier.version}`,
            account: account === null ? null : `…${account.lastFour} (check: ${account.check})`,
            'account refused': accountRefused,
            'held for review': reviewReason,
            'payroll enabled': enablePayroll ? 'yes' : 'no',
            available: inWords(money),
            'can withdraw': refusal === null ? 'yes' : `no: ${refusal}`,
          }),
          '',
          inTable(latest),
        ].join('\n'),
    })
  })

memberCommand
  .command('release')
  .description(
    'Let a member withdraw again after a hold for review, or after a bank account was refused although it is correct.',
  )
  .argument('<member>', 'the member’s id, mem_…')
  .option('--reason <text>', 'reason for the audit log; must not contain personal data', name({ lengthMax: 200 }))
  .option('--json', 'print JSON')
  .addHelpText('after', examples('member release mem_… --reason "The bank confirmed the account"'))
  .action(async (memberId: string, { reason, json }: { reason?: string; json?: boolean }) => {
    const now = systemClock()
    const released = await withTransaction(async tx => {
      const partnerId = await ownerOf(tx, memberId)
      const before = await release(tx, { partnerId, memberId })
      if (before.accountRefused === null && before.reviewReason === null) return false
      const details = { before, after: { accountRefused: null, reviewReason: null }, reason: reason ?? null }
      await recordChange(tx, { partnerId, change: { action: 'member.release', resourceId: memberId, details }, now })
      return true
    })
    printResult(
      { json },
      {
        value: { id: memberId, released },
        text: () => (released ? `${memberId} is released.` : `${memberId} was not held; nothing was changed.`),
      },
    )
  })

/** The partner of a member. @throws if there is no such member */
async function ownerOf(db: Reader, memberId: string): Promise<string> {
  const owner = await members.findPartnerOf(db, memberId)
  if (owner === undefined) throw new Error(`There is no member ${memberId}; GET /v1/members lists the ids`)
  return owner
}
