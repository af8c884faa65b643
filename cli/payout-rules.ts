import type { ExceptionsClosed, PayoutRuleId } from '../packages/console/src/generated/operator.ts'
import { asOption } from './actor.ts'
import { name } from './arguments.ts'
import { moneyInWords } from './money.ts'
import { OperatorCommand, withOperators } from './operator-client.ts'
import { addPaging, nextPage } from './paging.ts'
import { countOf, printResult, table } from './print.ts'

const operations = () => import('../src/operators/not-ours-operations.ts')

export const closeAllCommand = new OperatorCommand('close-all', operations)
  .description(
    'Close all open exceptions about money whose bank text contains a text, because they are not ours. Without --fingerprint, only shows the exceptions that would be closed. Exceptions that may be about something of ours stay open.',
  )
  .requiredOption('--rail <rail>', 'the rail’s name in MIDMONTH_RAILS')
  .requiredOption('--text <text>', 'a text that the bank’s text contains, in any letter case')
  .option('--fingerprint <fingerprint>', 'close the exceptions that the preview with this fingerprint has shown')
  .option('--note <text>', 'with --fingerprint: why the entries are not ours', name({ lengthMax: 500 }))
  .addOption(asOption())
  .examples(
    'payouts exceptions close-all --rail sepa --text "account fee"',
    'payouts exceptions close-all --rail sepa --text "account fee" --fingerprint 5f1d… --note "charges of the bank"',
  )
  .action(async ({ rail, text, fingerprint, note, ...options }) => {
    if (fingerprint === undefined) {
      const found = await withOperators(options, operations, api => api.previewPayoutExceptions({ rail, text }))
      const next = found.count === 0 ? '' : `\n\nTo close them, add --note "…" --fingerprint ${found.fingerprint}`
      return printResult(options, { value: found, text: () => `${inTable(found)}${next}` })
    }
    if (note === undefined) throw new Error('Say with --note why the entries are not ours')
    const closed = await withOperators(options, operations, api =>
      api.closePayoutExceptionsByText({ rail, text, note, fingerprint }),
    )
    printResult(options, { value: closed, text: () => `${inTable(closed)}\n\nThey are closed.` })
  })

function inTable({ sums, keptCount }: Pick<ExceptionsClosed, 'sums' | 'keptCount'>): string {
  const rows = sums.map(({ direction, count, sum }) => ({
    money: direction,
    entries: `${count}`,
    sum: moneyInWords(sum),
  }))
  const kept = `${countOf(keptCount, 'entry', 'entries')} with this text may be about something of ours and stay open.`
  const shown = rows.length === 0 ? 'No open exception with this text can be closed.' : table(rows)
  return keptCount === 0 ? shown : `${shown}\n\n${kept}`
}

export const payoutRulesCommand = new OperatorCommand('rules', operations).description(
  'Rules that close new entries of a bank with a text, because they are not ours.',
)

addPaging(payoutRulesCommand.command('list').description('List the rules, newest first.'), 'payoutRule')
  .examples('payouts rules list')
  .prints(
    (api, { take, before: after }) => api.listPayoutRules({ take, after }),
    page => {
      const rows = page.rules.map(({ id, rail, text, status, closedCount, proposedBy, confirmedBy, note }) => ({
        ...{ id, rail, text, status, closed: `${closedCount}` },
        ...{ 'proposed by': proposedBy, 'confirmed by': confirmedBy, note },
      }))
      return table(rows) + nextPage(page.rules, page)
    },
  )

payoutRulesCommand
  .command('create')
  .description(
    'Propose a rule, or confirm another person’s proposal by making the same rule. The rule only closes later entries.',
  )
  .requiredOption('--rail <rail>', 'the rail’s name in MIDMONTH_RAILS')
  .requiredOption('--text <text>', 'a text that the bank’s text contains, in any letter case')
  .requiredOption('--note <text>', 'why the entries are not ours', name({ lengthMax: 500 }))
  .addOption(asOption())
  .examples('payouts rules create --rail sepa --text "account fee" --note "charges of the bank"')
  .action(async ({ rail, text, note, ...options }) => {
    const { rule, matching } = await withOperators(options, operations, async api => ({
      rule: await api.createPayoutRule({ rail, text, note }),
      matching: await api.previewPayoutExceptions({ rail, text }),
    }))
    const what =
      rule.status === 'proposed' ? 'is proposed; another person must make the same rule to confirm it' : 'is active'
    printResult(options, {
      value: rule,
      text: () => `${rule.id} ${what}.\n\nOpen now, of what it is about:\n${inTable(matching)}`,
    })
  })

for (const [verb, description] of [
  ['pause', 'Pause a rule, so that it closes nothing until it is resumed.'],
  ['resume', 'Resume a paused rule.'],
  ['end', 'End an active, paused or proposed rule.'],
] as const)
  payoutRulesCommand
    .command(verb)
    .description(description)
    .argument('<rule>', 'the rule’s id, pxr_…')
    .addOption(asOption())
    .examples(`payouts rules ${verb} pxr_…`)
    .prints(
      (api, id: PayoutRuleId) => api[`${verb}PayoutRule`](id),
      (rule, id) => `${id} is ${rule.status}.`,
    )
