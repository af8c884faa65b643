import { type BankStep, FileRails, isBankStep, members, ofMember, partners, type RailName } from './file-rails.ts'
import {
  type Beginning,
  type Currency,
  type Step as LifeStep,
  Model,
  Names,
  type Outcome,
  type Restriction,
  subjectOf,
} from './model.ts'

export type Step = LifeStep | BankStep

export const currencyOfRail: Record<RailName, Currency> = { euros: 'EUR', pounds: 'GBP' }

/** The float of each partner at the start, and the pay of each member: enough that only a test's own rules refuse anything. */
export const floatAtStart = 1_000_000_000n

/** The steps before those of a run. */
export function opening({ available }: { available: bigint }): Step[] {
  return partners.flatMap((partner): Step[] => [
    { do: 'fund float', partner, amount: floatAtStart, currency: 'EUR' },
    {
      do: 'upload pay run',
      lines: members
        .filter(each => ofMember(each).partner === partner)
        .map(member => ({ member, amount: available, currency: currencyOfRail[ofMember(member).rail] })),
    },
  ])
}

/** Several partners whose withdrawals are paid in files: the money rules of each, and the rails with their banks. */
export class World {
  readonly bank: FileRails
  readonly #models = new Map<string, Model>()
  readonly #names = new Names()

  constructor({ idOf, ...of }: Beginning & { idOf: (batch: string) => string }) {
    for (const partner of partners) this.#models.set(partner, new Model({ ...of, partner, names: this.#names }))
    const books = {
      isSubmitted: (name: string) => this.#modelWith(name).withdrawals.get(name)?.status === 'submitted',
      report: (withdrawal: string, ...[outcome, restriction]: [Outcome, Restriction | null]) => {
        this.#modelWith(withdrawal).reportPayout({ withdrawal, outcome, restriction })
      },
      move: (partner: string, rail: RailName, amount: bigint) =>
        this.#modelWith(partner).move({ amount, currency: currencyOfRail[rail] }),
    }
    this.bank = new FileRails({ now: of.now, books, idOf })
  }

  get now(): number {
    return this.bank.now
  }

  set now(to: number) {
    for (const each of [this.bank, ...this.#models.values()]) each.now = to
  }

  /** @returns the expected response of the program */
  apply(step: Step): string {
    if (isBankStep(step)) return this.bank.apply(step)
    switch (step.do) {
      case 'submit withdrawals': {
        const due = [...this.#models.values()].flatMap(model => model.submitDue())
        const number = ({ name }: { name: string }) => Number(name.slice(1))
        for (const each of due.sort((a, b) => number(a) - number(b))) this.bank.submit(each)
        return 'ok'
      }
      case 'poll withdrawals':
        this.bank.poll()
        return 'ok'
      case 'close cycles':
        for (const model of this.#models.values()) model.apply(step)
        return 'ok'
      default:
        return this.#modelWith(subjectOf(step) ?? '').apply(step)
    }
  }

  /** The expected observable state of the program, by name. */
  state(): Map<string, string> {
    const seen = this.bank.state()
    for (const [partner, model] of this.#models)
      for (const [key, value] of model.state()) seen.set(`${partner} ${key}`, value)
    return seen
  }

  isRestricted(member: string): boolean {
    return this.#modelWith(member).isRestricted(member)
  }

  available(member: string): bigint {
    return this.#modelWith(member).available(member)
  }

  newestIntent(): string {
    return `i${this.#names.count('i') - 1}`
  }

  /** The withdrawals that the bank has not ended. */
  unfinished(): string[] {
    const all = [...this.#models.values()].flatMap(({ withdrawals }) => [...withdrawals])
    return all.flatMap(([name, { status }]) => (status === 'held' || status === 'submitted' ? [name] : []))
  }

  #modelWith(name: string): Model {
    const found = [...this.#models.values()].find(model => model.has(name))
    if (found === undefined) throw new Error(`No partner has ${name}`)
    return found
  }
}
