import type { Partner } from './clients.ts'
import { runCommand } from './program.ts'

// Sort codes that select a behaviour of the simulated bank (docs/reference/simulated-bank.md). Their account numbers are not checked.
const accounts = [
  ...['089999 66374958', '107999 88837491', '202959 63748472', '871427 46238510', '872427 46238510'],
  ...['000001 00000001', '000002 00000002', '000003 00000003', '000005 00000005'],
]
const silentAndLost = ['000004 00000004', '000006 00000006']

// Always a calendar day apart: moving a partner from one zone to the other ends its day and its cycle.
const zones = { before: 'Pacific/Pago_Pago', after: 'Pacific/Kiritimati' }

const ibans = accounts.map((_, index) => ibanOf(String(532_013_000 + index).padStart(10, '0')))

/**
 * Creates partners with different hold and grace periods. Today is the last day of their cycle. Pounds are paid by the simulated
 * bank, euros by files.
 */
export async function createPartners(
  databaseUrl: string,
  address: string,
  currency: Partner['currency'],
): Promise<Partner[]> {
  const usual = currency === 'GBP' ? accounts : ibans
  const settings = [
    { name: 'At once', feePayer: 'member', holdSeconds: 0, graceMinutes: 0, clients: 4, accounts: usual },
    {
      name: 'Held',
      feePayer: 'employer',
      holdSeconds: 3,
      graceMinutes: 0,
      clients: 4,
      accounts: currency === 'GBP' ? [...accounts, ...silentAndLost] : ibans,
    },
    // Its members have no balance for the first minute, so one client is enough.
    { name: 'Grace', feePayer: 'member', holdSeconds: 1, graceMinutes: 1, clients: 1, accounts: usual },
  ]
  return await Promise.all(
    settings.map(async ({ name, feePayer, holdSeconds, graceMinutes, clients, accounts }) => {
      const create = ['partner', 'create', name, '--json', '--auto-activate']
      const rates = ['--requests-per-second', '10000', '--requests-burst', '10000']
      const times = ['--hold-seconds', String(holdSeconds), '--grace-minutes', String(graceMinutes)]
      const cycles = ['--cycle-schedule', 'weekly', '--cycle-anchor', tomorrow(), '--time-zone', zones.before]
      const partner = JSON.parse(await runCommand(databaseUrl, [...create, ...rates, ...times, ...cycles]))
      const limits = ['--currency', currency, '--lower-limit', '500', '--upper-limit', '1000000000']
      const fee = ['--fee', '30', '--fee-bps', '100', '--fee-max', '300', '--fee-payer', feePayer]
      await runCommand(databaseUrl, ['tier', 'set', partner.id, 'Bronze', ...limits, ...fee])
      const { secret: apiKey } = JSON.parse(await runCommand(databaseUrl, ['key', 'create', partner.id, '--json']))
      const memberIds = await Promise.all(accounts.map((account, index) => invite(address, { apiKey, account, index })))
      return {
        partnerId: partner.id,
        currency,
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

/** Ends the partner's day, and with it the pay cycle. A worker closes the cycle within a minute. */
export async function endCycle(databaseUrl: string, { partnerId }: Partner): Promise<void> {
  await runCommand(databaseUrl, ['partner', 'set', partnerId, '--time-zone', zones.after])
}

async function invite(
  address: string,
  { apiKey, account, index }: { apiKey: string; account: string; index: number },
): Promise<string> {
  const [first, accountNumber] = account.split(' ')
  const details = accountNumber === undefined ? { iban: first } : { sortCode: first, accountNumber }
  const response = await fetch(`${address}/v1/members`, {
    method: 'POST',
    headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
    body: JSON.stringify({
      email: `member.${index}@example.com`,
      firstName: 'Member',
      lastName: String(index),
      tier: 'Bronze',
      accountDetails: { accountHolder: `Member ${index}`, ...details },
    }),
  })
  const body = await response.text()
  if (response.status !== 201) throw new Error(`Inviting a member failed: ${response.status} ${body}`)
  return JSON.parse(body).memberId
}

function tomorrow(): string {
  const day = new Intl.DateTimeFormat('en-CA', { timeZone: zones.before })
  return day.format(new Date(Date.now() + 24 * 3_600_000))
}

/** A German IBAN with an existing bank code. The check digits make the rearranged number 1 modulo 97 (D is 13, E is 14). */
function ibanOf(accountNumber: string): string {
  const bban = `37040044${accountNumber}`
  const checkDigits = 98n - (BigInt(`${bban}131400`) % 97n)
  return `DE${String(checkDigits).padStart(2, '0')}${bban}`
}
