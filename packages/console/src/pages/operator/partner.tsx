import { useState } from 'preact/hooks'
import { useRoute } from 'preact-iso'
import { admin } from '../../admin.ts'
import { act } from '../../components/act.ts'
import { ApiKeys } from '../../components/api-keys.tsx'
import { Field, Form } from '../../components/form.tsx'
import { Drawer, Figure, KeyValues, Page, Panel } from '../../components/layout.tsx'
import { Empty, Failure, Skeleton } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { toast } from '../../components/toast.tsx'
import { Amount, Day, Id, Time } from '../../components/values.tsx'
import { formatNumber, inWords } from '../../format.ts'
import type { Float, PartnerId } from '../../generated/admin.ts'
import { reload, useLoaded } from '../../query.ts'
import { PartnerStateOf } from './partners.tsx'
import { Tiers } from './tiers.tsx'

const back = { href: '/console/operator/partners', title: 'Partners' }

type Act = 'pause' | 'suspend'

export default function Partner() {
  const { id } = useRoute().params as { id: PartnerId }
  const { value, error, reload: retry } = useLoaded(`operator-partner ${id}`, () => admin.getPartner(id))
  const [doing, setDoing] = useState<Act>()
  if (value === undefined)
    return (
      <Page title="Partner" back={back}>
        {error === undefined ? <Skeleton lines={8} /> : <Failure error={error} onRetry={retry} />}
      </Page>
    )
  return (
    <Page
      title={value.name}
      back={back}
      actions={
        <>
          <a class="button" href={`/console/${id}`}>
            Open its pages
          </a>
          {value.paused ? (
            <button
              type="button"
              class="button"
              onClick={() => void act(() => admin.resumePartner(id, {}), 'Resumed', 'operator-partner')}
            >
              Resume
            </button>
          ) : (
            <button type="button" class="button" onClick={() => setDoing('pause')}>
              Pause
            </button>
          )}
          {value.suspended ? (
            <button
              type="button"
              class="button"
              onClick={() => void act(() => admin.restorePartner(id, {}), 'Restored', 'operator-partner')}
            >
              Restore
            </button>
          ) : (
            <button type="button" class="button" onClick={() => setDoing('suspend')}>
              Suspend
            </button>
          )}
        </>
      }
    >
      <div class="record-head">
        <PartnerStateOf state={value.state} />
        <Id id={id} isLink={false} />
        {(value.suspended ?? value.paused)?.reason && (
          <span class="record-to">{(value.suspended ?? value.paused)?.reason}</span>
        )}
      </div>
      <div class="figures">
        <Figure title="Active members" note={`${formatNumber(value.members.invited)} invited`}>
          {formatNumber(value.members.active)}
        </Figure>
        <Figure title="API keys" note={`${formatNumber(value.keys.revoked)} revoked`}>
          {formatNumber(value.keys.valid)}
        </Figure>
        {value.openCycle && (
          <Figure title="Open cycle" note="ends">
            <Day day={value.openCycle.endDate} short />
          </Figure>
        )}
      </div>
      <div class="columns">
        <div class="stack">
          <Floats floats={value.floats} />
          <Tiers partnerId={id} />
          <ApiKeys partnerId={id} />
        </div>
        <Panel title="Settings">
          <KeyValues
            entries={Object.entries(value.settings).map(([name, setting]) => [inWords(name), String(setting ?? '–')])}
          />
        </Panel>
      </div>
      <Drawer
        title={doing === 'pause' ? 'Pause withdrawals' : 'Suspend the partner'}
        isOpen={doing !== undefined}
        onClose={() => setDoing(undefined)}
      >
        <p>
          {doing === 'pause'
            ? 'Its members cannot withdraw until you resume. Pay runs and payouts continue.'
            : 'Its keys and its users are refused until you restore it.'}
        </p>
        <Form
          submit={doing === 'pause' ? 'Pause' : 'Suspend'}
          onSubmit={async ({ reason = '' }) => {
            const stop = doing === 'pause' ? admin.pausePartner : admin.suspendPartner
            await stop(id, reason === '' ? {} : { reason })
            toast(doing === 'pause' ? 'Paused' : 'Suspended')
            reload('operator-partner')
            setDoing(undefined)
          }}
        >
          {problemOf => (
            <Field
              label="Reason"
              name="reason"
              problem={problemOf('reason')}
              note="For the audit log; nothing personal"
            />
          )}
        </Form>
      </Drawer>
    </Page>
  )
}

const floatColumns: Column<Float>[] = [
  { title: 'Currency', cell: ({ currency }) => <b>{currency}</b> },
  { title: 'Float', cell: ({ float }) => <Amount money={float} />, isFigure: true },
  { title: 'On its way', cell: ({ pending }) => <Amount money={pending} />, isFigure: true, isMinor: true },
  { title: 'Free', cell: ({ free }) => <Amount money={free} />, isFigure: true },
  { title: 'Floor', cell: ({ floor }) => <Amount money={floor} />, isFigure: true, isMinor: true },
  { title: 'Low since', cell: ({ lowSince }) => <Time at={lowSince} />, isMinor: true },
]

function Floats({ floats }: { floats: Float[] }) {
  return (
    <Panel isFlush title="Float">
      <Table
        label="Float"
        columns={floatColumns}
        list={{ rows: floats }}
        keyOf={({ currency }) => currency}
        empty={<Empty title="No float yet" />}
      />
    </Panel>
  )
}
