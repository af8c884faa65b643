import { type Money, money, toDecimal } from '@midmonth/sdk'
import { TextButton } from '../../components/button.tsx'
import { amountIn, Field, FieldProblems, orNull, readFields, requireAmount } from '../../components/form.tsx'
import { DrawerButton } from '../../components/layout.tsx'
import { Changes, changedBy, ReviewedForm } from '../../components/reviewed-form.tsx'
import { type Column, TablePanel } from '../../components/table.tsx'
import { Amount, Id, Time } from '../../components/values.tsx'
import { formatMoney } from '../../format.ts'
import type { Float, Floats, PartnerId, SettlementDue } from '../../generated/operator.ts'
import { operators } from '../../operators.ts'
import { reload, useLoaded } from '../../query.ts'
import { toast } from '../../toasts.ts'

type Currency = Money['currency']
/** The balances of a partner's floats, and the actions that change them. */
export function FloatPanel({ partnerId }: { partnerId: PartnerId }) {
  const { value, error } = useLoaded(`operator-float ${partnerId}`, () => operators.getFloat(partnerId))
  const first = value?.floats[0]?.currency
  const columns: Column<Float>[] = [
    { title: 'Currency', cell: ({ currency }) => <b>{currency}</b> },
    { title: 'Float', cell: ({ float }) => <Amount money={float} />, isFigure: true },
    { title: 'Pending', cell: ({ pending }) => <Amount money={pending} />, isFigure: true, isMinor: true },
    { title: 'Free', cell: ({ free }) => <Amount money={free} />, isFigure: true, isMinor: true },
    { title: 'Not covered', cell: ({ uncovered }) => <Amount money={uncovered} />, isFigure: true, isMinor: true },
    { title: 'Floor', cell: ({ floor }) => <Amount money={floor} />, isFigure: true, isMinor: true },
    { title: 'Low since', cell: ({ lowSince }) => <Time at={lowSince} />, isMinor: true },
    {
      title: 'Change',
      isTitleHidden: true,
      cell: ({ currency, uncovered }) => (
        <span class="float-acts">
          {directions
            .filter(direction => direction !== 'cover' || uncovered.amount > 0)
            .map(direction => (
              <DrawerButton
                key={direction}
                look={TextButton}
                text={moves[direction].verb}
                title={`${moves[direction].title}, ${currency}`}
                pageAction={direction === 'fund' && currency === first ? 'fund-float' : undefined}
              >
                {close => <Move partnerId={partnerId} direction={direction} currency={currency} onDone={close} />}
              </DrawerButton>
            ))}
          <DrawerButton look={TextButton} text="Floor" title={`Set the floor, ${currency}`}>
            {close => <Floor partnerId={partnerId} currency={currency} onDone={close} />}
          </DrawerButton>
        </span>
      ),
      isFigure: true,
    },
  ]
  const dueColumns: Column<SettlementDue>[] = [
    { title: 'Settled', cell: ({ settledAt }) => <Time at={settledAt} /> },
    { title: 'Reference', cell: ({ reference }) => <Id id={reference} isWhole isLink={false} />, isMinor: true },
    { title: 'Outstanding', cell: ({ due }) => <Amount money={due} />, isFigure: true },
    {
      title: 'Change',
      isTitleHidden: true,
      cell: due => (
        <DrawerButton look={TextButton} text="Receive" title={`Receive settlement money, ${due.due.currency}`}>
          {close => <Receive partnerId={partnerId} due={due} onDone={close} />}
        </DrawerButton>
      ),
      isFigure: true,
    },
  ]
  return (
    <>
      <TablePanel
        id="float"
        title="Float"
        columns={columns}
        list={{ rows: value?.floats, error }}
        keyOf={({ currency }) => currency}
        empty="No float yet"
        hint="The first tier in a currency creates its float."
      />
      {value !== undefined && value.settlements.length > 0 && (
        <TablePanel
          title="Settlements awaiting payment"
          label="Settlements due"
          columns={dueColumns}
          list={{ rows: value.settlements }}
          keyOf={({ payCycleId, due }) => `${payCycleId} ${due.currency}`}
        />
      )}
    </>
  )
}

type ActProps = { partnerId: PartnerId; onDone: () => void }

/** Reads the current balances: the page may have been open for hours. */
async function readFloat(partnerId: PartnerId, currency: Currency): Promise<Float> {
  return floatIn(await operators.getFloat(partnerId), currency)
}

function floatIn({ floats }: Floats, currency: Currency): Float {
  const found = floats.find(each => each.currency === currency)
  if (found === undefined) throw new Error(`The partner has no float in ${currency}; create a tier first`)
  return found
}

// Guards against an extra digit. From this amount in major units, the operator types the amount twice.
const typedTwiceFrom = '10000'

function isLarge({ amount, currency }: Money): boolean {
  return Math.abs(amount) >= money(typedTwiceFrom, currency).amount
}

function RepeatedAmount({ amount }: { amount: Money }) {
  if (!isLarge(amount)) return null
  return (
    <Field
      label={`Repeat the amount, ${amount.currency}`}
      name="again"
      note="A large amount must be entered twice"
      isRequired
    />
  )
}

/** @throws FieldProblems unless a large amount was typed twice */
function requireRepeatedAmount(amount: Money, fields: Record<string, string>): void {
  if (isLarge(amount)) requireAmount(fields, 'again', { money: amount, what: 'the amount above' })
}

/** Compares the float before and after a movement of `amount` minor units, which may be negative. */
function Balances({ before: { float, pending, free, floor }, amount }: { before: Float; amount: number }) {
  const isLow = floor !== null && free.amount + amount < floor.amount
  return (
    <>
      <Changes
        label="Float"
        changes={[changedBy('Float', float, amount), changedBy('Pending', pending, 0), changedBy('Free', free, amount)]}
      />
      {isLow && (
        <p class="notice">
          The free amount would fall below the floor of {formatMoney(floor)}: members could not withdraw.
        </p>
      )}
    </>
  )
}

const directions = ['fund', 'withdraw', 'cover'] as const
const moves = {
  fund: {
    title: 'Fund the float',
    verb: 'Fund',
    isIn: true,
    result: 'will be recorded as paid into the float.',
    purpose: 'Record money that has arrived in the account that pays members.',
    limit: undefined,
    move: operators.fundFloat,
  },
  withdraw: {
    title: 'Withdraw from the float',
    verb: 'Withdraw',
    isIn: false,
    result: 'will be recorded as withdrawn from the float.',
    purpose: 'Record money that was taken out of the account that pays members, up to the free amount.',
    limit: ({ free }: Float) => ({ money: free, word: 'free' }),
    move: operators.withdrawFloat,
  },
  cover: {
    title: 'Cover the operator’s losses',
    verb: 'Cover',
    isIn: true,
    result: 'will be recorded as paid into the float by the operator.',
    purpose: 'Record your own money that has arrived in the account that pays members, to cover losses that you bear.',
    limit: ({ uncovered }: Float) => ({ money: uncovered, word: 'not covered' }),
    move: operators.coverFloat,
  },
} as const

function Move({
  partnerId,
  direction,
  currency,
  onDone,
}: ActProps & { direction: keyof typeof moves; currency: Currency }) {
  const { result, purpose, verb, isIn, limit } = moves[direction]
  return (
    <ReviewedForm
      plan={async fields => {
        const amount = readFields(fields, field => field('amount', amountIn(currency)))
        const { reference = '' } = fields
        const before = await readFloat(partnerId, currency)
        const bound = limit?.(before)
        if (bound !== undefined && amount.amount > bound.money.amount)
          throw new FieldProblems(new Map([['amount', `Only ${formatMoney(bound.money)} is ${bound.word}`]]))
        return { amount, reference, before }
      }}
      review={({ amount, before }) => (
        <>
          <p>
            <b>{formatMoney(amount)}</b> {result}
          </p>
          <Balances before={before} amount={isIn ? amount.amount : -amount.amount} />
          <RepeatedAmount amount={amount} />
        </>
      )}
      confirm={({ amount }) => `${verb} ${formatMoney(amount)}`}
      onConfirm={async ({ amount, reference }, fields) => {
        requireRepeatedAmount(amount, fields)
        const after = await moves[direction].move(partnerId, { amount, ...(reference === '' ? {} : { reference }) })
        const { float } = floatIn(after, currency)
        const { hasMoved } = after.movement
        toast(
          hasMoved
            ? `The float is now ${formatMoney(float)}`
            : 'A movement with this reference already exists; nothing was recorded',
          hasMoved ? {} : { kind: 'bad' },
        )
        finish(onDone)
      }}
    >
      <p>{purpose}</p>
      <MovementFields currency={currency} />
    </ReviewedForm>
  )
}

export function MovementFields({ currency, needsReference = false }: { currency: Currency; needsReference?: boolean }) {
  return (
    <>
      <Field label={`Amount, ${currency}`} name="amount" isRequired />
      <Field
        label="Reference"
        name="reference"
        note="For example, the bank’s reference. A second movement with the same reference has no effect"
        isRequired={needsReference}
      />
    </>
  )
}

function finish(onDone: () => void): void {
  reload('operator-float', 'operator-partner')
  onDone()
}

function Floor({ partnerId, currency, onDone }: ActProps & { currency: Currency }) {
  const { value } = useLoaded(`operator-float ${partnerId}`, () => operators.getFloat(partnerId))
  const floor = value?.floats.find(each => each.currency === currency)?.floor ?? null
  return (
    <ReviewedForm
      plan={async fields => ({
        floor: readFields(fields, field => field('floor', orNull(amountIn(currency)))),
        before: await readFloat(partnerId, currency),
      })}
      review={({ floor, before }) => (
        <>
          <Changes
            label="Floor"
            changes={[{ name: 'Floor', before: <Amount money={before.floor} />, after: <Amount money={floor} /> }]}
          />
          {floor !== null && before.free.amount < floor.amount && (
            <p class="notice">Only {formatMoney(before.free)} is free: members could not withdraw.</p>
          )}
        </>
      )}
      confirm={({ floor, before }) => (floor?.amount === before.floor?.amount ? null : 'Set the floor')}
      onConfirm={async ({ floor }) => {
        await operators.setFloatFloor(partnerId, { currency, floor })
        toast(floor === null ? 'The float no longer has a floor' : `The floor is now ${formatMoney(floor)}`)
        finish(onDone)
      }}
    >
      <Field
        label={`Floor, ${currency}`}
        name="floor"
        value={floor === null ? '' : toDecimal(floor)}
        note="Members cannot withdraw while the free amount is below the floor. Leave empty for no minimum"
      />
    </ReviewedForm>
  )
}

function Receive({ partnerId, due: { payCycleId, reference, due }, onDone }: ActProps & { due: SettlementDue }) {
  const { currency } = due
  return (
    <ReviewedForm
      plan={async fields => ({
        amount: readFields(fields, field => field('amount', text => money(text, currency))),
        before: await readFloat(partnerId, currency),
      })}
      review={({ amount, before }) => (
        <>
          <Balances before={before} amount={amount.amount} />
          <Changes label="Settlement" changes={[changedBy('Outstanding', due, -amount.amount)]} />
          <RepeatedAmount amount={amount} />
        </>
      )}
      confirm={({ amount }) => `Record ${formatMoney(amount)}`}
      onConfirm={async ({ amount }, fields) => {
        requireRepeatedAmount(amount, fields)
        await operators.receiveFloat(partnerId, { payCycleId, currency, amount })
        toast('Recorded')
        finish(onDone)
      }}
    >
      <p>
        Record money that has arrived for <code>{reference}</code> but is missing from the bank’s files.
        {due.amount < 0 && ' The employer is owed money: enter a payment to the employer as a negative amount.'}
      </p>
      <Field label={`Amount, ${currency}`} name="amount" value={toDecimal(due)} isRequired />
    </ReviewedForm>
  )
}
