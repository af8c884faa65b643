import { useRoute } from 'preact-iso'
import { act } from '../../act.ts'
import { ApiKeys } from '../../components/api-keys.tsx'
import { Button } from '../../components/button.tsx'
import { DrawerButton, Figure, Page, Panel, PendingPage } from '../../components/layout.tsx'
import { ReasonButton } from '../../components/reason.tsx'
import { Day, Id } from '../../components/values.tsx'
import { formatNumber } from '../../format.ts'
import type { Partner as PartnerDetails, PartnerId } from '../../generated/operator.ts'
import { operators } from '../../operators.ts'
import { useLoaded } from '../../query.ts'
import { NextSteps } from './first-steps.tsx'
import { FloatPanel } from './floats.tsx'
import { PartnerStateOf } from './partners.tsx'
import { ChangeSettings, SettingValues } from './settings.tsx'
import { Tiers } from './tiers.tsx'

export default function Partner() {
  const { id } = useRoute().params as { id: PartnerId }
  const { value, error, reload: retry } = useLoaded(`operator-partner ${id}`, () => operators.getPartner(id))
  if (value === undefined) return <PendingPage title="Partner" error={error} onRetry={retry} />
  return (
    <Page title={value.name} actions={<Actions partner={value} />}>
      <div class="row row-wrap above">
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
            <DrawerButton text="Change" title="Settings">
              {close => <ChangeSettings partnerId={id} values={value.settings} onDone={close} />}
            </DrawerButton>
          }
        >
          <SettingValues values={value.settings} />
        </Panel>
      </div>
    </Page>
  )
}

function Actions({ partner: { id, paused, suspended } }: { partner: PartnerDetails }) {
  return (
    <>
      <a class="button" href={`/console/${id}`}>
        View as partner
      </a>
      <a class="button" href={`/console/operator/fees/${id}`}>
        Fees
      </a>
      {paused ? (
        <Button act={() => act(() => operators.resumePartner(id, {}), 'Resumed', 'operator-partner')}>Resume</Button>
      ) : (
        <ReasonButton
          text="Pause"
          title="Pause withdrawals"
          change={given => operators.pausePartner(id, given)}
          done="Paused"
          reloads="operator-partner"
        >
          Members cannot withdraw until you resume withdrawals. Pay runs and payouts continue.
        </ReasonButton>
      )}
      {suspended ? (
        <Button act={() => act(() => operators.restorePartner(id, {}), 'Restored', 'operator-partner')}>Restore</Button>
      ) : (
        <ReasonButton
          text="Suspend"
          title="Suspend the partner"
          change={given => operators.suspendPartner(id, given)}
          done="Suspended"
          reloads="operator-partner"
        >
          The partner’s API keys and users have no access until you restore the partner.
        </ReasonButton>
      )}
    </>
  )
}
