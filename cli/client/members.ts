import { Command, InvalidArgumentError, Option } from 'commander'
import type { Member, MemberStatus, NewMember } from '../../packages/sdk/src/generated/schemas.ts'
import { enumOf } from '../contract.ts'
import { examples } from '../help.ts'
import { print, type SheetRow, sheet } from '../print.ts'
import { writeLine } from '../terminal.ts'
import { whole } from '../whole.ts'
import { accountOf, idOf, memberArgument, memberOf, readJson } from './arguments.ts'
import { type Address, addConnectionOptions, connect } from './connection.ts'
import { exportMembers } from './member-export.ts'
import { approve, importMembers, reject } from './member-import.ts'
import { type MemberFile, mediaTypeOf } from './member-source.ts'
import { printJson, printList } from './output.ts'

type Options = Address & { json?: boolean }

export const membersCommand = new Command('members')

addConnectionOptions(membersCommand.command('list'))
  .description('List members, newest first.')
  .addOption(
    new Option('--status <statuses...>', 'only members with these statuses; inactive means offboarded').choices(
      enumOf('MemberStatus'),
    ),
  )
  .option('--email <emails...>', 'only members with these addresses')
  .option('--take <n>', 'how many to show, up to 1,000', whole({ min: 1, max: 1_000 }), 50)
  .option('--after <member>', 'the id of the last member of a list, to show the next', idOf('mem'))
  .option('--all', 'show every page')
  .option('--json', 'print the response of the API; with --all, a line of JSON per member')
  .addHelpText('after', examples('members list', 'members list --status active --all --json'))
  .action(
    async (
      options: Options & {
        status?: MemberStatus[]
        email?: string[]
        take: number
        after?: Member['memberId']
        all?: boolean
      },
    ) => {
      const { status: statuses, email: emails, take, after } = options
      const midmonth = await connect(options)
      const list = midmonth.members.list({ statuses, emails, take, after })
      await printList(list, options, memberRow)
    },
  )

addConnectionOptions(membersCommand.command('show'))
  .description('Show one member.')
  .argument('<member>', 'the id, mem_…, or the e-mail', memberArgument)
  .option('--json', 'print the response of the API')
  .addHelpText('after', examples('members show mem_…', 'members show sam.okafor@example.com --json'))
  .action(async (given: string, options: Options) => {
    const midmonth = await connect(options)
    const member = await midmonth.members.get(await memberOf(midmonth, given))
    if (options.json) printJson(member)
    else writeLine(sheet(memberSheet(member)))
  })

addConnectionOptions(membersCommand.command('import'))
  .description(
    'Import the complete list of members: invites new members, updates changed ones, reinstates offboarded ones that are listed again, and offboards those missing from the file. Shows a preview first, and asks for confirmation before offboarding.',
  )
  .argument('<file>', '.csv, .txt, .tsv or .xlsx; see docs/guides/import-members.md', memberFile)
  .option('--dry-run', 'show the preview and change nothing')
  .option('--v1', 'keep a member’s bank account if it is empty in the file (the default is to remove it)')
  .option('--yes', 'skip the confirmation: offboard, and approve the import if it needs a review')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('members import staff.csv --dry-run', 'members import staff.xlsx'))
  .action(async (file: MemberFile, options) => await importMembers(await connect(options), { file, options }))

addConnectionOptions(membersCommand.command('export'))
  .description('Export all active and invited members. Importing the file unchanged has no effect.')
  .argument('[file]', 'a new file (default: standard output)')
  .addHelpText('after', examples('members export staff.csv', 'members list --all --json'))
  .action(async (file: string | undefined, options: Address) => await exportMembers(await connect(options), file))

addConnectionOptions(membersCommand.command('invite'))
  .description('Invite a member.')
  .argument('[email]', 'the e-mail; leave it out if --from has it')
  .option('--first-name <name>', 'first name')
  .option('--last-name <name>', 'last name')
  .option('--tier <name>', 'the name of the tier')
  .option('--worker-id <id>', 'your own number for the person')
  .option('--phone <phone>', 'with its country code, for example +447700900123')
  .option('--from <file>', 'other fields, such as the bank account, as JSON: a file, or - for standard input')
  .option('--idempotency-key <key>', 'repeat an earlier run with its key: the member is invited once')
  .option('--json', 'print the response of the API')
  .addHelpText(
    'after',
    examples(
      'members invite ada@example.com --first-name Ada --last-name Njoku --tier Silver',
      'members invite --from ada.json',
    ),
  )
  .action(async (email: string | undefined, options: Options & Invitation) => {
    const { firstName, lastName, tier, workerId, phone, from, idempotencyKey } = options
    const given = { email, firstName, lastName, tier, workerId, phone }
    const fields = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
    const midmonth = await connect(options)
    // The service checks the fields, and names those that are missing.
    const member = { ...(from === undefined ? {} : await readJson('--from', from)), ...fields } as NewMember
    const invited = await midmonth.members.invite(member, { idempotencyKey })
    if (options.json) printJson(invited)
    else writeLine(`Invited ${member.email}: ${invited.memberId}`)
  })

type Invitation = {
  firstName?: string
  lastName?: string
  tier?: string
  workerId?: string
  phone?: string
  from?: string
  idempotencyKey?: string
}

addConnectionOptions(membersCommand.command('approve'))
  .description(
    'Approve an import that is waiting for a review because it offboards many members, and follow it to the end.',
  )
  .argument('<job>', 'the job’s id, maj_…', idOf('maj'))
  .option('--json', 'print JSON')
  .addHelpText('after', examples('members approve maj_…'))
  .action(async (jobId, options) => print(await approve(await connect(options), jobId), options))

addConnectionOptions(membersCommand.command('reject'))
  .description('Reject an import that is waiting for a review. Nothing is imported.')
  .argument('<job>', 'the job’s id, maj_…', idOf('maj'))
  .option('--json', 'print JSON')
  .addHelpText('after', examples('members reject maj_…'))
  .action(async (jobId, options) => print(await reject(await connect(options), jobId), options))

function memberRow({ memberId, status, firstName, lastName, email, tier }: Member): SheetRow {
  return { member: memberId, status, name: `${firstName} ${lastName}`, email, tier }
}

function memberSheet(member: Member): SheetRow {
  const { memberId, status, firstName, lastName, email, phone, tier, workerId, accountDetails, enablePayroll } = member
  return {
    id: memberId,
    status,
    name: `${firstName} ${lastName}`,
    email,
    phone,
    tier,
    'worker id': workerId,
    account: accountDetails === null ? null : accountOf(accountDetails),
    'payroll enabled': enablePayroll ? 'yes' : 'no',
  }
}

function memberFile(path: string): MemberFile {
  const mediaType = mediaTypeOf(path)
  if (mediaType === undefined)
    throw new InvalidArgumentError('Use a .csv, .txt, .tsv or .xlsx file; save the list as "CSV UTF-8" or .xlsx.')
  return { path, mediaType }
}
