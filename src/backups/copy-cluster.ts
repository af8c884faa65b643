import { type FileHandle, open, readdir } from 'node:fs/promises'
import path from 'node:path'
import pg from 'pg'
import { type Entry, tar } from './tar.ts'

/** As the superuser, because it starts and ends backups. */
export type Connection = pg.ClientConfig

const limits = {
  // The last segment is archived within seconds, unless archiving fails.
  archivedMsMax: 5 * 60_000,
}

/** A copy of the cluster's files, which PostgreSQL can recover with the WAL between the two segments. */
export type ClusterCopy = {
  /** The files as a tar file. To be read once, to the end. */
  content(): AsyncGenerator<Uint8Array>
  /** Known once the content was read. */
  segments(): { firstSegment: string; lastSegment: string }
}

/**
 * Copies the files of a running server by PostgreSQL's low-level API, as pg_basebackup does. The session that starts the backup ends it,
 * and if it dies, the server forgets the backup.
 * @param work runs while no other backup does, so that it can also put the copy in its place
 * @throws Error with a sentence for the operator if another backup runs, or WAL is not archived
 */
export async function copyCluster<Result>(
  { connection, pgdata, label }: { connection: Connection; pgdata: string; label: string },
  work: (copy: ClusterCopy) => Promise<Result>,
): Promise<Result> {
  const client = new pg.Client(connection)
  let lost: Error | undefined
  client.on('error', error => {
    lost = error
  })
  await client.connect()
  try {
    const { rows } = await client.query(
      `select pg_try_advisory_lock(hashtext('midmonth backup')) as is_first, current_setting('archive_mode') as archive_mode,
              (select count(*)::integer from pg_tablespace where spcname not in ('pg_default', 'pg_global')) as tablespaces`,
    )
    if (!rows[0].is_first) throw new Error('Another backup is running')
    if (rows[0].archive_mode !== 'on')
      throw new Error(
        'The server was started without MIDMONTH_BACKUP_DIR, so it does not archive its WAL; set it for every process, and restart them',
      )
    if (rows[0].tablespaces > 0)
      throw new Error('The database has tablespaces outside its folder, which are not backed up')
    let segments: ReturnType<ClusterCopy['segments']> | undefined
    return await work({
      content: () => tar(entriesOf(client, { pgdata, label, onEnd: found => (segments = found) })),
      segments() {
        if (segments === undefined) throw new Error('The copy has not ended')
        return segments
      },
    })
  } catch (error) {
    throw lost ?? error
  } finally {
    await client.end()
  }
}

async function* entriesOf(
  client: pg.Client,
  {
    pgdata,
    label,
    onEnd,
  }: { pgdata: string; label: string; onEnd: (segments: { firstSegment: string; lastSegment: string }) => void },
): AsyncGenerator<Entry> {
  const { rows: started } = await client.query('select pg_walfile_name(pg_backup_start($1, true)) as segment', [label])
  yield* filesOf(pgdata, '')
  // Last, so that it is not older than any file.
  yield* fileAt(pgdata, 'global/pg_control')
  await client.query(`set statement_timeout = ${limits.archivedMsMax}`)
  const { rows: stopped } = await client
    .query(`select labelfile, spcmapfile, pg_walfile_name(lsn) as segment from pg_backup_stop(true)`)
    .catch(error => {
      // 57014: canceled by the timeout.
      if (error.code !== '57014') throw error
      throw new Error(
        'The WAL of the backup was not archived within 5 minutes; see pg_stat_archiver and the log of PostgreSQL',
      )
    })
  const { labelfile, spcmapfile, segment } = stopped[0]
  // Both files must be exactly what the server returned.
  yield { name: 'backup_label', text: labelfile }
  if (spcmapfile !== '') yield { name: 'tablespace_map', text: spcmapfile }
  onEnd({ firstSegment: started[0].segment, lastSegment: segment })
}

// Their files belong to the running server, or are made anew by each start. The folders themselves are needed.
const emptied = [
  'pg_wal',
  'pg_replslot',
  'pg_dynshmem',
  'pg_notify',
  'pg_serial',
  'pg_snapshots',
  'pg_stat_tmp',
  'pg_subtrans',
]
const skipped =
  /^(postmaster\.(pid|opts)(\.stale)?|backup_label(\.old)?|tablespace_map(\.old)?|backup_manifest|recovery\.signal|standby\.signal|current_logfiles(\.tmp)?|postgresql\.auto\.conf\.tmp|global\/pg_control)$|(^|\/)(pgsql_tmp.*|pg_internal\.init.*|t\d+_\d+(_\w+)?(\.\d+)?)$/

async function* filesOf(pgdata: string, folder: string): AsyncGenerator<Entry> {
  for (const found of await readdir(path.join(pgdata, folder), { withFileTypes: true })) {
    const name = folder === '' ? found.name : `${folder}/${found.name}`
    if (skipped.test(name)) continue
    if (found.isDirectory()) {
      yield { name, isFolder: true }
      if (name === 'pg_wal') yield { name: 'pg_wal/archive_status', isFolder: true }
      if (!emptied.includes(name)) yield* filesOf(pgdata, name)
    } else if (found.isFile()) yield* fileAt(pgdata, name)
    else throw new Error(`${path.join(pgdata, name)} is neither a file nor a folder`)
  }
}

/** A file may be removed while the server runs; the WAL knows. */
async function* fileAt(pgdata: string, name: string): AsyncGenerator<Entry> {
  let file: FileHandle
  try {
    file = await open(path.join(pgdata, name))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
    throw error
  }
  try {
    yield { name, file, bytes: (await file.stat()).size }
  } finally {
    await file.close()
  }
}
