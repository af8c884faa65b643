import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

// Generates Python from both documents with the command on the page "Other languages". The generated classes then read and
// rewrite an example of each published response.
const checkout = fileURLToPath(new URL('../..', import.meta.url))
const page = readFileSync(path.join(checkout, 'docs/guides/other-languages.md'), 'utf8')
const [, command] = /^(npm exec .+)$/m.exec(page) ?? assert.fail('The page has no command')
assert(command)

// On Debian, the package python3-dateutil provides the module for the system's Python.
const python = ['/usr/bin/python3', 'python3'].find(
  each => spawnSync(each, ['-c', 'import dateutil.parser']).status === 0,
)
const account = { accountHolder: 'Sam Okafor', sortCode: '089999', accountNumber: '66374958' }
const gbp = { amount: 2_000, currency: 'GBP' }
const member = {
  ...{ memberId: 'mem_01kah4pzc5e4r8v2m6t0x9y3bd', email: 'sam@example.com', firstName: 'Sam', lastName: 'Okafor' },
  ...{ phone: null, tier: 'Silver', workerId: null, status: 'active', accountDetails: account, enablePayroll: true },
  ...{ dob: null, gender: null },
}
const examples: Record<string, Record<string, object>> = {
  'openapi.json': {
    Member: member,
    WithdrawalCompleted: { message: 'OK' },
    Members: { members: [member], total: 1, skip: 0, take: 50 },
  },
  'openapi-representation.json': {
    Member: { ...member, metadata: { team: 'north' } },
    Money: gbp,
  },
}

const folder = mkdtempSync(path.join(tmpdir(), 'midmonth-python-'))
try {
  for (const [file, byClass] of Object.entries(examples)) {
    copyFileSync(path.join(checkout, file), path.join(folder, 'openapi.json'))
    const generated = spawnSync('sh', ['-c', command], { cwd: folder, encoding: 'utf8' })
    if (generated.status !== 0) {
      console.log(`Skipped: the generator cannot be installed here (${generated.stderr.trim().split('\n').at(-1)})`)
      break
    }
    if (python === undefined) {
      console.log('Skipped: install python3-dateutil to run the generated code')
      break
    }
    for (const [name, example] of Object.entries(byClass)) {
      const script = `import json, midmonth\nprint(json.dumps(midmonth.${name}.from_dict(json.loads(input())).to_dict()))`
      const written: string = execFileSync(python, ['-c', script], {
        cwd: folder,
        input: JSON.stringify(example),
        encoding: 'utf8',
      })
      const withoutNull = (value: unknown) => JSON.parse(JSON.stringify(value), (_, each) => each ?? undefined)
      assert.deepEqual(withoutNull(JSON.parse(written)), withoutNull(example), name)
    }
    console.log(`${file}: ${Object.keys(byClass).length} responses are read and written by generated Python`)
  }
} finally {
  rmSync(folder, { recursive: true })
}
