import { mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Writable } from 'node:stream'
import { expect, onTestFinished, test } from 'vitest'
import { readInto } from './read-file.ts'

test('a file is read at a lower priority than requests are served with, where threads have priorities', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'openwage-read-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = path.join(folder, 'members.csv')
  await writeFile(file, 'email,first_name,last_name,phone,tier\nsam@example.com,Sam,Okafor,,Bronze\n')
  const copied: string[] = []
  const copy = () =>
    new Writable({
      write(rows, _encoding, done) {
        copied.push(String(rows))
        done()
      },
    })
  const before = nicenesses()
  await readInto(copy, {
    file: { fd: openSync(file, 'r'), kind: 'csv' },
    ...{ partnerId: 'par_1', jobId: 'maj_1', country: 'GB', today: '2026-03-31', tiers: [['Bronze', 'GBP']] },
    ...{ now: new Date('2026-03-31'), signal: new AbortController().signal },
  })
  expect(copied.join('')).toContain('sam@example.com')
  // An idle thread is kept for the next file.
  const added = nicenesses().filter(
    each => each.priority === 10 && !before.some(({ thread }) => thread === each.thread),
  )
  expect(added).toHaveLength(process.platform === 'linux' ? 1 : 0)
  expect(nicenesses().find(({ thread }) => thread === String(process.pid))?.priority ?? 0).toBe(0)
})

/** The nice value of each thread of this process. */
function nicenesses(): { thread: string; priority: number }[] {
  if (process.platform !== 'linux') return []
  return readdirSync('/proc/self/task').map(thread => {
    const stat = readFileSync(`/proc/self/task/${thread}/stat`, 'utf8')
    // The name, in parentheses, may contain spaces; the nice value is the 17th field after it.
    return { thread, priority: Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16]) }
  })
}
