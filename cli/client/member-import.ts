import { setTimeout as wait } from 'node:timers/promises'
import { ApiError, ConnectionError } from '../../packages/sdk/src/errors.ts'
import type {
  MemberJob,
  MemberJobId,
  MemberJobPlan,
  MemberJobPreview,
} from '../../packages/sdk/src/generated/schemas.ts'
import type { Midmonth } from '../../packages/sdk/src/midmonth.ts'
import { asSentence } from '../../src/kernel/text.ts'
import { ask, isInteractive } from '../ask.ts'
import { countOf, table } from '../print.ts'
import { Progress } from '../progress.ts'
import { terminal, writeErrorLine, writeLine } from '../terminal.ts'
import type { Note } from './annotated-file.ts'
import { Unavailable } from './failure.ts'
import { bodyOf, fileToUpload } from './files.ts'
import { lookAt, type MemberFile, type MemberSource, requireUnchanged } from './member-source.ts'

const limits = {
  /** Members listed by name before asking for confirmation: one screen. */
  namedMax: 20,
  /** Errors shown: one screen. The result file has them all. */
  faultsShownMax: 20,
  /** The most errors in one response; an extra issue stands for the rest. */
  faultsMax: 1_000,
  /** Longest poll interval; backs off from 100 ms. */
  pollMsMax: 2_000,
  /** A job without progress for this long is probably waiting for a worker. */
  stillMsMax: 20_000,
}

type ImportOptions = { dryRun?: boolean; v1?: boolean; yes?: boolean; json?: boolean }
type RefusedRow = { row: number; message: string }

/**
 * Imports a complete list of members: runs a dry run, asks for confirmation if members would be offboarded, then imports
 * the file and waits for the job to end.
 * @throws Error with a message for the operator if nothing, or not everything, was imported
 */
export async function importMembers(
  midmonth: Midmonth,
  { file, options }: { file: MemberFile; options: ImportOptions },
): Promise<void> {
  const source = await lookAt(file)
  const print = options.json ? () => undefined : writeLine
  const printJson = (value: object) => options.json && writeLine(JSON.stringify(value, null, 2))
  const { memberJobs } = midmonth
  const upload = options.v1 ? memberJobs.createFromFile : memberJobs.createFromFileV2
  try {
    if (terminal().stderr.isTTY) writeErrorLine(`Checking ${source.path} …`)
    const preview = await upload(await fileToUpload(source.path), { dryRun: true })
    const { plan, needsReview } = preview
    print(tableOf(plan))
    if (needsReview)
      print('The import needs a review: it offboards a larger share of the members than the partner allows.')
    const isNothing = plan.invite + plan.update + plan.reinstate + plan.offboard === 0
    if (options.dryRun || isNothing) {
      print(isNothing ? 'Nothing to do.' : 'Dry run: nothing was imported.')
      printJson({ ...preview, jobId: null })
      return
    }
    if (plan.offboard > 0 && !options.yes) await confirmOffboarding(midmonth, preview)
    await requireUnchanged(source)
    // If more members would be offboarded by now, the job waits for a review and the command asks again.
    const { jobId } = await upload(await fileToUpload(source.path), { offboardMax: plan.offboard })
    print(`Started job ${jobId}.`)
    const job = await awaitJob(midmonth, { jobId, options, offboardMax: plan.offboard })
    const { result, counts } = await writeResult(midmonth, { source, jobId })
    const { reinstated, offboarded, unchanged, failed, ...more } = counts
    print(table([{ ...more, reinstated, offboarded, unchanged, failed }]))
    print(`Results by row: ${result}`)
    printJson({ jobId, status: job.progress.type, done: counts, result })
    if (failed > 0)
      throw new Error(`${countOf(failed, 'change')} could not be applied; see the result file for the reasons`)
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    if (error.issues.some(issue => issue.code === 'FileContent'))
      throw await explainFaults(error, { source, print, printJson })
    throw await withRemedy(midmonth, error)
  }
}

/** Approves a job and waits for it to end. */
export async function approve(midmonth: Midmonth, jobId: MemberJobId) {
  await midmonth.memberJobs.approve(jobId)
  return summaryOf(await follow(midmonth, jobId))
}

/** Rejects a job, which then changes nothing. */
export async function reject(midmonth: Midmonth, jobId: MemberJobId) {
  return summaryOf(await midmonth.memberJobs.reject(jobId))
}

/** Asks for confirmation to offboard. @throws Error if it is not given, or without a terminal */
async function confirmOffboarding(midmonth: Midmonth, { plan, offboard }: MemberJobPreview): Promise<void> {
  const howMany = `${plan.offboard} of ${await countMembers(midmonth)} members`
  if (!isInteractive()) {
    throw new Error(
      `${howMany} would be offboarded, and confirmation needs a terminal. Nothing was imported; check with --dry-run, then add --yes`,
    )
  }
  writeErrorLine(`\n${howMany} would be offboarded, because they are not in the file:\n`)
  writeErrorLine(await membersInTable(midmonth, offboard))
  if (plan.offboard > limits.namedMax) writeErrorLine(`and ${plan.offboard - limits.namedMax} more`)
  if (!(await ask('Offboarded members cannot withdraw.'))) throw new Error('Nothing was imported')
}

// Shows email addresses: ids mean nothing to a reader.
async function membersInTable(midmonth: Midmonth, memberIds: MemberJobPreview['offboard']): Promise<string> {
  const asked = memberIds.slice(0, limits.namedMax)
  const { members } = await midmonth.members.list({ memberIds: asked, take: asked.length })
  const emails = new Map(members.map(({ memberId, email }) => [memberId, email]))
  return table(asked.map(memberId => ({ member: memberId, email: emails.get(memberId) ?? null })))
}

async function countMembers(midmonth: Midmonth): Promise<number> {
  return (await midmonth.members.list({ statuses: ['active', 'invited'], take: 1 })).total
}

/** Waits for a job to end, and handles its review if it needs one. @throws Error if the job is rejected */
async function awaitJob(
  midmonth: Midmonth,
  { jobId, options, offboardMax }: { jobId: MemberJobId; options: ImportOptions; offboardMax: number },
): Promise<MemberJob> {
  let job = await follow(midmonth, jobId)
  if (job.progress.type === 'AwaitingReview') {
    const { offboard } = (await midmonth.memberJobs.listResults(jobId, { take: 1 })).plan
    // A confirmation for this many members covers the review: the preview said that one is needed.
    if (offboard > offboardMax && !options.yes) {
      const what = `The import would now offboard ${offboard} of ${await countMembers(midmonth)} members.`
      if (!isInteractive()) throw new Error(`${what} ${waysOfReview(jobId)}`)
      const isApproved = await ask(`${what} Approve it?`).catch(interrupted => {
        writeErrorLine(waysOfReview(jobId))
        throw interrupted
      })
      if (!isApproved) {
        await midmonth.memberJobs.reject(jobId)
        throw new Error(`Job ${jobId} was rejected; nothing was imported`)
      }
    }
    await midmonth.memberJobs.approve(jobId)
    writeErrorLine('Approved the review.')
    job = await follow(midmonth, jobId)
  }
  if (job.progress.type !== 'Completed') throw new Error(`Job ${jobId} was rejected; nothing was imported`)
  return job
}

/** Polls a job until it ends or needs a review. */
async function follow(midmonth: Midmonth, jobId: MemberJobId): Promise<MemberJob> {
  const progress = new Progress('Applying')
  let movedAtMs = performance.now()
  let doneBefore = 0
  let isToldOfQueue = false
  try {
    for (let pauseMs = 100; ; pauseMs = Math.min(pauseMs * 1.5, limits.pollMsMax)) {
      const job = await midmonth.memberJobs.get(jobId)
      const { type, totalComplete: done, totalActions: total } = job.progress
      if (type === 'Processing' || type === 'Completed') progress.show({ done, total })
      if (type !== 'Processing' && type !== 'NotReady') return job
      if (type === 'NotReady') {
        await requireNoReviewAhead(midmonth, jobId)
        if (!isToldOfQueue) writeErrorLine('The import is queued behind another job of this partner.')
        isToldOfQueue = true
      }
      if (done > doneBefore) movedAtMs = performance.now()
      doneBefore = done
      if (performance.now() - movedAtMs > limits.stillMsMax) {
        movedAtMs = Number.POSITIVE_INFINITY
        progress.end()
        writeErrorLine(
          'No progress. Is a worker running (midmonth start --worker)? Ctrl-C ends only this command; the import continues.',
        )
      }
      await wait(pauseMs)
    }
  } catch (error) {
    if (!(error instanceof ConnectionError)) throw error
    throw new Unavailable(`${asSentence(error.message)} Job ${jobId} continues without this command`, { cause: error })
  } finally {
    progress.end()
  }
}

type Counts = {
  invited: number
  updated: number
  reinstated: number
  offboarded: number
  unchanged: number
  failed: number
}

const countedAs: Record<string, keyof Counts> = {
  Invite: 'invited',
  Update: 'updated',
  Reinstate: 'reinstated',
  Offboard: 'offboarded',
  Unchanged: 'unchanged',
}

async function writeResult(midmonth: Midmonth, { source, jobId }: { source: MemberSource; jobId: MemberJobId }) {
  const { annotate, notesOf } = await import('./annotated-file.ts')
  const counts: Counts = { invited: 0, updated: 0, reinstated: 0, offboarded: 0, unchanged: 0, failed: 0 }
  const results = await midmonth.memberJobs.exportResults(jobId)
  const result = await annotate(source, counting(notesOf(bodyOf(results)), counts)).catch(error => {
    const reason = error instanceof Error ? error.message : String(error)
    throw new Error(`The import is complete, but its result file could not be written: ${reason}`, { cause: error })
  })
  return { result, counts }
}

async function* counting(notes: AsyncIterable<Note>, counts: Counts): AsyncGenerator<Note> {
  for await (const note of notes) {
    const counted = note.outcome === 'Failed' ? 'failed' : countedAs[note.action]
    if (counted !== undefined) counts[counted] += 1
    yield note
  }
}

type Output = { source: MemberSource; print: (text: string) => void; printJson: (value: object) => void }

async function explainFaults({ issues }: ApiError, { source, print, printJson }: Output): Promise<Error> {
  const faults: RefusedRow[] = issues
    .slice(0, limits.faultsMax)
    .map(issue => ({ row: 'row' in issue ? Number(issue.row) : Number.NaN, message: issue.message }))
  const closing = issues[limits.faultsMax]?.message ?? null
  const shown = faults.slice(0, limits.faultsShownMax)
  print(table(shown.map(({ row, message }) => ({ row, error: message }))))
  const more = faults.length - shown.length
  // Errors in the header or the whole file belong to no row.
  const result = faults.some(fault => fault.row > 1) ? await writeFaults(source, faults) : null
  if (more > 0) print(`and ${countOf(more, 'more row')}, in the file below${closing === null ? '' : `; ${closing}`}`)
  if (result !== null) print(`Errors by row: ${result}`)
  printJson({ faults, more: closing, result })
  const howMany = closing === null ? faults.length : `More than ${limits.faultsMax}`
  return new Error(`${howMany} ${howMany === 1 ? 'row has an error' : 'rows have errors'}; nothing was imported`)
}

async function writeFaults(source: MemberSource, faults: RefusedRow[]): Promise<string> {
  const { annotate } = await import('./annotated-file.ts')
  async function* notes(): AsyncGenerator<Note> {
    for (const { row, message } of faults) yield { row, action: '', outcome: 'Error', memberId: '', message }
  }
  return await annotate(source, notes())
}

async function withRemedy(midmonth: Midmonth, refusal: ApiError): Promise<Error> {
  if (refusal.status === 413) {
    return new Error(
      `${sentenceOf(refusal)}. Drop columns that you do not need, but keep every member: those missing from the file are offboarded`,
      { cause: refusal },
    )
  }
  if (refusal.status !== 409) return refusal
  const { jobs } = await midmonth.memberJobs.list()
  const waiting = jobs.find(job => job.progress.type === 'AwaitingReview')
  return waiting === undefined ? refusal : new Error(`${sentenceOf(refusal)}. ${waysOfReview(waiting.id)}`)
}

/** The message of the API without its code and request id. */
function sentenceOf({ issues, message }: ApiError): string {
  return issues[0]?.message ?? message
}

/** A review may take days, so this does not wait. @throws QueuedBehindReview */
async function requireNoReviewAhead(midmonth: Midmonth, jobId: MemberJobId): Promise<void> {
  const { jobs } = await midmonth.memberJobs.list({ take: 100 })
  const inReview = jobs.find(job => job.progress.type === 'AwaitingReview')
  if (inReview === undefined) return
  throw new QueuedBehindReview(
    `Job ${jobId} is queued behind ${inReview.id}, which is waiting for a review; it continues without this command. ${waysOfReview(inReview.id)}`,
  )
}

class QueuedBehindReview extends Error {}

function waysOfReview(jobId: string): string {
  return `Check GET /v1/members/jobs/${jobId}/results, then run midmonth members approve ${jobId} or midmonth members reject ${jobId}`
}

function summaryOf({ id, progress }: MemberJob) {
  return { job: id, status: progress.type, done: `${progress.totalComplete} of ${progress.totalActions}` }
}

function tableOf({ invite, update, reinstate, offboard, unchanged }: MemberJobPlan): string {
  return table([{ invite, update, reinstate, offboard, unchanged }])
}
