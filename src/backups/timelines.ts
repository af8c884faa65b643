import { stat } from 'node:fs/promises'
import { text as textOf } from 'node:stream/consumers'
import type { BaseBackup } from './base-backups.ts'
import { readSealed } from './sealed.ts'
import { type Archived, segmentsOf } from './wal-archive.ts'

// Each restore begins a new timeline of the WAL. Its history, which is archived too, says where it left the others.

/** A timeline of which the archive has WAL. */
export type Timeline = {
  number: number
  lastSegment: string
  /** When its last segment was archived. */
  archivedAt: Date
  /** Its ancestors, and the position at which it left each. Undefined if its history is not in the archive. */
  ancestors: ReadonlyMap<number, bigint> | undefined
}

// Of PostgreSQL's segments, unless initdb was told otherwise.
const segmentBytes = 16n * 1024n * 1024n

type Choice = { backups: readonly BaseBackup[]; wanted: number | undefined; identities: readonly string[] }

/**
 * Chooses the timeline that a restore follows.
 * @param options.backups of one server
 * @param options.wanted by default the timeline that was archived last
 * @throws Error with a sentence for the operator if another one may be meant, or its history is missing
 */
export async function chooseTimeline(
  archive: readonly Archived[],
  { backups, wanted, identities }: Choice,
): Promise<Timeline> {
  const all = await readTimelines(archive, identities)
  const latest = all.toSorted((a, b) => a.archivedAt.getTime() - b.archivedAt.getTime()).at(-1)
  const chosen = wanted === undefined ? latest : all.find(({ number }) => number === wanted)
  if (chosen === undefined)
    throw new Error(`The archive has no WAL${wanted === undefined ? '' : ` of timeline ${wanted}`}`)
  if (chosen.ancestors === undefined)
    throw new Error(
      `The archive lacks the history of timeline ${chosen.number}, ${nameOf(chosen.number)}.history: find it in pg_wal of the server, or restore another timeline with --timeline`,
    )
  // A backup says that the server on this timeline is the one that counts.
  const backedUpAt = backups
    .filter(({ firstSegment }) => timelineOf(firstSegment) === chosen.number)
    .map(({ startedAt }) => new Date(startedAt))
    .at(-1)
  const isLeft = ({ number, lastSegment, archivedAt }: Timeline) =>
    endOf(lastSegment) > leftAt(chosen, number) && (backedUpAt === undefined || archivedAt > backedUpAt)
  if (wanted === undefined && all.some(isLeft))
    throw new Error(
      `The archive has WAL of several timelines, since a restore begins a new one: ${all.map(inWords).join(', ')}. Choose one with midmonth restore --timeline, or run midmonth backup take on the server that counts`,
    )
  return chosen
}

async function readTimelines(archive: readonly Archived[], identities: readonly string[]): Promise<Timeline[]> {
  const files = new Map(archive.map(each => [each.segment, each.file]))
  const last = new Map(segmentsOf(archive).map(segment => [timelineOf(segment), segment]))
  return await Promise.all(
    [...last].map(async ([number, lastSegment]) => {
      const history = files.get(`${nameOf(number)}.history`)
      const ancestors = history === undefined ? undefined : await readHistory(history, identities)
      return {
        ...{ number, lastSegment, archivedAt: (await stat(files.get(lastSegment) ?? '')).mtime },
        ancestors: number === 1 ? new Map() : ancestors,
      }
    }),
  )
}

async function readHistory(file: string, identities: readonly string[]): Promise<Map<number, bigint>> {
  const text = await textOf(readSealed(file, identities))
  return new Map(
    [...text.matchAll(/^\s*(\d+)\s+([0-9A-F]+)\/([0-9A-F]+)/gim)].map(([, number, high, low]) => [
      Number(number),
      (BigInt(`0x${high}`) << 32n) + BigInt(`0x${low}`),
    ]),
  )
}

/** Whether a backup was complete before the timeline left the one of the backup. */
export function descendsFrom(timeline: Timeline, { lastSegment }: BaseBackup): boolean {
  return endOf(lastSegment) <= leftAt(timeline, timelineOf(lastSegment))
}

/** Whether a segment holds WAL of the timeline or its ancestors. */
export function isInHistory(timeline: Timeline, segment: string): boolean {
  return endOf(segment) - segmentBytes < leftAt(timeline, timelineOf(segment))
}

/** Up to where the WAL of a timeline belongs to the history of another. */
function leftAt({ number, ancestors }: Timeline, other: number): bigint {
  return other === number ? 1n << 64n : (ancestors?.get(other) ?? 0n)
}

function endOf(segment: string): bigint {
  return (BigInt(`0x${segment.slice(8, 16)}`) << 32n) + (BigInt(`0x${segment.slice(16)}`) + 1n) * segmentBytes
}

function timelineOf(segment: string): number {
  return Number.parseInt(segment.slice(0, 8), 16)
}

function nameOf(timeline: number): string {
  return timeline.toString(16).toUpperCase().padStart(8, '0')
}

function inWords({ number, archivedAt }: Timeline): string {
  return `${number} (archived until ${archivedAt.toISOString()})`
}
