import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import path from 'node:path'
import ssh2, { type SFTPWrapper } from 'ssh2'

const { Server, utils } = ssh2
const { STATUS_CODE, OPEN_MODE } = utils.sftp

/** A pair of keys for SSH. One in 256 of the ed25519 pairs that ssh2 1.17 generates cannot be read, so these have another type. */
export function newKeyPair(): { public: string; private: string } {
  return utils.generateKeyPairSync('ecdsa', { bits: 256 })
}

/** How the server handles its next calls. */
export type Faults = {
  /** Cuts the connection at the n-th call, counted from 1, before or after it is executed. */
  cutAt?: { call: number; when: 'before' | 'after' } | undefined
  /** Refuses these calls with "permission denied". */
  refused?: string[]
  /** Never answers these calls. */
  ignored?: string[]
}

/** A bank's SFTP server over a real folder. */
export class BankServer {
  /** In seconds since 1970, reported as the modification time of every file; null reports the real one. */
  modifiedAt: number | null = 1_000
  faults: Faults = {}
  calls: string[] = []
  /** Takes files out of `outbox/` the moment they appear there, as a bank may. */
  takesAtOnce = false
  readonly taken: { name: string; text: string }[] = []
  readonly root: string
  readonly fingerprint: string
  private readonly listener: ReturnType<typeof createServer>
  private readonly sockets = new Set<Socket>()
  private handles = new Map<number, { fd: number } | { entries: string[] }>()
  private handleCount = 0

  constructor(root: string, { password, publicKey }: { password: string; publicKey?: string }) {
    this.root = root
    for (const name of ['outbox', 'inbox', 'uploads']) fs.mkdirSync(path.join(root, name), { recursive: true })
    const hostKey = newKeyPair()
    const publicPart = Buffer.from(hostKey.public.split(' ')[1] ?? '', 'base64')
    this.fingerprint = `SHA256:${createHash('sha256').update(publicPart).digest('base64').replace(/=+$/, '')}`
    const server = new Server({ hostKeys: [hostKey.private] }, connection => {
      connection.on('error', () => undefined)
      connection.on('authentication', context => {
        if (context.method === 'password' && context.password === password) return context.accept()
        const known = publicKey === undefined ? null : Buffer.from(publicKey.split(' ')[1] ?? '', 'base64')
        if (context.method === 'publickey' && known?.equals(context.key.data)) {
          const parsed = utils.parseKey(publicKey ?? '')
          if (parsed instanceof Error) throw parsed
          if (context.signature === undefined) return context.accept()
          const { blob = Buffer.alloc(0), hashAlgo, signature } = context
          if (parsed.verify(blob, signature, hashAlgo) === true) return context.accept()
        }
        context.reject()
      })
      connection.on('session', accept => {
        accept().on('sftp', acceptSftp => this.serve(acceptSftp()))
      })
    })
    this.listener = createServer({ noDelay: true }, socket => {
      this.sockets.add(socket)
      socket.on('close', () => this.sockets.delete(socket))
      server.injectSocket(socket)
    })
  }

  async listen(): Promise<number> {
    await new Promise<void>(resolve => this.listener.listen(0, '127.0.0.1', resolve))
    return (this.listener.address() as AddressInfo).port
  }

  async close(): Promise<void> {
    this.cut()
    await new Promise<void>(resolve => this.listener.close(() => resolve()))
  }

  private serve(sftp: SFTPWrapper): void {
    const on = (name: string, work: (id: number, ...given: never[]) => void) => {
      sftp.on(name, (id: number, ...given: never[]) => {
        this.calls.push(name)
        const { cutAt, refused = [], ignored = [] } = this.faults
        const isCut = cutAt?.call === this.calls.length
        if (ignored.includes(name)) return
        if (refused.includes(name)) return sftp.status(id, STATUS_CODE.PERMISSION_DENIED)
        if (isCut && cutAt.when === 'before') return this.cut()
        try {
          work(id, ...given)
        } catch (error) {
          const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT'
          sftp.status(id, isMissing ? STATUS_CODE.NO_SUCH_FILE : STATUS_CODE.FAILURE)
        }
        if (isCut) this.cut()
      })
    }
    const ok = (id: number) => sftp.status(id, STATUS_CODE.OK)

    on('REALPATH', (id, given: string) => sftp.name(id, [{ filename: given, longname: given, attrs: {} as never }]))
    for (const name of ['STAT', 'LSTAT'])
      on(name, (id, given: string) => sftp.attrs(id, this.attrsOf(this.local(given))))
    on('FSTAT', (id, handle: Buffer) => sftp.attrs(id, this.attrs(fs.fstatSync(this.fdOf(handle)))))
    on('OPEN', (id, given: string, flags: number) => {
      const isNew = (flags & OPEN_MODE.EXCL) !== 0
      const mode = flags & OPEN_MODE.CREAT ? (isNew ? 'wx' : 'w') : flags & OPEN_MODE.WRITE ? 'r+' : 'r'
      sftp.handle(id, this.handleOf({ fd: fs.openSync(this.local(given), mode) }))
    })
    on('WRITE', (id, handle: Buffer, offset: number, bytes: Buffer) => {
      fs.writeSync(this.fdOf(handle), bytes, 0, bytes.length, offset)
      ok(id)
    })
    on('READ', (id, handle: Buffer, offset: number, length: number) => {
      const buffer = Buffer.alloc(length)
      const count = fs.readSync(this.fdOf(handle), buffer, 0, length, offset)
      if (count === 0) sftp.status(id, STATUS_CODE.EOF)
      else sftp.data(id, buffer.subarray(0, count))
    })
    on('OPENDIR', (id, given: string) =>
      sftp.handle(
        id,
        this.handleOf({ entries: fs.readdirSync(this.local(given)).map(name => path.join(this.local(given), name)) }),
      ),
    )
    on('READDIR', (id, handle: Buffer) => {
      const opened = this.handles.get(handle.readUInt32BE())
      if (opened === undefined || !('entries' in opened) || opened.entries.length === 0)
        return sftp.status(id, STATUS_CODE.EOF)
      const entries = opened.entries.splice(0)
      sftp.name(
        id,
        entries.map(file => ({
          filename: path.basename(file),
          longname: path.basename(file),
          attrs: this.attrsOf(file),
        })),
      )
    })
    on('CLOSE', (id, handle: Buffer) => {
      const opened = this.handles.get(handle.readUInt32BE())
      if (opened !== undefined && 'fd' in opened) fs.closeSync(opened.fd)
      this.handles.delete(handle.readUInt32BE())
      ok(id)
    })
    on('REMOVE', (id, given: string) => {
      fs.rmSync(this.local(given))
      ok(id)
    })
    on('RENAME', (id, from: string, to: string) => {
      // As in version 3 of the protocol: a rename does not replace a file.
      if (fs.existsSync(this.local(to))) return sftp.status(id, STATUS_CODE.FAILURE)
      fs.renameSync(this.local(from), this.local(to))
      if (this.takesAtOnce) this.take(to)
      ok(id)
    })
  }

  private take(given: string): void {
    this.taken.push({ name: path.basename(given), text: fs.readFileSync(this.local(given), 'utf8') })
    fs.rmSync(this.local(given))
  }

  /** Cuts all connections without a goodbye. */
  private cut(): void {
    for (const socket of this.sockets) socket.destroy()
  }

  private local(given: string): string {
    return path.join(this.root, path.posix.join('/', given))
  }

  private attrsOf(file: string) {
    return this.attrs(fs.lstatSync(file))
  }

  private attrs({ mode, uid, gid, size, mtimeMs }: fs.Stats) {
    const mtime = this.modifiedAt ?? Math.floor(mtimeMs / 1_000)
    return { mode, uid, gid, size, atime: mtime, mtime }
  }

  private handleOf(opened: { fd: number } | { entries: string[] }): Buffer {
    const handle = Buffer.alloc(4)
    handle.writeUInt32BE(++this.handleCount)
    this.handles.set(this.handleCount, opened)
    return handle
  }

  private fdOf(handle: Buffer): number {
    const opened = this.handles.get(handle.readUInt32BE())
    if (opened === undefined || !('fd' in opened)) throw new Error('No such handle')
    return opened.fd
  }
}
