import type { InspectedMember, MemberErasure, MemberId } from '../packages/console/src/generated/operator.ts'
import { name } from './arguments.ts'
import { moneyInWords } from './money.ts'
import { addServerOptions, OperatorCommand } from './operator-client.ts'
import { sheet } from './print.ts'
import { inTable } from './withdrawal.ts'

const operations = () => import('../src/operators/member-operations.ts')

export const memberCommand = new OperatorCommand('member', operations).description('Inspect a member of any partner.')

memberCommand
  .command('show')
  .description(
    'Show a member: status, tier, bank account, available balance, recent withdrawals, and why a withdrawal would be refused.',
  )
  .argument('<member>', 'the member’s id, mem_…')
  .examples('member show mem_…')
  .prints(
    (api, memberId: MemberId) => api.inspectMember(memberId),
    member => `${inWords(member)}\n\n${inTable(member.withdrawals)}`,
  )

memberCommand
  .command('release')
  .description(
    'Let a member withdraw again after a hold for review, or after a bank account was refused although it is correct.',
  )
  .argument('<member>', 'the member’s id, mem_…')
  .option('--reason <text>', 'reason for the audit log; must not contain personal data', name({ lengthMax: 200 }))
  .examples('member release mem_… --reason "The bank confirmed the account"')
  .prints(
    (api, memberId: MemberId, { reason }) => api.releaseMember(memberId, { reason }),
    (result, memberId) =>
      result.released ? `${memberId} is released.` : `${memberId} was not held; nothing was changed.`,
  )

memberCommand
  .command('erase')
  .description(
    'Destroy what identifies an offboarded member, for ever. The books stay. Prints a signed receipt; keep it. See docs/operations/erasure.md.',
  )
  .argument('<member>', 'the member’s id, mem_…')
  .option('--dry-run', 'only say what would be destroyed and kept, and what prevents it')
  .examples('member erase mem_… --dry-run', 'member erase mem_…')
  .prints(
    (api, memberId: MemberId, { dryRun = false }: { dryRun?: boolean }) =>
      api.eraseMemberOfPartner(memberId, { dryRun }),
    result => erasureInWords(result),
  )

addServerOptions(memberCommand)

function erasureInWords({ memberId, erasedAt, obstacles, destroyed, kept, receipt }: MemberErasure): string {
  const listed = (title: string, lines: string[]) =>
    lines.length === 0 ? [] : [title, ...lines.map(line => `  ${line}`), '']
  return [
    erasedAt === null ? `${memberId} was not erased.` : `${memberId} was erased on ${erasedAt}.`,
    '',
    ...listed('Prevents it:', obstacles),
    ...listed('Destroyed:', destroyed),
    ...listed(
      'Kept:',
      kept.map(({ what, until, rule }) => `${what} (${until === null ? 'for ever' : `until ${until}`}): ${rule}`),
    ),
    ...(receipt === null ? [] : ['Receipt:', receipt]),
  ]
    .join('\n')
    .trimEnd()
}

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
