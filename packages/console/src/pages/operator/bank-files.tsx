import { ApiError } from '@midmonth/sdk'
import { useState } from 'preact/hooks'
import { DropZone } from '../../components/drop-zone.tsx'
import { formatNumber, plural } from '../../format.ts'
import type { Rail } from '../../generated/operator.ts'
import { operators } from '../../operators.ts'
import { messageOf } from '../../problems.ts'
import { reload } from '../../query.ts'

type ImportResult = {
  key: number
  name: string
  rail: string
  tone: 'calm' | 'good' | 'wait' | 'bad'
  message: string
}

/** A rejected file changes nothing. The API names the line if the file is readable. */
function refusalOf(error: unknown): string {
  if (!(error instanceof ApiError) || error.status >= 500) return messageOf(error)
  return error.issues[0]?.message ?? messageOf(error)
}

function skippedInWords(accounts: number): string {
  if (accounts === 0) return ''
  return accounts === 1
    ? ' 1 account in the file does not belong to this rail; its records were skipped.'
    : ` ${accounts} accounts in the file do not belong to this rail; their records were skipped.`
}

// Older results are in the list of bank files and in the audit log.
const resultsMax = 20

/** Imports files that an operator has downloaded from the bank: statements, reports and returns. Shows the result of each. */
export function BankFiles({ rails }: { rails: Rail[] }) {
  const [results, setResults] = useState<ImportResult[]>([])
  const byHand = rails.filter(({ isByHand }) => isByHand)
  if (byHand.length === 0 && rails.every(({ importing }) => importing.length === 0)) return null
  const upload = async (rail: string, file: File) => {
    const key = Date.now() + Math.random()
    const show = (tone: ImportResult['tone'], message: string) =>
      setResults(before =>
        [{ key, name: file.name, rail, tone, message }, ...before.filter(each => each.key !== key)].slice(
          0,
          resultsMax,
        ),
      )
    show('calm', 'Reading…')
    try {
      const { result, records, skippedAccounts } = await operators.importBankFile(rail, file, { name: file.name })
      if (result === 'repeated') show('wait', 'This file was imported before; nothing changed.')
      else show('good', `${plural(records, 'record')} imported.${skippedInWords(skippedAccounts)}`)
      reload('operator-')
    } catch (error) {
      show('bad', refusalOf(error))
    }
  }
  return (
    <div class="stack stack-s below-s">
      <div class="halves">
        {byHand.map(({ name, currency }) => (
          <DropZone
            key={name}
            label={`Drop the bank’s files for ${name} (${currency}) here`}
            kinds={null}
            takesMany
            onFile={file => void upload(name, file)}
          />
        ))}
      </div>
      <ul class="file-results" aria-live="polite" aria-label="Imported files">
        {rails.flatMap(({ importing }) =>
          importing.map(({ fileId, name, rail, records, applied }) => (
            <li key={fileId} class="file-result tone-calm">
              <b>{name}</b> <span class="quiet">for {rail}</span>
              <span>
                Importing: {formatNumber(applied)} of {plural(records, 'record')} so far. If the import stops, the
                worker continues it.
              </span>
            </li>
          )),
        )}
        {results.map(({ key, name, rail, tone, message }) => (
          <li key={key} class={`file-result tone-${tone}`}>
            <b>{name}</b> <span class="quiet">for {rail}</span>
            <span>{message}</span>
          </li>
        ))}
      </ul>
    </div>
  )
}
