import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import type { Workload } from '../load/workloads.ts'
import type { Load } from '../load/wrk.ts'
import type { Server } from '../machine/postgres.ts'
import { operate } from '../machine/service.ts'
import { type Employer, seedEmployers, settle } from './seed.ts'

/**
 * The employers in the template of every measured database: a big one and, if a workload needs them, a hundred small ones with
 * as many members in all.
 */
export type Dataset = {
  template: string
  one: Employer
  keysOfOne: string
  hundred: Hundred | undefined
  /** The number of the first intent that the big employer's history leaves pending. */
  firstPending: number
}

type Hundred = { keysFile: string; firstMember: number; membersPerKey: number }

const template = 'bench_template'
const partners = 100

/** Seeds the template of all measured databases, so that they all start from the same state. */
export async function buildDataset(
  server: Server,
  {
    folder,
    productDir,
    members,
    hasHundred,
  }: { folder: string; productDir: string; members: number; hasHundred: boolean },
): Promise<Dataset> {
  const url = await server.create(template)
  await operate(['migrate'], { databaseUrl: url, productDir })
  // PostgreSQL plans a sequential scan for an empty table, and a service in use has no empty tables.
  const past = { intents: members, pending: 10_000 }
  const membersPerKey = members / partners
  const firstMember = 10_000_000
  const [one, ...others] = await seedEmployers(url, [
    { name: 'One', firstMember: 0, members, past },
    ...Array.from({ length: hasHundred ? partners : 0 }, (_, index) => ({
      name: 'One of a hundred',
      firstMember: firstMember + index * membersPerKey,
      members: membersPerKey,
    })),
  ])
  assert(one !== undefined)
  await settle(url)
  return {
    ...{ template, one, firstPending: past.intents },
    keysOfOne: writeKeys(path.join(folder, 'one.keys'), [one]),
    hundred: hasHundred
      ? { keysFile: writeKeys(path.join(folder, 'hundred.keys'), others), firstMember, membersPerKey }
      : undefined,
  }
}

/** Returns the requests of a workload with their API keys and members. */
export function loadOf({ requests, isOfHundred, isHot }: Workload, dataset: Dataset): Omit<Load, 'firstIntent'> {
  const { one, keysOfOne, hundred } = dataset
  if (isOfHundred) {
    assert(hundred !== undefined)
    return { requests, ...hundred }
  }
  return { requests, keysFile: keysOfOne, firstMember: one.firstMember, membersPerKey: isHot ? 1 : one.members }
}

/** Writes the file from which the load generator reads the API keys. @returns its path */
export function writeKeys(file: string, employers: Employer[]): string {
  writeFileSync(file, employers.map(({ key }) => `${key}\n`).join(''))
  return file
}
