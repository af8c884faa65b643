import pino from 'pino'
import { connect } from '../database/connect.ts'
import { sealedTables } from '../operators/sealed-tables.ts'
import { rotateSealing } from './rotation.ts'

// Rotates the key of a database in a process that a test kills. Arguments: the owner's address, and the installation's key.

const [address = '', key = ''] = process.argv.slice(2)
const { db } = connect(address, { log: pino({ level: 'silent' }), connectionsMax: 3 })
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
