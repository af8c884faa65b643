import type { LoggedRequest } from '@midmonth/sdk'
import { useRoute } from 'preact-iso'
import { api } from '../api.ts'
import { KeyValuesPanel, Page, Panel, PendingPage } from '../components/layout.tsx'
import { Code } from '../components/states.tsx'
import { HttpStatus, Id, State, Time } from '../components/values.tsx'
import { formatNumber } from '../format.ts'
import { at } from '../places.ts'
import { useLoaded } from '../query.ts'

export default function RequestPage() {
  const { id } = useRoute().params as { id: LoggedRequest['id'] }
  const { value, error, reload } = useLoaded(`request ${id}`, () => api.requests.get(id))
  const codes = useLoaded('errors', () => api.service.getErrors()).value ?? []
  if (value === undefined) return <PendingPage title="Request" error={error} onRetry={reload} />
  return (
    <Page title={`${value.method} ${value.route ?? value.path}`}>
      <div class="row row-wrap above">
        <HttpStatus status={value.status} />
        <span class="record-to">
          <Time at={value.createdAt} />, took {formatNumber(value.durationMs)} ms
        </span>
        {value.replayed && <State state="replayed" />}
      </div>
      <div class="columns">
        <div class="stack">
          {value.errorCodes.map(code => (
            <Panel key={code} title={code}>
              <p>{codes.find(row => row.code === code)?.when ?? 'See the error reference.'}</p>
            </Panel>
          ))}
          <Panel title="The same request as curl">
            <div class="stack stack-s">
              <Code text={curlOf(value)} label="Copy the request" />
              <p class="quiet">
                Bodies and queries are not stored because they may contain personal data. Fill them in yourself.
              </p>
            </div>
          </Panel>
        </div>
        <KeyValuesPanel
          entries={[
            ['Request', <Id key="id" id={value.id} isLink={false} />],
            [
              'Request id in the response',
              <Id key="request" id={value.requestId} isLink={false} isWhole={value.requestId.length < 40} />,
            ],
            [value.keyId.startsWith('usr_') ? 'User' : 'API key', <Id key="key" id={value.keyId} />],
            [
              'Idempotency key',
              value.idempotencyKey === null ? (
                '–'
              ) : (
                <a key="idempotency" href={`${at('requests')}?key=${encodeURIComponent(value.idempotencyKey)}`}>
                  {value.idempotencyKey}
                </a>
              ),
            ],
            ['Record', <Id key="resource" id={value.resourceId} />],
          ]}
        />
      </div>
    </Page>
  )
}

/** Formats the request as a command. Reads the key from the environment, to keep it out of the shell's history. */
function curlOf({ method, path, idempotencyKey }: LoggedRequest): string {
  const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
  const lines = [
    `curl ${method === 'GET' ? '' : `-X ${method} `}${quoted(location.origin + path)}`,
    `-H "x-api-key: $MIDMONTH_API_KEY"`,
    ...(idempotencyKey === null ? [] : [`-H ${quoted(`x-idempotency-key: ${idempotencyKey}`)}`]),
    ...(/^(POST|PUT|PATCH)$/.test(method) ? [`-H 'content-type: application/json'`, `-d '{ … }'`] : []),
  ]
  return lines.join(' \\\n  ')
}
