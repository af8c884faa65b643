import { useState } from 'preact/hooks'
import { useRoute } from 'preact-iso'
import { act } from '../../act.ts'
import { ActButton } from '../../components/act-button.tsx'
import { ApiKeys } from '../../components/api-keys.tsx'
import { Drawer, Figure, Page, Panel, PendingPage } from '../../components/layout.tsx'
import { ReasonForm } from '../../components/reason.tsx'
import { Day, Id } from '../../components/values.tsx'
import { formatNumber } from '../../format.ts'
import type { Partner as PartnerDetails, PartnerId } from '../../generated/operator.ts'
import { operators } from '../../operators.ts'
import { reload, useLoaded } from '../../query.ts'
import { toast } from '../../toasts.ts'
import { NextSteps } from './first-steps.tsx'
import { FloatPanel } from './floats.tsx'
import { PartnerStateOf } from './partners.tsx'
import { ChangeSettings, SettingValues } from './settings.tsx'
import { Tiers } from './tiers.tsx'

const back = { href: '/console/operator/partners', title: 'Partners' }

type Act = 'pause' | 'suspend' | 'settings'

export default function Partner() {
  const { id } = useRoute().params as { id: PartnerId }
  const { value, error, reload: retry } = useLoaded(`operator-partner ${id}`, () => operators.getPartner(id))
  const [doing, setDoing] = useState<Act>()
  const onDone = () => setDoing(undefined)
  const stop = async (stopping: PromiseLike<unknown>, done: string) => {
    await stopping
    toast(done)
    reload('operator-partner')
    onDone()
  }
  if (value === undefined) return <PendingPage title="Partner" back={back} error={error} onRetry={retry} />
  return (
    <Page title={value.name} back={back} actions={<Actions partner={value} onStop={setDoing} />}>
      <div class="record-head">
        <PartnerStateOf state={value.state} />
        <Id id={id} isLink={false} />
        {(value.suspended ?? value.paused)?.reason && (
          <span class="record-to">{(value.suspended ?? value.paused)?.reason}</span>
        )}
      </div>
      <NextSteps partner={value} />
      <div class="figures">
        <Figure title="Active members" note={`${formatNumber(value.members.invited)} invited`}>
          {formatNumber(value.members.active)}
        </Figure>
        <Figure title="API keys" note={`${formatNumber(value.keys.revoked)} revoked`}>
          {formatNumber(value.keys.valid)}
        </Figure>
        {value.openCycle && (
          <Figure title="Open cycle ends">
            <Day day={value.openCycle.endDate} short />
          </Figure>
        )}
      </div>
      <div class="columns">
        <div class="stack">
          <FloatPanel partnerId={id} />
          <Tiers partnerId={id} />
          <ApiKeys partnerId={id} />
        </div>
        <Panel
          title="Settings"
          aside={
            <button type="button" class="button" onClick={() => setDoing('settings')}>
              Change
            </button>
          }
        >
          <SettingValues values={value.settings} />
        </Panel>
      </div>
      <Drawer title="Settings" isOpen={doing === 'settings'} onClose={onDone}>
        <ChangeSettings partnerId={id} values={value.settings} onDone={onDone} />
      </Drawer>
      <Drawer title="Pause withdrawals" isOpen={doing === 'pause'} onClose={onDone}>
        <p>Members cannot withdraw until you resume withdrawals. Pay runs and payouts continue.</p>
        <ReasonForm submit="Pause" onSubmit={given => stop(operators.pausePartner(id, given), 'Paused')} />
      </Drawer>
      <Drawer title="Suspend the partner" isOpen={doing === 'suspend'} onClose={onDone}>
        <p>The partner’s API keys and users have no access until you restore the partner.</p>
        <ReasonForm submit="Suspend" onSubmit={given => stop(operators.suspendPartner(id, given), 'Suspended')} />
      </Drawer>
    </Page>
  )
}

function Actions({
  partner: { id, paused, suspended },
  onStop,
}: {
  partner: PartnerDetails
  onStop: (act: 'pause' | 'suspend') => void
}) {
  return (
    <>
      <a class="button" href={`/console/${id}`}>
        View as partner
      </a>
      <a class="button" href={`/console/operator/fees/${id}`}>
        Fees
      </a>
      {paused ? (
        <ActButton act={() => act(() => operators.resumePartner(id, {}), 'Resumed', 'operator-partner')}>
          Resume
        </ActButton>
      ) : (
        <button type="button" class="button" onClick={() => onStop('pause')}>
          Pause
        </button>
      )}
      {suspended ? (
        <ActButton act={() => act(() => operators.restorePartner(id, {}), 'Restored', 'operator-partner')}>
          Restore
        </ActButton>
      ) : (
        <button type="button" class="button" onClick={() => onStop('suspend')}>
          Suspend
        </button>
      )}
    </>
  )
}
