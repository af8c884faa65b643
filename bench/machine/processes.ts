import { readdirSync, readFileSync, writeFileSync } from 'node:fs'

// USER_HZ, the unit of /proc: 100 on every architecture that Node runs on.
const ticksPerSecond = 100
const msPerTick = 1_000 / ticksPerSecond

type Stat = { pid: number; parent: number; name: string; ownTicks: number; reapedTicks: number }

/** The CPU time (user and system) of a process and all its descendants, including those that have exited. */
export function cpuMsOf(rootPid: number): number {
  return treeOf(rootPid).reduce((sum, { ownTicks, reapedTicks }) => sum + (ownTicks + reapedTicks) * msPerTick, 0)
}

/** The CPU time of this process's children that have exited. */
export function cpuMsOfEndedChildren(): number {
  return (readStat('self')?.reapedTicks ?? 0) * msPerTick
}

/** The resident memory of a process and all its descendants. */
export function rssMbOf(rootPid: number): number {
  return treeOf(rootPid).reduce((sum, { pid }) => sum + rssKbOf(pid) / 1_024, 0)
}

/** The sum of the peak resident memory of a process and of its descendants since `resetPeakRss`. */
export function peakRssMbOf(rootPid: number): number {
  return treeOf(rootPid).reduce((sum, { pid }) => sum + peakRssKbOf(pid) / 1_024, 0)
}

/** Resets the peaks that `peakRssMbOf` reads. Source: proc_pid_clear_refs(5). */
export function resetPeakRss(rootPid: number): void {
  for (const { pid } of treeOf(rootPid)) writeFileSync(`/proc/${pid}/clear_refs`, '5')
}

/**
 * The peak resident memory of this process since `resetOwnPeakRss`, without its descendants: the benchmark starts
 * PostgreSQL, and each PostgreSQL process counts the shared buffers that it has touched.
 */
export function ownPeakRssMb(): number {
  return peakRssKbOf(process.pid) / 1_024
}

export function resetOwnPeakRss(): void {
  writeFileSync('/proc/self/clear_refs', '5')
}

/** The pid and name of a process's parent; undefined if the process does not run on this machine. */
export function parentOf(pid: number): { pid: number; name: string } | undefined {
  const stat = readStat(pid)
  const parent = stat && readStat(stat.parent)
  return parent && { pid: parent.pid, name: parent.name }
}

/** Reads the tree until it is stable: a process that exits between two reads would be missed by both. */
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
  // The list grows during the loop: grandchildren follow their parents.
  for (const { pid } of tree) tree.push(...all.filter(({ parent }) => parent === pid))
  return tree
}

// Source: proc_pid_stat(5). The name is in brackets and may itself contain blanks and brackets.
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
    // The process has exited in the meantime.
    return undefined
  }
}
