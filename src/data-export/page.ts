import { type Currency, inWords } from '../kernel/money.ts'
import type { Section } from './export.ts'

const titles: Record<string, [title: string, about: string]> = {
  profile: ['You', 'What your employer has told this service about you.'],
  payCycles: ['Pay cycles', 'How your balance changed in each pay cycle, by reason.'],
  statement: ['Statement', 'Every change of your balance, newest first, also corrections and money given back.'],
  intents: ['Quotes', 'Withdrawals that were offered to you, also those that you did not make.'],
  withdrawals: ['Withdrawals', 'Each with everything that happened to it, and the account that it was paid to.'],
  imports: ['Lists', 'Changes of your data by lists of members that your employer sent, as long as they are kept.'],
  auditEntries: ['Trace', 'What was done to your data, and when it was shown.'],
  sessions: ['Sessions', 'Pages that were opened for you in the last hours.'],
}

const style =
  'body{font:16px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem}table{border-collapse:collapse;width:100%;font-size:.875rem}td,th{border-bottom:1px solid #ccc;padding:.25rem .5rem;text-align:left;vertical-align:top}section{overflow-x:auto}'

/** The export as a page that a person can read, save and print: without scripts and links. */
export async function* pageOf(sections: readonly Section[]): AsyncGenerator<string> {
  const values = Object.fromEntries(sections.flatMap(each => ('value' in each ? [[each.name, each.value]] : [])))
  yield `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Your data</title><style>${style}</style></head><body><h1>Your data</h1><p>Held for ${escaped(words(values.employer))}, as of ${words(values.generatedAt)}. Times are in UTC.${values.statementSince === null ? '' : ` Pay cycles and the statement begin on ${words(values.statementSince)}; ask your employer for older entries.`}</p>`
  for (const section of sections) {
    const [title, about] = titles[section.name] ?? []
    if (title === undefined || about === undefined) continue
    yield `<section><h2>${title}</h2><p>${about}</p><table>`
    if ('value' in section) {
      for (const [name, value] of Object.entries(section.value as object)) yield line([label(name), words(value)], 'th')
    } else {
      let isEmpty = true
      for await (const rows of section.pages)
        for (const row of (rows as object[]).map(flat)) {
          if (isEmpty) yield line(Object.keys(row).map(label), 'th', 'th')
          isEmpty = false
          yield line(Object.values(row).map(words))
        }
      if (isEmpty) yield line(['None'])
    }
    yield '</table></section>'
  }
  yield '</body></html>'
}

/** The fields of a withdrawal stand beside its account. */
function flat(row: object): object {
  if (!('withdrawal' in row)) return row
  const { withdrawal, ...rest } = row
  return { ...(withdrawal as object), ...rest }
}

function line(cells: string[], first = 'td', others = 'td'): string {
  const tags = cells.map((cell, index) => {
    const tag = index === 0 ? first : others
    return `<${tag}>${escaped(cell)}</${tag}>`
  })
  return `<tr>${tags.join('')}</tr>`
}

/** 'withdrawalIntentId' becomes 'Withdrawal intent id'. */
function label(name: string): string {
  const spaced = name.replace(/[A-Z]/g, letter => ` ${letter.toLowerCase()}`)
  return spaced.charAt(0).toUpperCase() + spaced.slice(1)
}

function words(value: unknown): string {
  if (value === null || value === undefined) return '–'
  if (value instanceof Date) return value.toISOString()
  if (typeof value === 'boolean') return value ? 'Yes' : 'No'
  if (typeof value !== 'object') return String(value)
  if (Array.isArray(value)) return value.map(words).join('; ') || '–'
  if (isMoney(value)) return inWords({ amount: BigInt(value.amount), currency: value.currency })
  const entries = Object.entries(value)
  return entries.map(([name, each]) => `${label(name)}: ${words(each)}`).join(', ') || '–'
}

function isMoney(value: object): value is { amount: number; currency: Currency } {
  return Object.keys(value).join() === 'amount,currency'
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, character => entities[character] ?? character)
}

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
