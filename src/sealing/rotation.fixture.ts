import pino from 'pino'
import { connect } from '../database/connect.ts'
import type { Lanes } from '../kernel/lanes.ts'
import { sealedTables } from '../operators/sealed-tables.ts'
import { rotateSealing } from './rotation.ts'

// Rotates the key of a database in a process that a test kills. Arguments: the owner's address, the installation's key, and the lanes.

const [address = '', key = '', lanes] = process.argv.slice(2)
const { db } = connect(address, { log: pino({ level: 'silent' }), connectionsMax: 3, lanes: lanes as Lanes })
await rotateSealing(db, {
  ...{ source: { key }, tables: sealedTables, now: new Date(), settleMs: 0 },
  onStep: () => undefined,
  // In the middle of the rotation: values of one table are sealed with the new key, and others are not.
  onRead(table) {
    if (table !== 'member_keys') return
    process.stdout.write('kill me\n')
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  },
  record: async () => undefined,
})
