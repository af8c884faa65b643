import type { Step } from '../../components/layout.tsx'
import { Day, Id } from '../../components/values.tsx'
import { inWords } from '../../format.ts'
import type { Payout } from '../../generated/operator.ts'
import { hrefOfId } from '../../places.ts'

const tones: Record<string, Step['tone']> = { paid: 'good', failed: 'bad', returned: 'bad' }

/** Steps of the withdrawal's timeline: the payment's path through its batch and the bank's files. */
export function payoutSteps({ rail, createdAt, removedAt, batch, answers, exceptions }: Payout): Step[] {
  const link = batch === null ? null : <Id id={batch.id} />
  const steps: (Step | undefined)[] = [
    {
      ...{ key: 'payout', at: createdAt, tone: 'flow' },
      title: `Payment by ${rail}`,
      children: batch !== null && (
        <p>
          Value date <Day day={batch.valueDate} />, batch {link}
        </p>
      ),
    },
    batch?.approvedAt == null
      ? undefined
      : {
          ...{ key: 'payout approved', at: batch.approvedAt, tone: 'flow' },
          title: batch.approvedAutomatically ? 'Batch approved automatically: within the limits' : 'Batch approved',
        },
    // A removed payment is not in the file.
    batch?.sentAt == null || removedAt !== null
      ? undefined
      : {
          ...{ key: 'payout sent', at: batch.sentAt, tone: 'flow' },
          title: 'Batch sent to the bank',
          children: batch.fileName !== null && <p>File {batch.fileName}</p>,
        },
    removedAt === null
      ? undefined
      : { key: 'payout removed', at: removedAt, tone: 'bad', title: 'Removed from the batch by an operator' },
    // The removal already has a step.
    ...(removedAt === null ? answers : []).map(answerStep),
    ...exceptions.map(
      ({ id, kind, reason, openedAt, decision }): Step => ({
        ...{ key: id, at: openedAt, tone: decision === null ? 'wait' : 'calm' },
        title: (
          <>
            <a class="link" href={hrefOfId(id)}>
              Exception
            </a>
            : {inWords(kind).toLowerCase()}, {decision === null ? 'open' : inWords(decision).toLowerCase()}
          </>
        ),
        children: <p>{reason}</p>,
      }),
    ),
  ]
  return steps.filter(step => step !== undefined)
}

const sources = {
  bank: 'Answer from the bank',
  operator: 'Decided by an operator',
  midmonth: 'Recorded without an answer',
}

function answerStep(answer: Payout['answers'][number], index: number): Step {
  const { at, by, isAboutBatch, outcome, reason, fileName, line, bookedOn } = answer
  const title = isAboutBatch ? 'Answer about the batch' : sources[by]
  return {
    ...{ key: `payout answer ${index}`, at, tone: tones[outcome ?? ''] ?? 'calm' },
    title: outcome === null ? title : `${title}: ${inWords(outcome).toLowerCase()}`,
    children: (fileName !== null || reason !== null) && (
      <p>
        {fileName !== null && `File ${fileName}${line === null ? '' : `, line ${line}`}`}
        {bookedOn !== null && (
          <>
            , booked on <Day day={bookedOn} />
          </>
        )}
        {fileName !== null && reason !== null && ': '}
        {reason}
      </p>
    ),
  }
}
