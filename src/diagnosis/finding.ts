import type { Retention } from '../kernel/retention.ts'
import type { Mode, PartnerState } from '../partners/partners.ts'
import type { Rail, RailFinding } from '../payouts/channels/rail.ts'
import type { FindingFacts } from './finding-facts.ts'

/** `missing`: until it is done, live mode cannot pay, or cannot pay every partner's members. `hint`: this program cannot check it. */
type Level = 'missing' | 'warning' | 'hint' | 'ok'

/** A sentence for the operator, and the command that does it or says more. Words in capitals in a command are placeholders. */
export type Finding = { check: string; level: Level; sentence: string; command: string | null }

export type Found = Omit<Finding, 'check'>

/** What a check finds; null for nothing. */
export type Finds = Found | null | readonly (Found | null)[]

/** The facts from the environment. */
export type SettingsFacts = {
  now: Date
  mode: Mode
  /** The path in MIDMONTH_RAILS; empty if it is not set. */
  railsFile: string
  /** Where people and partners reach the service; empty if it is not set. */
  publicUrl: string
  retention: Retention
  /** Why the file cannot be used, or the rails in it. */
  rails: string | readonly CheckedRail[]
}

/** A rail with what its channel has found. */
export type CheckedRail = Rail & { findings: readonly RailFinding[] }

export async function checkRails(rails: readonly Rail[]): Promise<CheckedRail[]> {
  return await Promise.all(rails.map(async rail => ({ ...rail, findings: await rail.check() })))
}

/** The facts from the database at one moment, and of its keys and journal. */
export type DatabaseFacts = FindingFacts & {
  isEmbedded: boolean
  /** The installation’s key and its place, and why it does not open what this database has sealed. */
  installationKey: { name: string; fault: string | undefined }
  /** Where the journal of erasures is, how many erasures it lacks that the database knows, and why it cannot be read. */
  erasureJournal: { place: string; unrecorded: number; fault: string | undefined } | undefined
}

/** Why the database cannot be inspected, and what to do. */
export type DatabaseFault = Pick<Finding, 'sentence' | 'command'>

export type Facts = SettingsFacts & DatabaseFacts

/** One thing that live mode needs. `fine` is the sentence if the check finds nothing. */
export type Check<Needed> = { name: string; find: (facts: Needed) => Finds; fine: (facts: Needed) => string }

export const missing = ({ sentence, command }: DatabaseFault): Found => ({ level: 'missing', sentence, command })
export const warning = ({ sentence, command }: DatabaseFault): Found => ({ level: 'warning', sentence, command })
export const hint = ({ sentence, command }: DatabaseFault): Found => ({ level: 'hint', sentence, command })

/** Partners whose requests are accepted. */
export function served(partners: readonly PartnerState[]): PartnerState[] {
  return partners.filter(({ suspendedAt }) => suspendedAt === null)
}

export function floatsOfServed({ partners, floats }: Pick<DatabaseFacts, 'partners' | 'floats'>) {
  return served(partners).flatMap(partner =>
    floats.filter(({ partnerId }) => partnerId === partner.id).map(each => ({ ...each, partner })),
  )
}

export function railsOf({ rails }: Pick<SettingsFacts, 'rails'>): readonly CheckedRail[] {
  return typeof rails === 'string' ? [] : rails
}

export function labelOf({ id, name }: PartnerState): string {
  return `${name} (${id})`
}

export function edit(file: string): string {
  return `\${EDITOR:-vi} '${file}'`
}
