import type { CallOptions } from './call.ts'
import type { FileSource } from './files.ts'
import type { Resources } from './generated/operations.ts'
import type { MemberJob, MemberJobId, MemberJobResult } from './generated/schemas.ts'
import { pause } from './retries.ts'

const poll = { firstMs: 200, longestMs: 2_000 }

export type MemberImportOptions = CallOptions & {
  /** Whether an empty bank account in the file leaves the member's as it is. Otherwise it removes it. */
  keepsAccounts?: boolean | undefined
  /** The job waits for a review if it would offboard more members than this, even if the partner's limit allows it. */
  offboardMax?: number | undefined
  /** Called when the job has been created, and after each look at it. */
  onProgress?: ((job: MemberJob) => void) | undefined
}

/** A job that has ended, or waits for a review, with what it did to each member. */
export type MemberImport = { job: MemberJob; results: AsyncIterable<MemberJobResult> }

/**
 * Uploads the complete list of members and waits for the job.
 *
 * It may be queued behind another job. Abort the signal to stop waiting; the job continues.
 */
export async function importMembers(
  jobs: Resources['memberJobs'],
  file: FileSource,
  { keepsAccounts = false, offboardMax, onProgress, ...options }: MemberImportOptions = {},
): Promise<MemberImport> {
  const create = keepsAccounts ? jobs.createFromFile : jobs.createFromFileV2
  const { jobId } = await create(file, { offboardMax }, options)
  // The key and the time-out are those of the upload.
  const { idempotencyKey: _, timeoutMs: __, ...looking } = options
  const job = await ended(jobs, { jobId, onProgress, options: looking })
  return {
    job,
    results: {
      [Symbol.asyncIterator]: () => jobs.listResults(jobId, { take: 1_000 }, looking)[Symbol.asyncIterator](),
    },
  }
}

async function ended(
  jobs: Resources['memberJobs'],
  {
    jobId,
    onProgress,
    options,
  }: { jobId: MemberJobId; onProgress: MemberImportOptions['onProgress']; options: CallOptions },
): Promise<MemberJob> {
  for (let waitMs = poll.firstMs; ; waitMs = Math.min(waitMs * 1.5, poll.longestMs)) {
    const job = await jobs.get(jobId, options)
    onProgress?.(job)
    const { type } = job.progress
    if (type !== 'Processing' && type !== 'NotReady') return job
    await pause(waitMs, options.signal)
  }
}
