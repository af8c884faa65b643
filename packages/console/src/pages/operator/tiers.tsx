import { type Money, toDecimal } from '@midmonth/sdk'
import { announce } from '../../act.ts'
import { TextButton } from '../../components/button.tsx'
import { amountIn, Choice, Field, FieldProblems, orNull, readFields, wholeNumber } from '../../components/form.tsx'
import { DrawerButton, KeyValues } from '../../components/layout.tsx'
import { type Change, Changes, ReviewedForm } from '../../components/reviewed-form.tsx'
import { type Column, TablePanel } from '../../components/table.tsx'
import { Amount, Id } from '../../components/values.tsx'
import { formatMoney, formatNumber, inWords, plural } from '../../format.ts'
import {
  type NewTierTerms,
  type OperatorTier,
  type PartnerId,
  type TierPreview,
  type TierTermField,
  tierTermFields,
} from '../../generated/operator.ts'
import { operators } from '../../operators.ts'
import { useLoaded } from '../../query.ts'

type Currency = Money['currency']

/** The tiers of a partner. A change shows its effect on members before it is saved. */
export function Tiers({ partnerId }: { partnerId: PartnerId }) {
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
        <DrawerButton look={TextButton} text="Change" title={`Change ${tier.name}`}>
          {close => <Terms partnerId={partnerId} tier={tier} onDone={close} />}
        </DrawerButton>
      ),
      isFigure: true,
    },
  ]
  return (
    <TablePanel
      id="tiers"
      title="Tiers"
      aside={
        <DrawerButton text="New tier">
          {close => <Terms partnerId={partnerId} tier={null} onDone={close} />}
        </DrawerButton>
      }
      columns={columns}
      list={{ rows: value?.tiers, error }}
      keyOf={({ name }) => name}
      empty="No tiers yet"
      hint="A tier defines how much its members may withdraw, and for which fee."
    />
  )
}

type TermsOfTier = Omit<NewTierTerms, 'version' | 'currency'>
const formLines = [...Map.groupBy(tierTermFields, ({ line }) => line)]

/** A form for the terms of a tier, which shows their effect before they are saved. */
function Terms({ partnerId, tier, onDone }: { partnerId: PartnerId; tier: OperatorTier | null; onDone: () => void }) {
  return (
    <ReviewedForm<{ name: string; terms: NewTierTerms; preview: TierPreview }>
      submit="Show the effect"
      plan={async fields => {
        const name = tier?.name ?? fields.name ?? ''
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
        announce(
          tier === null ? `${name} created` : `Terms of ${name} changed`,
          'operator-tiers',
          'operator-partner',
          'operator-float',
        )
        onDone()
      }}
    >
      {tier === null && (
        <div class="form-row">
          <Field label="Name" name="name" note="Used in member imports" isRequired />
          <Field label="Currency" name="currency" value="GBP" note="Cannot be changed later" isRequired />
        </div>
      )}
      {formLines.map(([line, terms]) => (
        <div key={line} class="form-row">
          {terms.map(term => (
            <TermField key={term.name} term={term} tier={tier} />
          ))}
        </div>
      ))}
    </ReviewedForm>
  )
}

function TermField({ term, tier }: { term: TierTermField; tier: OperatorTier | null }) {
  const { name, label, kind, ifNull, note, byDefault, choices } = term
  const held = tier === null ? byDefault : tier[name]
  const value = typeof held === 'object' && held ? toDecimal(held) : String(held ?? '')
  if (choices !== undefined) {
    const all = ifNull === undefined ? choices : { '': ifNull, ...choices }
    return <Choice label={label} name={name} value={value} choices={all} />
  }
  return (
    <Field
      label={kind === 'amount' && tier !== null ? `${label}, ${tier.currency}` : label}
      name={name}
      value={value}
      note={kind === 'count' ? 'Leave empty for no limit' : note}
      isRequired={ifNull === undefined}
    />
  )
}

/** @throws FieldProblems */
function readTerms(tier: OperatorTier | null, fields: Record<string, string>): NewTierTerms {
  return readFields(fields, field => {
    const currency = tier?.currency ?? field('currency', text => text.toUpperCase() as Currency)
    const read = ({ name, kind, ifNull }: TierTermField) => {
      if (kind === 'choice') return fields[name] || null
      const parse = kind === 'amount' ? amountIn(currency) : wholeNumber
      return field<Money | number | null>(name, ifNull === undefined ? parse : orNull<Money | number>(parse))
    }
    const entered = Object.fromEntries(tierTermFields.map(term => [term.name, read(term)]))
    // The service validates the currency and the choices.
    return { currency, version: tier?.version ?? null, ...(entered as TermsOfTier) }
  })
}

/** Formats the terms for people. */
function linesOf(of: TermsOfTier): [string, string][] {
  return tierTermFields.map(({ name, label, kind, ifNull = '', choices }) => {
    const value = of[name]
    if (value === null) return [label, ifNull]
    if (choices !== undefined) return [label, choices[String(value)] ?? String(value)]
    if (kind === 'basisPoints') return ['Plus a share of the amount', `${formatNumber(Number(value) / 100)} %`]
    return [label, typeof value === 'object' ? formatMoney(value) : formatNumber(Number(value))]
  })
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
