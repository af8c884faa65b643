import { type Money, money, toDecimal } from '@openwage/sdk'
import { useState } from 'preact/hooks'
import { admin } from '../../admin.ts'
import { Choice, Field, Form } from '../../components/form.tsx'
import { Drawer, KeyValues, Panel } from '../../components/layout.tsx'
import { Empty } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { toast } from '../../components/toast.tsx'
import { Amount, Id } from '../../components/values.tsx'
import { formatNumber, inWords, plural } from '../../format.ts'
import type { NewTierTerms, OperatorTier, PartnerId, TierPreview } from '../../generated/admin.ts'
import { reload, useLoaded } from '../../query.ts'

/** The tiers of a partner. A change shows what it would do to the members before it is saved. */
export function Tiers({ partnerId }: { partnerId: PartnerId }) {
  const [changing, setChanging] = useState<OperatorTier>()
  const { value, error } = useLoaded(`operator-tiers ${partnerId}`, () => admin.listTiers(partnerId))
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
    },
    { title: 'Paid by', cell: ({ feePayer }) => inWords(feePayer), isMinor: true },
    { title: 'Smallest', cell: ({ lowerLimit }) => <Amount money={lowerLimit} />, isFigure: true, isMinor: true },
    { title: 'Largest', cell: ({ upperLimit }) => <Amount money={upperLimit} />, isFigure: true, isMinor: true },
    { title: 'Members', cell: ({ members }) => formatNumber(members.active), isFigure: true },
    {
      title: 'Change',
      cell: tier => (
        <button type="button" class="text-button" onClick={() => setChanging(tier)}>
          Change
        </button>
      ),
    },
  ]
  return (
    <Panel isFlush title="Tiers">
      <Table
        label="Tiers"
        columns={columns}
        list={{ rows: value?.tiers, error }}
        keyOf={({ name }) => name}
        empty={<Empty title="No tiers yet" />}
      />
      <Drawer
        title={`Change ${changing?.name ?? ''}`}
        isOpen={changing !== undefined}
        onClose={() => setChanging(undefined)}
      >
        {changing && <Change partnerId={partnerId} tier={changing} onDone={() => setChanging(undefined)} />}
      </Drawer>
    </Panel>
  )
}

function Change({ partnerId, tier, onDone }: { partnerId: PartnerId; tier: OperatorTier; onDone: () => void }) {
  const [previewed, setPreviewed] = useState<{ terms: NewTierTerms; preview: TierPreview }>()
  if (previewed !== undefined)
    return (
      <>
        <Effect preview={previewed.preview} />
        <Form
          submit="Save for new withdrawals"
          onSubmit={async () => {
            await admin.saveTier(partnerId, tier.name, previewed.terms)
            toast(`${tier.name} has new terms`)
            reload('operator-tiers')
            onDone()
          }}
        >
          {() => <p>Intents and withdrawals that exist keep their fees.</p>}
        </Form>
        <div>
          <button type="button" class="button" onClick={() => setPreviewed(undefined)}>
            Back to the terms
          </button>
        </div>
      </>
    )
  const decimal = (value: Money | null) => (value === null ? '' : toDecimal(value))
  return (
    <Form
      submit="Show the effect"
      onSubmit={async fields => {
        const terms = termsOf(tier, fields)
        setPreviewed({ terms, preview: await admin.previewTier(partnerId, tier.name, terms) })
      }}
    >
      {problemOf => (
        <>
          <div class="form-row">
            <Field
              label={`Fee, ${tier.currency}`}
              name="feeFixed"
              value={decimal(tier.feeFixed)}
              problem={problemOf('feeFixed')}
              isRequired
            />
            <Field
              label="and basis points"
              name="feeBps"
              value={String(tier.feeBps)}
              problem={problemOf('feeBps')}
              isRequired
            />
          </div>
          <div class="form-row">
            <Field label="Smallest fee" name="feeMin" value={decimal(tier.feeMin)} problem={problemOf('feeMin')} />
            <Field label="Largest fee" name="feeMax" value={decimal(tier.feeMax)} problem={problemOf('feeMax')} />
          </div>
          <Choice
            label="The fee is paid by"
            name="feePayer"
            value={tier.feePayer}
            choices={[
              ['member', 'The member'],
              ['employer', 'The employer'],
            ]}
          />
          <div class="form-row">
            <Field
              label="Smallest withdrawal"
              name="lowerLimit"
              value={decimal(tier.lowerLimit)}
              problem={problemOf('lowerLimit')}
              isRequired
            />
            <Field
              label="Largest withdrawal"
              name="upperLimit"
              value={decimal(tier.upperLimit)}
              problem={problemOf('upperLimit')}
              isRequired
            />
          </div>
        </>
      )}
    </Form>
  )
}

function termsOf({ currency, version, ...tier }: OperatorTier, fields: Record<string, string>): NewTierTerms {
  const required = (name: string) => money(fields[name] ?? '', currency)
  const optional = (name: string) => ((fields[name] ?? '') === '' ? null : required(name))
  const { withdrawalsPerDay, withdrawalsPerCycle, payoutSpeed } = tier
  return {
    ...{ currency, version, withdrawalsPerDay, withdrawalsPerCycle, payoutSpeed },
    ...{ feeFixed: required('feeFixed'), feeMin: optional('feeMin'), feeMax: optional('feeMax') },
    feeBps: Number(fields.feeBps),
    feePayer: fields.feePayer === 'employer' ? 'employer' : 'member',
    ...{ lowerLimit: required('lowerLimit'), upperLimit: required('upperLimit') },
  }
}

/** What members would receive for withdrawing as much as possible now, compared with the terms in force. */
function Effect({
  preview: { hasChanged, openIntents, gain, lose, unchanged, most, isComplete },
}: {
  preview: TierPreview
}) {
  if (!hasChanged) return <p class="notice">These terms are already in force.</p>
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
      {!isComplete && <p class="notice">The tier is large: this is the effect on its oldest members.</p>}
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
