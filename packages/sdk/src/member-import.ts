import type { CallOptions } from './call.ts'
import type { FileSource } from './files.ts'
import type { Resources } from './generated/operations.ts'
import type { MemberJob, MemberJobId, MemberJobResult } from './generated/schemas.ts'
import { pause } from './retries.ts'

const poll = { firstMs: 200, longestMs: 2_000 }

export type MemberImportOptions = CallOptions & {
  /** Whether an empty bank account in the file keeps the member's account. By default, the account is removed. */
  keepsAccounts?: boolean | undefined
  /** The job awaits review if it would offboard more members than this, even within the partner's limit. */
  offboardMax?: number | undefined
  /** Called when the job has been created, and after each poll. */
  onProgress?: ((job: MemberJob) => void) | undefined
}

/** A job that has ended or awaits review, with the result for each member. */
export type MemberImport = { job: MemberJob; results: AsyncIterable<MemberJobResult> }

/**
 * Uploads the complete list of members and waits for the job.
 *
 * The job may be queued behind another. Abort the signal to stop waiting; the job continues.
 */
export async function importMembers(
  jobs: Resources['memberJobs'],
  file: FileSource,
  { keepsAccounts = false, offboardMax, onProgress, ...options }: MemberImportOptions = {},
): Promise<MemberImport> {
  const create = keepsAccounts ? jobs.createFromFile : jobs.createFromFileV2
  const { jobId } = await create(file, { offboardMax }, options)
  // The key and the time-out apply only to the upload.
  const { idempotencyKey: _, timeoutMs: __, ...pollOptions } = options
  const job = await waitForEnd(jobs, { jobId, onProgress, options: pollOptions })
  return {
    job,
    results: {
      [Symbol.asyncIterator]: () => jobs.listResults(jobId, { take: 1_000 }, pollOptions)[Symbol.asyncIterator](),
    },
  }
}

type Waiting = { jobId: MemberJobId; onProgress: MemberImportOptions['onProgress']; options: CallOptions }

async function waitForEnd(jobs: Resources['memberJobs'], { jobId, onProgress, options }: Waiting): Promise<MemberJob> {
  for (let waitMs = poll.firstMs; ; waitMs = Math.min(waitMs * 1.5, poll.longestMs)) {
    const job = await jobs.get(jobId, options)
    onProgress?.(job)
    const { type } = job.progress
    if (type !== 'Processing' && type !== 'NotReady') return job
    await pause(waitMs, options.signal)
  }
}
