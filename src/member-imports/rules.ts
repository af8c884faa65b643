import { issue, issuesMax, Problem, type ProblemName } from '../kernel/errors.ts'
import { newId } from '../kernel/ids.ts'
import type { Change, MemberCommand } from '../members/changes.ts'
import { type Column, columnSpecs, type PartialProfile } from '../members/fields.ts'
import { changedFields } from '../members/rules.ts'
import type { MemberUpdate } from '../members/schema.ts'
import type { Read, RowFault } from './read-file.ts'
import type { Action, MemberAction } from './schema.ts'

// The decisions of an import that need no database.

/** How many members an import affects, by action. */
export type Plan = { invite: number; update: number; reinstate: number; offboard: number; unchanged: number }

export type Kind = 'actions' | 'file'

/** The action of a file's rows that have no step: a first import has a million invitations, a later one none. */
export type RestAction = 'Invite' | 'Unchanged'

export type OfImport = { partnerId: string; importId: string }

/** The properties of a file that determine what its rows mean. */
export type FileTerms = OfImport & { columns: Column[]; removesAccounts: boolean }

export const emptyPlan: Plan = { invite: 0, update: 0, reinstate: 0, offboard: 0, unchanged: 0 }

/** The plan among other columns of a row. */
export function planOf({ invite, update, reinstate, offboard, unchanged }: Plan): Plan {
  return { invite, update, reinstate, offboard, unchanged }
}

/** Counts steps by action. */
export function countActions(steps: { action: Action }[]): Plan {
  const plan = { ...emptyPlan }
  for (const { action } of steps) plan[keyOf[action]] += 1
  return plan
}

const keyOf = {
  Invite: 'invite',
  Update: 'update',
  Reinstate: 'reinstate',
  Offboard: 'offboard',
  Unchanged: 'unchanged',
} as const satisfies Record<Action, keyof Plan>

/** The plan of a file from the number of its steps by action. Its other rows have the rest action. */
export function planOfSteps(steps: Plan, { rowCount, restAction }: { rowCount: number; restAction: RestAction }): Plan {
  const rest = rowCount - steps.invite - steps.update - steps.reinstate - steps.unchanged
  return restAction === 'Invite'
    ? { ...steps, invite: steps.invite + rest }
    : { ...steps, unchanged: steps.unchanged + rest }
}

/** Counts what an import has to do. An unchanged row of a file is nothing to do; an action that changes nothing is reported. */
export function countSteps(kind: Kind, { invite, update, reinstate, offboard, unchanged }: Plan): number {
  return invite + update + reinstate + offboard + (kind === 'actions' ? unchanged : 0)
}

/** Classifies a change as one of the plan's actions. No import activates an invited member. */
export function actionOf(change: Change): Action {
  const { before, after } = change
  if (before === undefined) return 'Invite'
  if (before.status !== after.status) return after.status === 'inactive' ? 'Offboard' : 'Reinstate'
  return changedFields(change).length > 0 ? 'Update' : 'Unchanged'
}

/** Whether a file offboards so many members that a person must approve it. */
export function mustBeReviewed(
  { invite, update, reinstate, unchanged, offboard }: Plan,
  {
    membersBefore,
    offboardReviewPercent,
    offboardMax,
  }: { membersBefore: number; offboardReviewPercent: number; offboardMax: number | null },
): boolean {
  const isMany = offboard * 100 > membersBefore * offboardReviewPercent
  // An empty list is more often a mistake than intended.
  const offboardsAll = offboard > 0 && invite + update + reinstate + unchanged === 0
  return isMany || offboardsAll || (offboardMax !== null && offboard > offboardMax)
}

/** A row of a file as its stored columns say: null if the column is absent or the cell is empty. */
export type ImportRow = PartialProfile & { row: number }

/** The stored text of a required cell that could not be read. */
export const unreadText = ''

/**
 * Returns the change that a row makes to a member. An absent column changes nothing. An empty cell removes the value, or keeps it
 * if it cannot be null. An account is removed only if the upload says so, and only if the file has the columns for its kind.
 * @param hasIban whether the member is paid by IBAN
 */
export function updateOf(
  row: ImportRow,
  { columns, removesAccounts, hasIban }: Pick<FileTerms, 'columns' | 'removesAccounts'> & { hasIban: () => boolean },
): MemberUpdate {
  const update: Record<string, unknown> = {}
  for (const { name, field, emptyCell } of columnSpecs) {
    if (field === 'accountDetails' || !columns.includes(name)) continue
    const value = row[field]
    if (value === unreadText) continue
    if (value !== null || emptyCell === 'removes') update[field] = value
  }
  if (row.accountDetails !== null || (removesAccounts && columns.includes(hasIban() ? 'iban' : 'sort_code'))) {
    update.accountDetails = row.accountDetails
  }
  // Every value was checked by the schema of its column when the file was read.
  return update as MemberUpdate
}

/** Whether a command is refused because of an e-mail or a worker id of another member, who may give it up. */
export function isClash(refusal: Problem): boolean {
  return refusal.name === 'MemberAlreadyInvited'
}

/** Returns why a command is refused, as messages that need no context. */
export function faultsOf(refusal: Problem): string[] {
  if (refusal.name !== 'MemberAlreadyInvited') return refusal.issues.map(({ message }) => message)
  return [`another member, ${refusal.issues[0]?.memberId}, has the e-mail or the worker_id`]
}

/** The command of an action in a batch. */
export function commandOf(action: MemberAction, now: Date): MemberCommand {
  switch (action.type) {
    case 'Add': {
      const { type, ...wanted } = action
      return { type, memberId: newId('member', now), wanted }
    }
    case 'Replace': {
      const { type, memberId, ...wanted } = action
      return { type, memberId, wanted }
    }
    case 'Update': {
      const { type, memberId, ...wanted } = action
      return { type, memberId, wanted }
    }
    case 'Offboard':
      return action
    default:
      return action satisfies never
  }
}

/** Returns the planned action of a command. A command that is decided later counts as the action that it requests. */
export function actionFor(command: MemberCommand, decided: Change | Problem | undefined): Action {
  if (decided !== undefined && !(decided instanceof Problem)) return actionOf(decided)
  return command.type === 'Add' ? 'Invite' : 'Update'
}

/** A batch of actions, and the position of each member's last action. */
type Batch = { actions: MemberAction[]; positions: Map<string, number> }

/** Whether an import ahead may resolve a clash: the e-mail or the worker id belongs to a member that this batch does not add. */
export function mayBeResolved(refusal: Problem, { actions, positions }: Batch): boolean {
  const position = positions.get(String(refusal.issues[0]?.memberId))
  return isClash(refusal) && (position === undefined || actions[position]?.type !== 'Add')
}

/** The issues of a refused action. All issues of a batch share one status, even if they would differ alone. */
export function issuesOf(refusal: Problem, { actions, positions, index }: Batch & { index: number }) {
  const action = actions[index]
  if (action === undefined) return []
  const name = refusalNames[action.type]
  const extra = action.type === 'Add' ? { email: action.email } : { memberId: action.memberId }
  // A new member of the same batch has an id that the caller does not know yet, so its position is named.
  const holderId = String(refusal.issues[0]?.memberId)
  const position = isClash(refusal) ? positions.get(holderId) : undefined
  const isNew = position !== undefined && actions[position]?.type === 'Add'
  const messages = isNew ? [`actions.${position} has the same e-mail or workerId`] : faultsOf(refusal)
  return messages.map(message => ({ name, issue: issue(name, `actions.${index}: ${message}`, extra) }))
}

const refusalNames = {
  Add: 'InvalidAddMemberPayload',
  Replace: 'InvalidUpdateMemberPayload',
  Update: 'InvalidUpdateMemberPayload',
  Offboard: 'InvalidRemoveMemberPayload',
} as const satisfies Record<MemberAction['type'], ProblemName>

/**
 * The refusal of a file: one issue for each faulty row, in the order of the file, and a closing one that counts the rest.
 * @param planned the faults found by comparing rows; a row may also have faults in its cells
 */
export function faultyFile(
  read: Pick<Read, 'faults' | 'faultsMore' | 'rowCount' | 'readTo'>,
  planned: { faults: RowFault[]; faultsMore: number } = { faults: [], faultsMore: 0 },
): Problem {
  const byRow = new Map<number, Set<string>>()
  for (const { row, messages } of [...read.faults, ...planned.faults]) {
    byRow.set(row, new Set([...(byRow.get(row) ?? []), ...messages]))
  }
  const rows = [...byRow].sort(([a], [b]) => a - b)
  const issues = rows
    .slice(0, issuesMax)
    .map(([row, messages]) => issue('FileContent', [...messages].join('; '), { row: String(row) }))
  const more = rows.length - issues.length + read.faultsMore + planned.faultsMore
  if (more > 0) {
    const message = `at least ${more} more of the ${read.rowCount} rows checked are invalid`
    issues.push(issue('FileContent', message, { row: String(read.readTo) }))
  }
  return new Problem('FileContent', issues)
}
