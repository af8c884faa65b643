import { Command } from 'commander'
import type { InspectedMember, MemberId } from '../packages/console/src/generated/operator.ts'
import { name } from './arguments.ts'
import { examples } from './help.ts'
import { moneyInWords } from './money.ts'
import { addServerOptions, withOperators } from './operator-client.ts'
import { printResult, sheet } from './print.ts'
import { inTable } from './withdrawal.ts'

const operations = () => import('../src/operators/member-operations.ts')

export const memberCommand = new Command('member')

memberCommand
  .command('show')
  .description(
    'Show a member: status, tier, bank account, available balance, recent withdrawals, and why a withdrawal would be refused.',
  )
  .argument('<member>', 'the member’s id, mem_…')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('member show mem_…'))
  .action(async (memberId: MemberId, options) => {
    const member = await withOperators(options, operations, api => api.inspectMember(memberId))
    printResult(options, { value: member, text: () => `${inWords(member)}\n\n${inTable(member.withdrawals)}` })
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
  .action(async (memberId: MemberId, { reason, ...options }) => {
    const result = await withOperators(options, operations, api => api.releaseMember(memberId, { reason }))
    const text = () => (result.released ? `${memberId} is released.` : `${memberId} was not held; nothing was changed.`)
    printResult(options, { value: result, text })
  })

addServerOptions(memberCommand)

function inWords({ bankAccount: account, refusal, ...member }: InspectedMember): string {
  return sheet({
    id: member.id,
    partner: member.partnerId,
    name: `${member.firstName} ${member.lastName}`,
    email: member.email,
    'worker id': member.workerId,
    status: member.status,
    tier: `${member.tier}, version ${member.tierVersion}`,
    account: account === null ? null : `…${account.lastFour} (check: ${account.check})`,
    'account refused': member.accountRefused,
    'held for review': member.reviewReason,
    'payroll enabled': member.enablePayroll ? 'yes' : 'no',
    available: moneyInWords(member.available),
    'can withdraw': refusal === null ? 'yes' : `no: ${refusal}`,
  })
}
