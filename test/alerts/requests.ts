import { expect } from 'vitest'
import { get, type Served } from '../program/program.ts'

/** Sends a request of the partner, which must succeed. */
// biome-ignore lint/suspicious/noExplicitAny: a test that reads a wrong field fails anyway.
export async function post(service: Served, path: string, body: object): Promise<any> {
  const response = await fetch(`${service.address}${path}`, {
    method: 'POST',
    headers: { 'x-api-key': service.key, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const answer = await response.json()
  expect([200, 201], JSON.stringify(answer)).toContain(response.status)
  return answer
}

/** Finds the demo’s member who can withdraw. */
export async function findMember(service: Served): Promise<string | undefined> {
  const response = await get(service, { path: '/v1/members?emails=sam.okafor@example.com' })
  return /mem_[0-9a-z]{26}/.exec(await response.text())?.[0]
}
