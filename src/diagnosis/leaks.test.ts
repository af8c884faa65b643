import { expect, test } from 'vitest'
import { readSettings, Settings } from '../config.ts'
import { leakIn, secretsOf } from './leaks.ts'
import { logLineForSupport } from './support-log.ts'

test.each([
  ['{"a":"ada@example.com"}', 'an e-mail address'],
  ['host=postgres://midmonth:hunter2@db.internal/x', 'an address with a password'],
  ['account DE89370400440532013000.', 'a bank account'],
  ['token s3cret-token', 'the value of a setting'],
  ['node_modules/@midmonth/sdk 2026-01-01T00:00:00Z par_01m3t8qnc0eez91ph38k9447wk DE00370400440532013000', undefined],
])('before a bundle is written, %s is found as %s', (text, leak) => {
  expect(leakIn(text, ['s3cret-token'])).toBe(leak)
})

test.each([
  ['postgres://app:hunter2%20hunter2@db/x', ['hunter2%20hunter2', 'hunter2 hunter2']],
  ['postgres://app:p@ss-w0rd@db/x', ['p@ss-w0rd']],
  ['postgres://app:hunter2-100%@db/x', ['hunter2-100%']],
  ['postgres://app@db-1,db-2/x?password=hunter2-hunter2', ['hunter2-hunter2']],
  // Words that the program writes as well.
  ['postgres://midmonth:midmonth@db/x', []],
  ['postgres://app:on@db/x', []],
])('of %s, the secrets are the address and %j', (address, passwords) => {
  const secrets = new Set(secretsOf(readSettings({ DATABASE_URL: address })))
  expect(secrets).toEqual(new Set([address, ...passwords]))
})

test('every setting that is named like a secret or an address is one, or known not to be', () => {
  const unmarked = Object.entries(Settings.properties)
    .filter(([name, schema]) => /(KEY|KEY_ID|SECRET|TOKEN|PASSWORD|_URL)$/.test(name) && !('writeOnly' in schema))
    .map(([name]) => name)
  expect(unmarked).toEqual([...['MIDMONTH_PUBLIC_URL', 'MIDMONTH_VAULT_KEY', 'MIDMONTH_AWS_KMS_KEY', 'MIDMONTH_URL']])
})

test('of a log line, a bundle has only the program’s words, numbers, ids and places in the code', () => {
  const stack = [
    'Error: duplicate key (email)=(ada@example.com)',
    '    at async run (file:///home/ada/midmonth/src/batch/batch.ts:10:5)',
    '    at Socket.emit (node:events:519:28)',
    '    at Client.query (/srv/node_modules/.pnpm/pg@8.16.3/node_modules/pg/lib/client.js:1:2)',
  ].join('\n')
  const cause = { type: 'Error', message: 'secret', code: '23505', constraint: 'one_email', stack }
  const line = {
    ...{ level: 'error', time: '2026-01-01T00:00:00Z', msg: 'request failed', ms: 3, route: '/v1/members/:id' },
    ...{
      requestId: 'ada',
      partnerId: 'par_01m3t8qnc0eez91ph38k9447wk',
      address: '10.0.0.1',
      err: { type: 'Problem', cause },
    },
  }
  expect(JSON.parse(logLineForSupport(JSON.stringify(line)) ?? '')).toEqual({
    ...{ level: 'error', time: '2026-01-01T00:00:00Z', msg: 'request failed', ms: 3, route: '/v1/members/:id' },
    partnerId: 'par_01m3t8qnc0eez91ph38k9447wk',
    err: {
      type: 'Problem',
      cause: {
        ...{ type: 'Error', code: '23505', constraint: 'one_email' },
        stack: ['src/batch/batch.ts:10:5', 'events:519:28', 'node_modules/pg/lib/client.js:1:2'],
      },
    },
  })
  const listening = { level: 'info', time: '2026-01-01T00:00:00Z', msg: 'Server listening at http://10.0.0.1:8080' }
  expect(JSON.parse(logLineForSupport(JSON.stringify(listening)) ?? '').msg).toBe('Server listening at http://…')
  for (const other of ['', 'Killed', '[]', '{"msg":1}']) expect(logLineForSupport(other)).toBeUndefined()
})
