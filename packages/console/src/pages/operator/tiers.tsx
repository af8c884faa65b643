import { type Money, toDecimal } from '@midmonth/sdk'
import { useState } from 'preact/hooks'
import { amountIn, Choice, Field, FieldProblems, orNull, readFields, wholeNumber } from '../../components/form.tsx'
import { Drawer, KeyValues, Panel } from '../../components/layout.tsx'
import { type Change, Changes, ReviewedForm } from '../../components/reviewed-form.tsx'
import { Empty } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Amount, Id } from '../../components/values.tsx'
import { formatMoney, formatNumber, inWords, plural } from '../../format.ts'
import type { NewTierTerms, OperatorTier, PartnerId, TierPreview } from '../../generated/operator.ts'
import { operators } from '../../operators.ts'
import { reload, useLoaded } from '../../query.ts'
import { toast } from '../../toasts.ts'

type Currency = Money['currency']

/** The tiers of a partner. A change shows its effect on members before it is saved. */
export function Tiers({ partnerId }: { partnerId: PartnerId }) {
  const [changing, setChanging] = useState<OperatorTier | 'new'>()
  const { value, error } = useLoaded(`operator-tiers ${partnerId}`, () => operators.listTiers(partnerId))
  const columns: Column<OperatorTier>[] = [
    { title: 'Tier', cell: ({ name }) => <b>{name}</b> },
    { title: 'Version', cell: ({ version }) => formatNumber(version), isFigure: true, isMinor: true },
    {
      title: 'Fee',
      cell: ({ feeFixed, feeBps }) => (
        <>
          <Amount money={feeFixed} />
          {feeBps > 0 && ` + ${formatNumber(feeBps / 100)} %`}
        </>
      ),
      isLead: true,
    },
    { title: 'Paid by', cell: ({ feePayer }) => inWords(feePayer), isMinor: true },
    { title: 'Minimum', cell: ({ lowerLimit }) => <Amount money={lowerLimit} />, isFigure: true, isMinor: true },
    { title: 'Maximum', cell: ({ upperLimit }) => <Amount money={upperLimit} />, isFigure: true, isMinor: true },
    { title: 'Members', cell: ({ members }) => formatNumber(members.active), isFigure: true },
    {
      title: 'Change',
      isTitleHidden: true,
      cell: tier => (
        <button type="button" class="text-button" onClick={() => setChanging(tier)}>
          Change
        </button>
      ),
      isFigure: true,
    },
  ]
  return (
    <Panel
      id="tiers"
      isFlush
      title="Tiers"
      aside={
        <button type="button" class="button" onClick={() => setChanging('new')}>
          New tier
        </button>
      }
    >
      <Table
        label="Tiers"
        columns={columns}
        list={{ rows: value?.tiers, error }}
        keyOf={({ name }) => name}
        empty={<Empty title="No tiers yet">A tier defines how much its members may withdraw, and for which fee.</Empty>}
      />
      <Drawer
        title={changing === 'new' ? 'New tier' : `Change ${changing?.name ?? ''}`}
        isOpen={changing !== undefined}
        onClose={() => setChanging(undefined)}
      >
        {changing && (
          <Terms
            partnerId={partnerId}
            tier={changing === 'new' ? null : changing}
            onDone={() => setChanging(undefined)}
          />
        )}
      </Drawer>
    </Panel>
  )
}

const speeds: [string, string][] = [
  ['', 'Default of the bank'],
  ['standard', 'In the next batch'],
  ['instant', 'Instantly'],
]

type Planned = { terms: NewTierTerms; preview: TierPreview }

/** A form for the terms of a tier, which shows their effect before they are saved. */
function Terms({ partnerId, tier, onDone }: { partnerId: PartnerId; tier: OperatorTier | null; onDone: () => void }) {
  const nameOf = (fields: Record<string, string>) => tier?.name ?? fields.name ?? ''
  return (
    <ReviewedForm<Planned & { name: string }>
      submit="Show the effect"
      plan={async fields => {
        const name = nameOf(fields)
        if (name === '') throw new FieldProblems(new Map([['name', 'A tier needs a name']]))
        const terms = readTerms(tier, fields)
        return { name, terms, preview: await operators.previewTier(partnerId, name, terms) }
      }}
      review={({ name, terms, preview }) =>
        tier === null ? (
          <>
            <KeyValues entries={[['Tier', name], ['Currency', terms.currency], ...linesOf(terms)]} />
            <p>The tier has no members yet. Imports and requests assign members to a tier by its name.</p>
          </>
        ) : preview.hasChanged ? (
          <>
            <Changes label="Terms" changes={changesOf(tier, terms)} />
            <Effect preview={preview} />
            <p>Existing intents and withdrawals keep their fees.</p>
          </>
        ) : (
          <p class="notice">These terms are already in force.</p>
        )
      }
      confirm={({ preview }) =>
        tier === null ? 'Create the tier' : preview.hasChanged ? 'Save for new withdrawals' : null
      }
      onConfirm={async ({ name, terms }) => {
        await operators.saveTier(partnerId, name, terms)
        toast(tier === null ? `${name} created` : `Terms of ${name} changed`)
        reload('operator-tiers', 'operator-partner', 'operator-float')
        onDone()
      }}
    >
      {problemOf => termFields(tier, problemOf)}
    </ReviewedForm>
  )
}

/** Not a component: the form must know at once which problems have a field. */
function termFields(tier: OperatorTier | null, problemOf: (name: string) => string | undefined) {
  const amount = tier === null ? '' : `, ${tier.currency}`
  const decimal = (value: Money | null | undefined) => (value == null ? '' : toDecimal(value))
  return (
    <>
      {tier === null && (
        <div class="form-row">
          <Field label="Name" name="name" problem={problemOf('name')} note="Used in member imports" isRequired />
          <Field
            label="Currency"
            name="currency"
            value="GBP"
            problem={problemOf('currency')}
            note="Cannot be changed later"
            isRequired
          />
        </div>
      )}
      <div class="form-row">
        <Field
          label={`Fee${amount}`}
          name="feeFixed"
          value={tier === null ? '0' : decimal(tier.feeFixed)}
          problem={problemOf('feeFixed')}
          isRequired
        />
        <Field
          label="Plus basis points"
          name="feeBps"
          value={String(tier?.feeBps ?? 0)}
          problem={problemOf('feeBps')}
          note="Of the amount; 100 basis points are 1 %"
          isRequired
        />
      </div>
      <div class="form-row">
        <Field label="Minimum fee" name="feeMin" value={decimal(tier?.feeMin)} problem={problemOf('feeMin')} />
        <Field label="Maximum fee" name="feeMax" value={decimal(tier?.feeMax)} problem={problemOf('feeMax')} />
      </div>
      <Choice label="Who pays the fee" name="feePayer" value={tier?.feePayer ?? 'member'} choices={payers} />
      <div class="form-row">
        <Field
          label="Minimum withdrawal"
          name="lowerLimit"
          value={decimal(tier?.lowerLimit)}
          problem={problemOf('lowerLimit')}
          isRequired
        />
        <Field
          label="Maximum withdrawal"
          name="upperLimit"
          value={decimal(tier?.upperLimit)}
          problem={problemOf('upperLimit')}
          isRequired
        />
      </div>
      <div class="form-row">
        <Field
          label="Withdrawals per day"
          name="withdrawalsPerDay"
          value={String(tier?.withdrawalsPerDay ?? '')}
          problem={problemOf('withdrawalsPerDay')}
          note="Leave empty for no limit"
        />
        <Field
          label="Withdrawals per cycle"
          name="withdrawalsPerCycle"
          value={String(tier?.withdrawalsPerCycle ?? '')}
          problem={problemOf('withdrawalsPerCycle')}
          note="Leave empty for no limit"
        />
      </div>
      <Choice label="Payout speed" name="payoutSpeed" value={tier?.payoutSpeed ?? ''} choices={speeds} />
    </>
  )
}

const payers: [string, string][] = [
  ['member', 'The member'],
  ['employer', 'The employer'],
]

/** @throws FieldProblems */
function readTerms(tier: OperatorTier | null, fields: Record<string, string>): NewTierTerms {
  return readFields(fields, field => {
    // The service validates the currency.
    const currency = tier?.currency ?? field('currency', text => text.toUpperCase() as Currency)
    const optional = orNull(amountIn(currency))
    const count = orNull(wholeNumber)
    return {
      currency,
      version: tier?.version ?? null,
      feeFixed: field('feeFixed', amountIn(currency)),
      feeBps: field('feeBps', wholeNumber),
      feeMin: field('feeMin', optional),
      feeMax: field('feeMax', optional),
      feePayer: fields.feePayer as NewTierTerms['feePayer'],
      lowerLimit: field('lowerLimit', amountIn(currency)),
      upperLimit: field('upperLimit', amountIn(currency)),
      withdrawalsPerDay: field('withdrawalsPerDay', count),
      withdrawalsPerCycle: field('withdrawalsPerCycle', count),
      payoutSpeed: (fields.payoutSpeed || null) as NewTierTerms['payoutSpeed'],
    }
  })
}

type TermsOfTier = Omit<NewTierTerms, 'version'>

/** Formats the terms for people. */
function linesOf(terms: TermsOfTier): [string, string][] {
  const orNone = (value: Money | null) => (value === null ? '–' : formatMoney(value))
  const titleOf = (choices: [string, string][], key: string) => choices.find(([each]) => each === key)?.[1] ?? key
  return [
    ['Fee', formatMoney(terms.feeFixed)],
    ['Plus a share of the amount', `${formatNumber(terms.feeBps / 100)} %`],
    ['Minimum fee', orNone(terms.feeMin)],
    ['Maximum fee', orNone(terms.feeMax)],
    ['Who pays the fee', titleOf(payers, terms.feePayer)],
    ['Minimum withdrawal', formatMoney(terms.lowerLimit)],
    ['Maximum withdrawal', formatMoney(terms.upperLimit)],
    ['Withdrawals per day', terms.withdrawalsPerDay === null ? 'No limit' : formatNumber(terms.withdrawalsPerDay)],
    [
      'Withdrawals per cycle',
      terms.withdrawalsPerCycle === null ? 'No limit' : formatNumber(terms.withdrawalsPerCycle),
    ],
    ['Payout speed', titleOf(speeds, terms.payoutSpeed ?? '')],
  ]
}

function changesOf(before: TermsOfTier, after: TermsOfTier): Change[] {
  const old = new Map(linesOf(before))
  return linesOf(after).flatMap(([name, value]) =>
    old.get(name) === value ? [] : [{ name, before: old.get(name), after: value }],
  )
}

/** Compares the payout that members would receive if they withdrew the maximum now, under the new and the current terms. */
function Effect({ preview: { openIntents, gain, lose, unchanged, most, isComplete } }: { preview: TierPreview }) {
  return (
    <>
      <KeyValues
        entries={[
          [`${plural(gain.members, 'member')} better off`, <Amount key="gain" money={gain.total} />],
          [`${plural(lose.members, 'member')} worse off`, <Amount key="lose" money={lose.total} />],
          ['Unchanged', plural(unchanged, 'member')],
          ['Open intents, which keep their fees', formatNumber(openIntents)],
        ]}
      />
      {!isComplete && <p class="notice">The tier is large: the preview covers only its oldest members.</p>}
      {most.length > 0 && (
        <ul class="lines">
          {most.map(({ memberId, before, after }) => (
            <li key={memberId}>
              <Id id={memberId} isLink={false} />
              <span>
                <Amount money={before} /> → <Amount money={after} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </>
  )
}
