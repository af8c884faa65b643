import { Command } from 'commander'
import { check, lastFour } from '../src/bank-accounts/rules.ts'
import { banksOf, readConfiguredRails } from '../src/main.ts'
import * as members from '../src/members/members.ts'
import { inWords, toWire } from '../src/money.ts'
import * as inspection from '../src/withdrawals/inspection.ts'
import { examples } from './help.ts'
import { partnerNow } from './partner-clock.ts'
import { printResult, sheet } from './print.ts'
import { withDatabase } from './with-database.ts'
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
      const owner = await members.findPartnerOf(db, memberId)
      if (owner === undefined) throw new Error(`There is no member ${memberId}; GET /v1/members lists the ids`)
      const asked = { partnerId: owner, memberId }
      const now = await partnerNow(db, owner)
      const bankOf = banksOf(settings, await readConfiguredRails(settings))
      return {
        partnerId: owner,
        member: await members.find(db, asked),
        eligibility: await inspection.findEligibility(db, {
          ...asked,
          hasRail: currency => bankOf(currency) !== null,
          now,
        }),
        latest: await inspection.list(db, { filter: asked, take: withdrawalsShown, now }),
      }
    })
    // Always defined: a foreign key gives every member a tier.
    if (eligibility === undefined) throw new Error(`There is no member ${memberId}`)
    const { status, email, firstName, lastName, workerId, accountDetails, enablePayroll } = member
    const { tier, available, refusal, withdrawalsToday, withdrawalsThisCycle } = eligibility
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
            'payroll enabled': enablePayroll ? 'yes' : 'no',
            available: inWords(money),
            'can withdraw': refusal === null ? 'yes' : `no: ${refusal}`,
          }),
          '',
          inTable(latest),
        ].join('\n'),
    })
  })
