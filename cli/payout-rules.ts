import { Command } from 'commander'
import type { Settings } from '../src/config.ts'
import { inWords } from '../src/kernel/money.ts'
import { readRails, systemClock } from '../src/main.ts'
import * as notOurs from '../src/payouts/books/not-ours.ts'
import * as rules from '../src/payouts/books/rules.ts'
import { fileRailsOf } from '../src/payouts/channels/rail.ts'
import { asOption, loginOf, personOf, recordChange } from './actor.ts'
import { name } from './arguments.ts'
import { examples } from './help.ts'
import { addPaging, type Paging, pageOf } from './paging.ts'
import { countOf, printResult, table } from './print.ts'
import { withDatabase, withTransaction } from './with-database.ts'

const text = name({ lengthMax: notOurs.textCharsMax })

type Given = { rail: string; text: string; note: string; as?: string; json?: boolean }

export const closeAllCommand = new Command('close-all')
  .description(
    'Close all open exceptions about money whose bank text contains a text, because they are not ours. Without --fingerprint, only shows the exceptions that would be closed. Exceptions that may be about something of ours stay open.',
  )
  .requiredOption('--rail <rail>', 'the rail’s name in MIDMONTH_RAILS')
  .requiredOption('--text <text>', 'a text that the bank’s text contains, in any letter case', text)
  .option('--fingerprint <fingerprint>', 'close the exceptions that the preview with this fingerprint has shown')
  .option('--note <text>', 'with --fingerprint: why the entries are not ours', name({ lengthMax: 500 }))
  .addOption(asOption())
  .option('--json', 'print JSON')
  .addHelpText(
    'after',
    examples(
      'payouts exceptions close-all --rail sepa --text "account fee"',
      'payouts exceptions close-all --rail sepa --text "account fee" --fingerprint 5f1d… --note "charges of the bank"',
    ),
  )
  .action(async (given: Omit<Given, 'note'> & { note?: string; fingerprint?: string }) => {
    const { rail, text, fingerprint, note } = given
    if (fingerprint === undefined) {
      const found = await withDatabase(async (db, settings) => {
        await requireRail(settings, rail)
        return await notOurs.preview(db, { rail, text })
      })
      const next = found.count === 0 ? '' : `\n\nTo close them, add --note "…" --fingerprint ${found.fingerprint}`
      return printResult(given, { value: onWire(found), text: () => `${inTable(found)}${next}` })
    }
    if (note === undefined) throw new Error('Say with --note why the entries are not ours')
    const now = systemClock()
    const person = personOf(given.as)
    const closed = await withTransaction(async (tx, settings) => {
      await requireRail(settings, rail)
      const done = await notOurs.closeAll(tx, { rail, text, fingerprint, person, note, now })
      const details = { person, decision: 'ignore', text, note, ...onWire(done) }
      const change = { action: 'payout_exception.close_all', resourceId: rail, details } as const
      await recordChange(tx, { partnerId: null, change, now })
      return done
    })
    printResult(given, { value: onWire(closed), text: () => `${inTable(closed)}\n\nThey are closed.` })
  })

function onWire({ sums, ...rest }: notOurs.Matching) {
  return { ...rest, sums: sums.map(({ sum, ...each }) => ({ ...each, sum: Number(sum) })) }
}

function inTable({ sums, keptCount }: notOurs.Matching): string {
  const rows = sums.map(({ direction, count, currency, sum }) => ({
    money: direction,
    entries: `${count}`,
    sum: inWords({ amount: sum, currency }),
  }))
  const kept = `${countOf(keptCount, 'entry', 'entries')} with this text may be about something of ours and stay open.`
  const shown = rows.length === 0 ? 'No open exception with this text can be closed.' : table(rows)
  return keptCount === 0 ? shown : `${shown}\n\n${kept}`
}

export const payoutRulesCommand = new Command('rules').description(
  'Rules that close new entries of a bank with a text, because they are not ours.',
)

addPaging(payoutRulesCommand.command('list').description('List the rules, newest first.'), 'payoutRule')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('payouts rules list'))
  .action(async ({ json, ...paging }: Paging & { json?: boolean }) => {
    const asked = { before: paging.before, take: paging.take + 1 }
    const found = await withDatabase(async db => await rules.list(db, asked))
    const { shown, hasMore, more } = pageOf(found, paging)
    const rows = shown.map(({ id, rail, text, status, closedCount, proposedBy, confirmedBy, note }) => ({
      ...{ id, rail, text, status, closed: `${closedCount}` },
      ...{ 'proposed by': proposedBy, 'confirmed by': confirmedBy, note },
    }))
    printResult({ json }, { value: { rules: shown, hasMore }, text: () => table(rows) + more })
  })

payoutRulesCommand
  .command('create')
  .description(
    'Propose a rule, or confirm another person’s proposal by making the same rule. The rule only closes later entries.',
  )
  .requiredOption('--rail <rail>', 'the rail’s name in MIDMONTH_RAILS')
  .requiredOption('--text <text>', 'a text that the bank’s text contains, in any letter case', text)
  .requiredOption('--note <text>', 'why the entries are not ours', name({ lengthMax: 500 }))
  .addOption(asOption())
  .option('--json', 'print JSON')
  .addHelpText('after', examples('payouts rules create --rail sepa --text "account fee" --note "charges of the bank"'))
  .action(async ({ rail, text, note, as, json }: Given) => {
    const now = systemClock()
    const { rule, done, matching } = await withTransaction(async (tx, settings) => {
      await requireRail(settings, rail)
      const person = personOf(as)
      const by = { person, login: loginOf(), mayShareLogin: settings.MIDMONTH_APPROVAL_LOGINS === 'any' }
      const made = await rules.make(tx, { rail, text, note, by, now })
      const details = { person, rail, text, note, ...(made.done === 'confirmed' ? {} : { isProposed: true }) }
      const change = { action: 'payout_rule.create', resourceId: made.rule.id, details } as const
      if (made.done !== 'repeated') await recordChange(tx, { partnerId: null, change, now })
      return { ...made, matching: await notOurs.preview(tx, { rail, text }) }
    })
    const what =
      done === 'confirmed' ? 'is active' : 'is proposed; another person must make the same rule to confirm it'
    printResult(
      { json },
      { value: rule, text: () => `${rule.id} ${what}.\n\nOpen now, of what it is about:\n${inTable(matching)}` },
    )
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
    .option('--json', 'print JSON')
    .addHelpText('after', examples(`payouts rules ${verb} pxr_…`))
    .action(async (id: string, { as, json }: { as?: string; json?: boolean }) => {
      const now = systemClock()
      const rule = await withTransaction(async tx => {
        const person = personOf(as)
        const changed = await rules.change(tx, { id, verb, by: { person }, now })
        const change = { action: `payout_rule.${verb}`, resourceId: id, details: { person } } as const
        if (changed.hasChanged) await recordChange(tx, { partnerId: null, change, now })
        return changed.rule
      })
      printResult({ json }, { value: rule, text: () => `${id} is ${rule.status}.` })
    })

async function requireRail(settings: Settings, rail: string): Promise<void> {
  const rails = fileRailsOf(await readRails(settings))
  if (!rails.some(each => each.name === rail)) throw new Error(`There is no rail of files ${rail}; see MIDMONTH_RAILS`)
}
