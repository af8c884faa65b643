import { readdirSync, readFileSync, writeFileSync } from 'node:fs'

// USER_HZ, in which /proc counts: 100 on every architecture that Node runs on.
const ticksPerSecond = 100
const msPerTick = 1_000 / ticksPerSecond

type Stat = { pid: number; parent: number; name: string; ownTicks: number; reapedTicks: number }

/** CPU time, user and system, that a process and all below it have used so far, those that have ended included. */
export function cpuMsOf(rootPid: number): number {
  return treeOf(rootPid).reduce((sum, { ownTicks, reapedTicks }) => sum + (ownTicks + reapedTicks) * msPerTick, 0)
}

/** CPU time that the children of this process have used that have ended by now. */
export function cpuMsOfEndedChildren(): number {
  return (readStat('self')?.reapedTicks ?? 0) * msPerTick
}

/** Resident memory of a process and all below it. */
export function rssMbOf(rootPid: number): number {
  return treeOf(rootPid).reduce((sum, { pid }) => sum + rssKbOf(pid) / 1_024, 0)
}

/** The most resident memory that a process and those below it have each had since `resetPeakRss`. */
export function peakRssMbOf(rootPid: number): number {
  return treeOf(rootPid).reduce((sum, { pid }) => sum + peakRssKbOf(pid) / 1_024, 0)
}

/** Source: proc_pid_clear_refs(5). */
export function resetPeakRss(rootPid: number): void {
  for (const { pid } of treeOf(rootPid)) writeFileSync(`/proc/${pid}/clear_refs`, '5')
}

/**
 * The most resident memory that this process has had since `resetOwnPeakRss`. Without the processes below it: the bench starts
 * PostgreSQL, each of whose processes counts the shared buffers that it has touched.
 */
export function ownPeakRssMb(): number {
  return peakRssKbOf(process.pid) / 1_024
}

export function resetOwnPeakRss(): void {
  writeFileSync('/proc/self/clear_refs', '5')
}

/** The parent of a process, with its name; undefined when it does not run on this machine. */
export function parentOf(pid: number): { pid: number; name: string } | undefined {
  const stat = readStat(pid)
  const parent = stat && readStat(stat.parent)
  return parent && { pid: parent.pid, name: parent.name }
}

/** Reads until no process has started or ended meanwhile: one that ends between two reads would be missed by both. */
function treeOf(rootPid: number): Stat[] {
  let tree = readTree(rootPid)
  for (;;) {
    const again = readTree(rootPid)
    if (again.length === tree.length && again.every(({ pid }, index) => pid === tree[index]?.pid)) return again
    tree = again
  }
}

function readTree(rootPid: number): Stat[] {
  const all = readdirSync('/proc')
    .filter(name => /^[0-9]+$/.test(name))
    .flatMap(name => readStat(name) ?? [])
  const tree = all.filter(({ pid }) => pid === rootPid)
  // The list grows while it is walked: children of children follow their parents.
  for (const { pid } of tree) tree.push(...all.filter(({ parent }) => parent === pid))
  return tree
}

// Source: proc_pid_stat(5). The name is in brackets and may hold blanks and brackets itself.
function readStat(pid: number | string): Stat | undefined {
  const text = readProc(`${pid}/stat`)
  if (text === undefined) return undefined
  const nameEnd = text.lastIndexOf(')')
  const fields = text.slice(nameEnd + 2).split(' ')
  const field = (number: number) => Number(fields[number - 3])
  return {
    pid: Number.parseInt(text, 10),
    name: text.slice(text.indexOf('(') + 1, nameEnd),
    parent: field(4),
    ownTicks: field(14) + field(15),
    reapedTicks: field(16) + field(17),
  }
}

function rssKbOf(pid: number): number {
  return Number(/^VmRSS:\s+([0-9]+) kB$/m.exec(readProc(`${pid}/status`) ?? '')?.[1] ?? 0)
}

function peakRssKbOf(pid: number): number {
  return Number(/^VmHWM:\s+([0-9]+) kB$/m.exec(readProc(`${pid}/status`) ?? '')?.[1] ?? 0)
}

function readProc(file: string): string | undefined {
  try {
    return readFileSync(`/proc/${file}`, 'utf8')
  } catch {
    // It has ended meanwhile.
    return undefined
  }
}
