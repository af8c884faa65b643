import { conflict } from '../../kernel/errors.ts'

// Some things take two people. Nothing tells whether a user of the console and a login of the operating system are the same person,
// so both decide in the console, or both by command.

/**
 * A person who decides.
 * @property login of the operating system, from which a second person may decide only if `mayShareLogin`; null for a user of the console
 */
export type Decider = { person: string; login?: string | null; mayShareLogin?: boolean }

/** A person who has decided before. */
type Earlier = { person: string; login: string | null }

/** Whether one of those who decided before is this person. */
export function hasDecided(earlier: readonly Earlier[], { person }: Decider): boolean {
  return earlier.some(each => sameName(each.person) === sameName(person))
}

/**
 * Refuses a person who cannot count as another one.
 * @param verb what people do: "approve the batch"
 * @throws Problem `Conflict`
 */
export function refuseUnlessAnother(
  earlier: readonly Earlier[],
  { verb, by: { login = null, mayShareLogin = false } }: { verb: string; by: Decider },
): void {
  if (earlier.some(each => (each.login === null) !== (login === null)))
    throw conflict(
      login === null
        ? `The first person decided by command, so another person must ${verb} by command, too`
        : `The first person decided in the console, so another person must ${verb} in the console, too`,
    )
  if (login !== null && !mayShareLogin && earlier.some(each => each.login === login))
    throw conflict(
      `Another person must ${verb} from another login: ${login} has decided before. MIDMONTH_APPROVAL_LOGINS=any allows this`,
    )
}

/**
 * Equal for spellings of one name that look alike: letter case, full width, invisible characters, blanks. A name that was given
 * is followed by the login in brackets, which makes no other person of it.
 */
function sameName(person: string): string {
  return person
    .replace(/ \([^()]*\)$/, '')
    .normalize('NFKC')
    .replace(/\p{Cf}/gu, '')
    .replace(/\s+/gu, ' ')
    .trim()
    .toLowerCase()
}
