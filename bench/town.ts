import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import type { Server } from './postgres.ts'
import { type Employer, seedEmployers, settle } from './seed.ts'
import { operate } from './service.ts'
import type { Workload } from './workloads.ts'
import type { Load } from './wrk.ts'

/** The employers in the template of every measured database: a big one, and a hundred small ones with as many members in all. */
export type Town = {
  template: string
  one: Employer
  keysOfOne: string
  keysOfHundred: string
  /** Of the first of the hundred; the others follow. */
  firstMemberOfHundred: number
  membersOfEach: number
  /** The first pending intent of the big employer's past. */
  firstPending: number
}

const template = 'bench_template'
const partners = 100

/** Seeds the template of all measured databases, so that they start equal. */
export async function buildTown(
  server: Server,
  { folder, productDir, members }: { folder: string; productDir: string; members: number },
): Promise<Town> {
  const url = await server.create(template)
  await operate(['migrate'], { databaseUrl: url, productDir })
  // A plan that is made while a table is empty scans it, and a service in use has no empty tables.
  const past = { intents: members, pending: 10_000 }
  const membersOfEach = members / partners
  const firstMemberOfHundred = 10_000_000
  const [one, ...hundred] = await seedEmployers(url, [
    { name: 'One', firstMember: 0, members, past },
    ...Array.from({ length: partners }, (_, index) => ({
      name: 'One of a hundred',
      firstMember: firstMemberOfHundred + index * membersOfEach,
      members: membersOfEach,
    })),
  ])
  assert(one !== undefined)
  await settle(url)
  return {
    ...{ template, one, firstMemberOfHundred, membersOfEach, firstPending: past.intents },
    keysOfOne: writeKeys(path.join(folder, 'one.keys'), [one]),
    keysOfHundred: writeKeys(path.join(folder, 'hundred.keys'), hundred),
  }
}

/** What of a workload is sent to whom. */
export function loadOf({ requests, isOfHundred, isHot }: Workload, town: Town): Omit<Load, 'firstIntent'> {
  const { one, keysOfOne, keysOfHundred, firstMemberOfHundred, membersOfEach } = town
  if (isOfHundred) {
    return { requests, keysFile: keysOfHundred, firstMember: firstMemberOfHundred, membersPerKey: membersOfEach }
  }
  return { requests, keysFile: keysOfOne, firstMember: one.firstMember, membersPerKey: isHot ? 1 : one.members }
}

/** Where the load generator finds the keys. */
export function writeKeys(file: string, employers: Employer[]): string {
  writeFileSync(file, employers.map(({ key }) => `${key}\n`).join(''))
  return file
}
