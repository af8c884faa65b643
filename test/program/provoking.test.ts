import { readFileSync } from 'node:fs'
import { afterEach, expect, test, vi } from 'vitest'
import { midmonth, newDatabase, type Served, serve, tidyUp } from './program.ts'

vi.setConfig({ testTimeout: 180_000 })
afterEach(tidyUp)

const guide = readFileSync(new URL('../../docs/reference/errors.md', import.meta.url), 'utf8')

test('the commands in docs/reference/errors.md trigger Forbidden and UnprocessableEntity in a sandbox, and undo them', async () => {
  const database = await newDatabase({ hasDemo: true })
  const service = await serve(database)
  const [partner] = JSON.parse((await midmonth(['partner', 'list', '--json'], database)).stdout)
  const run = async (command: string) => {
    expect(guide).toContain(`\`midmonth ${command}\``)
    const { code, stdout, stderr } = await midmonth(
      [...command.replace('par_…', partner.id).split(' '), ...(command.startsWith('key') ? ['--json'] : [])],
      database,
    )
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    return stdout
  }
  const answer = await ask(service, 'GET', '/v1/members?statuses=active')
  const { members } = (await answer.json()) as { members: { memberId: string }[] }
  const intent = { memberId: members[0]?.memberId, amount: { amount: 1_000, currency: 'GBP' } }
  const quote = async (key?: string) => outcomeOf(await ask(service, 'POST', '/v1/pay/withdrawals/intent', intent, key))
  const eventually = async (outcome: string) =>
    await vi.waitFor(async () => expect(await quote()).toBe(outcome), { timeout: 15_000 })

  // The outcome before any error is triggered.
  const ordinary = await quote()

  await run('partner pause par_…')
  await eventually('422 UnprocessableEntity')
  await run('partner resume par_…')
  await eventually(ordinary)
  await run('partner suspend par_…')
  await eventually('403 Forbidden')
  await run('partner restore par_…')
  await eventually(ordinary)
  const { secret } = JSON.parse(await run('key create par_… --scopes members:read'))
  expect(await quote(secret)).toBe('403 Forbidden')
})

async function ask(service: Served, method: string, path: string, body?: object, key = service.key) {
  return await fetch(`${service.address}${path}`, {
    method,
    headers: { 'x-api-key': key, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
}

async function outcomeOf(answer: Response): Promise<string> {
  const { issues = [] } = (await answer.json()) as { issues?: { code: string }[] }
  return [answer.status, ...issues.map(issue => issue.code)].join(' ')
}
