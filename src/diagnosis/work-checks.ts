import { inWords } from '../kernel/money.ts'
import { countOf } from '../kernel/text.ts'
import { addDays, dayIn } from '../kernel/time.ts'
import { isUnsent } from '../payouts/books/batch-lifecycle.ts'
import type { Batch } from '../payouts/books/batches.ts'
import { brakeInWords } from '../payouts/books/brakes.ts'
import { restoreInWords } from '../payouts/books/restores.ts'
import { fileRailsOf } from '../payouts/channels/rail.ts'
import type { Verification } from '../verification/verifications.ts'
import { type Check, type Facts, type Finds, hint, missing, railsOf, type SettingsFacts, warning } from './finding.ts'
import { progressInWords } from './progress.ts'

const limits = {
  // The slowest answers, Bacs returns, come two working days after the value date; a long weekend may lie between.
  answerDaysMax: 5,
  // A day, plus the hour that a verification may take.
  verifiedMsMax: 25 * 3_600_000,
}

/** The worker, and the work that waits for a person or a bank. */
export const workChecks: readonly Check<Facts>[] = [
  {
    name: 'workers',
    find: ({ workers }) =>
      workers.some(({ isAlive }) => isAlive)
        ? null
        : missing({ sentence: 'No worker is running, so nothing is paid', command: 'midmonth start --worker' }),
    fine: ({ workers }) => `${countOf(workers.filter(({ isAlive }) => isAlive).length, 'worker')} running`,
  },
  {
    name: 'restore',
    find: ({ restore }) =>
      restore === undefined
        ? null
        : missing({ sentence: restoreInWords(restore), command: 'midmonth payouts resume --note HOW' }),
    fine: () => '',
  },
  {
    name: 'batches',
    find: facts => [
      ...facts.heldRails.map(({ rail, heldAt, heldBy }) =>
        warning({
          sentence: `The rail ${rail} has been held since ${heldAt.toISOString()} by ${heldBy}, so nothing is sent through it`,
          command: `midmonth payouts release ${rail} --as PERSON`,
        }),
      ),
      ...facts.brakes.map(brake =>
        warning({
          sentence: `No batch of ${brake.rail} is approved automatically. ${brakeInWords(brake)}`,
          command: 'midmonth payouts list --status building',
        }),
      ),
      ...facts.batches.flatMap(batch => batchOf(batch, facts)),
    ],
    fine: () => 'No batch waits for a person or is late',
  },
  {
    name: 'exceptions',
    find: ({ openExceptions }) =>
      openExceptions === 0
        ? null
        : warning({
            sentence: `${countOf(openExceptions, 'answer')} of a bank did not fit and ${openExceptions === 1 ? 'needs' : 'need'} a decision`,
            command: 'midmonth payouts exceptions list',
          }),
    fine: () => 'No payout exception is open',
  },
  {
    name: 'bank files',
    find: ({ importing }) =>
      importing.map(each =>
        warning({
          sentence: `${progressInWords(each)}; unless an import runs, the worker continues it`,
          command: 'midmonth status',
        }),
      ),
    fine: () => 'No bank file is imported in part',
  },
  {
    name: 'bank accounts',
    find: ({ differences }) =>
      differences.map(({ id, reason }) =>
        warning({ sentence: reason, command: `midmonth payouts exceptions show ${id}` }),
      ),
    fine: () => 'The bank’s statements add up, as far as they have arrived',
  },
  {
    name: 'books',
    find: ({ verification, now }) => booksOf(verification, now),
    fine: ({ verification }) => `The books agreed on ${verification?.endedAt?.toISOString()}`,
  },
]

function booksOf(verification: Verification | undefined, now: Date): Finds {
  const command = 'midmonth ledger verify'
  const daily = 'verify the books daily'
  if (verification?.endedAt == null) return hint({ sentence: `No verification is recorded; ${daily}`, command })
  const at = verification.endedAt.toISOString()
  const broken = verification.checks?.find(({ disagreement }) => disagreement !== null)
  if (broken !== undefined) return warning({ sentence: `The books did not agree on ${at}: ${broken.rule}`, command })
  if (verification.checks === null)
    return warning({ sentence: `The verification of ${at} was interrupted: ${verification.problem}`, command })
  if (now.getTime() - verification.endedAt.getTime() <= limits.verifiedMsMax) return null
  return hint({ sentence: `The books were last verified on ${at}; ${daily}`, command })
}

function batchOf(batch: Batch, { now, ...facts }: SettingsFacts): Finds {
  const { id, status, held, cutOffAt, closedAt, valueDate, sentAt } = batch
  const rail = fileRailsOf(railsOf(facts)).find(({ name }) => name === batch.rail)
  const what = `${id} (${countOf(batch.paymentCount, 'payment')}, ${inWords({ amount: batch.controlTotal, currency: batch.currency })})`
  const today = dayIn(rail?.timeZone ?? 'UTC', now)
  if (isUnsent(status)) {
    const late = valueDate < today ? `, and its value date ${valueDate} has passed` : ''
    if (held)
      return warning({ sentence: `${what} is held${late}`, command: `midmonth payouts release ${id} --as PERSON` })
    // It still takes payments.
    if (closedAt === null && cutOffAt > now) return null
    if (status === 'building') {
      const command = `midmonth payouts approve ${id} --as PERSON`
      return warning({ sentence: `${what} waits for approval${late}`, command })
    }
    if (rail?.delivery === null) {
      const command = `midmonth payouts export ${id} --folder FOLDER`
      return warning({ sentence: `${what} waits to be exported and carried to the bank${late}`, command })
    }
    return late === '' ? null : warning({ sentence: `${what} was not sent${late}`, command: 'midmonth status' })
  }
  if (addDays(valueDate, limits.answerDaysMax) >= today) return null
  const since = sentAt === null ? '' : ` on ${sentAt.toISOString()}`
  return warning({
    sentence: `${what} was sent${since}, and the bank has not answered for all of it`,
    command: `midmonth payouts show ${id}`,
  })
}
