import { Command } from 'commander'
import { sql } from '../src/db.ts'
import { totals, verify } from '../src/ledger/verify.ts'
import { examples } from './help.ts'
import { answer, print } from './print.ts'
import { withDatabase } from './with-database.ts'

export const ledgerCommand = new Command('ledger').description('The books.')

ledgerCommand
  .command('verify')
  .description(
    'Recompute everything from the rows and name the first that disagrees. Changes nothing; exit code 3 when the books disagree.',
  )
  .option('--json', 'print JSON')
  .addHelpText('after', examples('ledger verify'))
  .action(async ({ json }) => {
    const { checks, accounts } = await withDatabase(db =>
      db
        .transaction()
        .setIsolationLevel('repeatable read')
        .setAccessMode('read only')
        .execute(async tx => {
          // Reading all books may take as long as it takes; it holds nobody up.
          await sql`set local statement_timeout = 0`.execute(tx)
          return { checks: await verify(tx), accounts: await totals(tx) }
        }),
    )
    const broken = checks.filter(check => check.disagreement !== null)
    if (json) {
      const inMoney = accounts.map(({ debits, credits, currency, ...account }) => ({
        ...account,
        // A sum over all members may be more than any single amount can be.
        debits: { amount: debits, currency },
        credits: { amount: credits, currency },
      }))
      answer({ json }, { value: { agree: broken.length === 0, checks, accounts: inMoney }, text: () => '' })
    } else {
      print(
        accounts.map(({ partnerId, account, currency, debits, credits }) => ({
          partner: partnerId,
          account,
          currency,
          debits: String(debits),
          credits: String(credits),
        })),
        {},
      )
      console.log()
      for (const { rule, disagreement } of checks) {
        console.log(`${disagreement === null ? 'ok    ' : 'BROKEN'}  ${rule}`)
        if (disagreement === null) continue
        const { partnerId, subject, expected, found } = disagreement
        console.log(`        ${partnerId} ${subject}: expected ${expected}; found ${found}`)
      }
    }
    if (broken.length > 0) process.exitCode = 3
  })
