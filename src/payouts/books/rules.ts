import { type Columns, type Reader, sql, type Tx } from '../../database/database.ts'
import { conflict, problem } from '../../kernel/errors.ts'
import { newId } from '../../kernel/ids.ts'
import { closeByRule, requireText } from './not-ours.ts'
import { proposeOrConfirm, withdrawProposal } from './proposals.ts'
import { lockRail } from './rail-lock.ts'
import type { Decider } from './two-people.ts'

// Rules close new entries that have a text, because they are not ours. Two people make a rule; one can stop it.

/** `proposed`: one person has made it, and it closes nothing. */
export const ruleStatuses = ['proposed', 'active', 'paused', 'ended'] as const
type RuleStatus = (typeof ruleStatuses)[number]

/** @property text folded: lower case, single blanks */
export type Rule = Columns<'payoutRules'> & {
  /** How many entries it has closed. */
  closedCount: number
}

/** `person`: the id of the key, for an operator key, of which one person can have two. */
type By = Decider & { isKey?: boolean }

/**
 * Proposes a rule, or confirms the one with the same text that another person has proposed.
 * @returns the rule, and what was done: `repeated` if the same person had proposed it
 * @throws Problem `Forbidden` for an operator key; `Conflict` if there is such a rule, or the person cannot count as another one
 */
export async function make(
  tx: Tx,
  { rail, text, note, by, now }: { rail: string; text: string; note: string; by: By; now: Date },
): Promise<{ rule: Rule; done: 'proposed' | 'repeated' | 'confirmed' }> {
  refuseKey(by)
  await lockRail(tx, { rail, for: 'records' })
  const folded = requireText(text)
  const known = (await select(tx, sql`rail = ${rail} and text = ${folded} and status <> 'ended'`))[0]
  if (known !== undefined && known.status !== 'proposed')
    throw conflict(`The rule ${known.id} already has this text and is ${known.status}`)
  const id = known?.id ?? newId('payoutRule', now)
  if (known === undefined)
    await sql`
      insert into payout_rules (id, rail, text, note, status, proposed_by, proposed_at)
      values (${id}, ${rail}, ${folded}, ${note}, 'proposed', ${by.person}, ${now})`.execute(tx)
  const done = await proposeOrConfirm(tx, { subject: id, decision: { rule: folded, rail }, note, by, now })
  if (done === 'confirmed')
    await sql`
      update payout_rules set status = 'active', confirmed_by = ${by.person}, confirmed_at = ${now}
       where id = ${id}`.execute(tx)
  return { rule: await requireRule(tx, id), done }
}

/** The changes to a rule that one person can make: from which statuses, and to which. */
const changes = {
  pause: { from: ['active'], to: 'paused' },
  resume: { from: ['paused'], to: 'active' },
  end: { from: ['proposed', 'active', 'paused'], to: 'ended' },
} as const satisfies Record<string, { from: readonly RuleStatus[]; to: RuleStatus }>
export type RuleChange = keyof typeof changes

/**
 * Pauses, resumes or ends a rule. Idempotent. Entries that it has closed stay closed.
 * @throws Problem `Conflict` if the rule's status does not allow it
 */
export async function change(
  tx: Tx,
  { id, verb, by, now }: { id: string; verb: RuleChange; by: By; now: Date },
): Promise<{ rule: Rule; hasChanged: boolean }> {
  // Stopping a rule is always allowed.
  if (verb === 'resume') refuseKey(by)
  const { rail } = await requireRule(tx, id)
  await lockRail(tx, { rail, for: 'records' })
  const rule = await requireRule(tx, id)
  const { from, to } = changes[verb]
  if (rule.status === to) return { rule, hasChanged: false }
  if (!from.some(status => status === rule.status)) throw conflict(`The rule is ${rule.status}, so it cannot be ${to}`)
  await sql`
    update payout_rules set status = ${to}, ended_at = ${to === 'ended' ? now : null} where id = ${id}`.execute(tx)
  if (rule.status === 'proposed') await withdrawProposal(tx, { subject: id, person: by.person, now })
  return { rule: await requireRule(tx, id), hasChanged: true }
}

/** Rules, newest first. @param asked.before an id: only older ones */
export async function list(
  db: Reader,
  { before, take }: { before?: string | undefined; take: number },
): Promise<Rule[]> {
  return await select(db, sql`${before === undefined ? sql`true` : sql`id < ${before}`} order by id desc limit ${take}`)
}

/**
 * Closes the new entries that rules match, each by the first matching rule. The caller has opened the entries in the same transaction, and
 * holds the lock of the rail's records.
 */
export async function applyRules(
  tx: Tx,
  { rail, fingerprints, now }: { rail: string; fingerprints: readonly string[]; now: Date },
): Promise<void> {
  if (fingerprints.length === 0) return
  const { rows } = await sql<Pick<Rule, 'id' | 'text' | 'note'>>`
    select id, text, note from payout_rules where rail = ${rail} and status = 'active' order by id`.execute(tx)
  for (const rule of rows) await closeByRule(tx, { rail, rule, fingerprints, now })
}

function refuseKey({ isKey = false }: By): void {
  if (isKey) throw problem('Forbidden', 'People make rules, in the console or by command; an operator key cannot')
}

async function requireRule(db: Reader, id: string): Promise<Rule> {
  const [rule] = await select(db, sql`id = ${id}`)
  if (rule === undefined) throw problem('NotFound', `There is no rule ${id}`)
  return rule
}

async function select(db: Reader, where: ReturnType<typeof sql>): Promise<Rule[]> {
  const { rows } = await sql<Rule>`
    select id, rail, text, note, status, proposed_by, proposed_at, confirmed_by, confirmed_at, ended_at,
           (select count(*)::integer from payout_exceptions where rule_id = r.id) as closed_count
      from payout_rules r where ${where}`.execute(db)
  return rows
}
