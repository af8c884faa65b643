import type { WithdrawalIntent } from '@midmonth/sdk'
import { useRoute } from 'preact-iso'
import { api } from '../api.ts'
import { KeyValuesPanel, Page, Panel, PendingPage, RecordHead } from '../components/layout.tsx'
import { MemberName } from '../components/member-name.tsx'
import { Skeleton } from '../components/states.tsx'
import { Amount, Id, State, Time } from '../components/values.tsx'
import { at } from '../places.ts'
import { useLoaded } from '../query.ts'
import { Rules } from './withdrawal.tsx'

const back = () => ({ href: at('withdrawals'), title: 'Withdrawals' })

export default function IntentPage() {
  const { id } = useRoute().params as { id: WithdrawalIntent['withdrawalIntentId'] }
  const { value, error, reload } = useLoaded(`intent ${id}`, () => api.withdrawals.getIntent(id))
  const explanation = useLoaded(`intent-explanation ${id}`, () => api.withdrawals.explainIntent(id)).value
  if (value === undefined) return <PendingPage title="Intent" back={back()} error={error} onRetry={reload} />
  return (
    <Page title="Intent" back={back()}>
      <RecordHead amount={value.netAmount}>
        <State state={value.status} />
        <span class="record-to">
          quoted <Time at={value.createdAt} />
        </span>
      </RecordHead>
      <div class="columns">
        <Panel title={`Decided by tier ${value.tier}, version ${value.tierVersion}`}>
          {explanation ? <Rules explanation={explanation} /> : <Skeleton lines={4} />}
        </Panel>
        <KeyValuesPanel
          entries={[
            ['Intent', <Id key="id" id={id} isLink={false} />],
            ['Member', <MemberName key="member" id={value.memberId} />],
            ['Amount', <Amount key="amount" money={value.amount} />],
            ['Fee', <Amount key="fee" money={value.fee} />],
            ['Payee name', value.payeeName],
            ['Expires', <Time key="expires" at={value.expiresAt} />],
            ['Withdrawal', <Id key="withdrawal" id={value.withdrawalId} />],
          ]}
        />
      </div>
    </Page>
  )
}
