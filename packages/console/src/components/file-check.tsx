import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { DropZone } from './drop-zone.tsx'
import type { PageAction } from './page-action.ts'
import { SheetProblems } from './sheet.tsx'
import { Skeleton } from './states.tsx'

type Checked<Result> = { file: File; result?: Result; problem?: unknown }

type FileCheckProps<Result> = {
  /** What the preview is called. */
  label: string
  kinds?: string
  pageAction: PageAction
  note?: ComponentChildren
  check: (file: File) => PromiseLike<Result>
  children: (checked: {
    file: File
    result: Result
    discard: () => void
    /** Whether to accept no other file for now. */
    hold: (isHeld: boolean) => void
  }) => ComponentChildren
}

/**
 * Lets the service check a dropped file, and shows its errors or a preview.
 * @param props.check changes nothing
 * @param props.children the preview, with what confirms it
 */
export function FileCheck<Result>({ label, kinds, pageAction, note, check, children }: FileCheckProps<Result>) {
  const [checked, setChecked] = useState<Checked<Result>>()
  const [isHeld, hold] = useState(false)
  const take = async (file: File) => {
    setChecked({ file })
    // The reader may drop another file before the response arrives.
    const showIfCurrent = (shown: Checked<Result>) => setChecked(now => (now?.file === file ? shown : now))
    try {
      showIfCurrent({ file, result: await check(file) })
    } catch (problem) {
      showIfCurrent({ file, problem })
    }
  }
  const { file, result, problem } = checked ?? {}
  return (
    <>
      {!isHeld && (
        <DropZone label="Drop a file here" kinds={kinds} pageAction={pageAction} onFile={file => void take(file)} />
      )}
      {note}
      {file !== undefined && problem !== undefined && <SheetProblems file={file} error={problem} />}
      {file !== undefined && problem === undefined && (
        <section class="stack" aria-label={label}>
          <h2>{file.name}</h2>
          {result === undefined ? (
            <Skeleton lines={2} />
          ) : (
            children({ file, result, discard: () => setChecked(undefined), hold })
          )}
        </section>
      )}
    </>
  )
}
