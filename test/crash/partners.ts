import type { Shop } from './clients.ts'
import { operate } from './program.ts'

// What the simulated bank does with payments to these sort codes: docs/reference/simulated-bank.md. Nobody checks account numbers there.
const accounts = [
  ...['089999 66374958', '107999 88837491', '202959 63748472', '871427 46238510', '872427 46238510'],
  ...['000001 00000001', '000002 00000002', '000003 00000003', '000005 00000005'],
]
const silentAndLost = ['000004 00000004', '000006 00000006']

// A calendar day apart at every moment: moving a partner from one to the other ends its day, and its cycle.
const zones = { before: 'Pacific/Pago_Pago', after: 'Pacific/Kiritimati' }

/** Partners whose settings differ in what decides how long things are on their way. Today is the last day of their cycle. */
export async function createPartners(databaseUrl: string, address: string): Promise<Shop[]> {
  const settings = [
    { name: 'At once', feePayer: 'member', holdSeconds: 0, graceMinutes: 0, clients: 4, accounts },
    {
      name: 'Held',
      feePayer: 'employer',
      holdSeconds: 3,
      graceMinutes: 0,
      clients: 4,
      accounts: [...accounts, ...silentAndLost],
    },
    // Its members have no money for the first minute, so that one client is enough.
    { name: 'Grace', feePayer: 'member', holdSeconds: 1, graceMinutes: 1, clients: 1, accounts },
  ]
  return await Promise.all(
    settings.map(async ({ name, feePayer, holdSeconds, graceMinutes, clients, accounts }) => {
      const create = ['partner', 'create', name, '--json', '--auto-activate']
      const rates = ['--requests-per-second', '10000', '--requests-burst', '10000']
      const times = ['--hold-seconds', String(holdSeconds), '--grace-minutes', String(graceMinutes)]
      const cycles = ['--cycle-schedule', 'weekly', '--cycle-anchor', tomorrow(), '--time-zone', zones.before]
      const partner = JSON.parse(await operate(databaseUrl, [...create, ...rates, ...times, ...cycles]))
      const limits = ['--currency', 'GBP', '--lower-limit', '500', '--upper-limit', '1000000000']
      const fee = ['--fee', '30', '--fee-bps', '100', '--fee-max', '300', '--fee-payer', feePayer]
      await operate(databaseUrl, ['tier', 'set', partner.id, 'Bronze', ...limits, ...fee])
      const { key: apiKey } = JSON.parse(await operate(databaseUrl, ['key', 'create', partner.id, '--json']))
      const memberIds = await Promise.all(accounts.map((account, index) => invite(address, { apiKey, account, index })))
      return {
        partnerId: partner.id,
        apiKey,
        clients,
        memberIds,
        paidMemberIds: [],
        payRuns: [],
        intents: [],
        withdrawals: [],
      }
    }),
  )
}

/** The day of the partner is over, and with it the pay cycle: a worker closes it within a minute. */
export async function endCycle(databaseUrl: string, { partnerId }: Shop): Promise<void> {
  await operate(databaseUrl, ['partner', 'set', partnerId, '--time-zone', zones.after])
}

async function invite(
  address: string,
  { apiKey, account, index }: { apiKey: string; account: string; index: number },
): Promise<string> {
  const [sortCode, accountNumber] = account.split(' ')
  const response = await fetch(`${address}/v1/members`, {
    method: 'POST',
    headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
    body: JSON.stringify({
      email: `member.${index}@example.com`,
      firstName: 'Member',
      lastName: String(index),
      tier: 'Bronze',
      accountDetails: { accountHolder: `Member ${index}`, sortCode, accountNumber },
    }),
  })
  const body = await response.text()
  if (response.status !== 201) throw new Error(`A member could not be invited: ${response.status} ${body}`)
  return JSON.parse(body).memberId
}

function tomorrow(): string {
  const day = new Intl.DateTimeFormat('en-CA', { timeZone: zones.before })
  return day.format(new Date(Date.now() + 24 * 3_600_000))
}
