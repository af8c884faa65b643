import { Type } from 'typebox'
import { csvHeaders } from '../http/bodies/csv.ts'
import { named, operation } from '../http/operation.ts'
import { exampleId, Id } from '../kernel/ids.ts'
import { described, strictObject } from '../kernel/schemas.ts'
import { journalDaysMax, openJournal } from '../verification/journal.ts'
import { Day } from './float-schema.ts'

const exportJournal = operation({
  route: 'GET /operator/v1/journal',
  isForOperators: true,
  mayReadReplica: true,
  tag: 'Finance',
  summary: 'Export the journal',
  description:
    'The books by day and account, for an accounting program. The withdrawals and pay runs of a day are one entry per reason; every other movement is an entry. The lines with one reference, reason and currency balance. Export days that are over: the current day can still grow.',
  query: strictObject({
    from: described(Day, 'The first day, by each partner’s time zone.'),
    to: described(Day, `The last day, at most ${journalDaysMax} days in all.`),
    partnerId: Type.Optional(Id('partner', 'Only this partner; by default, all partners.')),
  }),
  success: {
    description: 'The journal as a file.',
    csv: {
      description:
        'One line per day, partner, reference, account and side, with the amount in decimals either in `debit` or in `credit`. Spreadsheets read no cell as a formula.',
      example: `day,partner_id,reference,reason,account,debit,credit,currency\r\n2026-03-10,${exampleId('partner')},bank transfer 1,float.funded,float,5000.00,,GBP\r\n2026-03-10,${exampleId('partner')},bank transfer 1,float.funded,funding,,5000.00,GBP\r\n`,
    },
  },
  problems: ['NotFound'],
  async run({ query: { from: firstDay, to: lastDay, partnerId } }, { source, download }) {
    const parts = await openJournal(await source(), { partnerId, firstDay, lastDay })
    return download({ headers: csvHeaders(`journal-${firstDay}-${lastDay}.csv`), parts })
  },
})

export const journalOperations = named({ exportJournal })
