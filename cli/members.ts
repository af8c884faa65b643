import { Command, InvalidArgumentError } from 'commander'
import { readSettings, SettingsProblem } from '../src/config.ts'
import { Api } from './api.ts'
import { examples } from './help.ts'
import { exportMembers } from './member-export.ts'
import { approve, importMembers, reject } from './member-import.ts'
import { type MemberFile, mediaTypeOf } from './member-source.ts'
import { print } from './print.ts'
import { terminal } from './terminal.ts'

type Address = { url?: string; key?: string }

export const membersCommand = new Command('members')

const importCommand = membersCommand
  .command('import')
  .description(
    'Import the complete list of members: invites new members, updates changed ones, reinstates offboarded ones that are listed again, and offboards those missing from the file. Shows a preview first, and asks for confirmation before offboarding.',
  )
  .argument('<file>', '.csv, .txt, .tsv or .xlsx; see docs/guides/import-members.md', memberFile)
  .option('--dry-run', 'show the preview and change nothing')
  .option('--v1', 'keep a member’s bank account if it is empty in the file (the default is to remove it)')
  .option('--yes', 'skip the confirmation: offboard, and approve the import if it needs a review')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('members import staff.csv --dry-run', 'members import staff.xlsx'))
  .action(async (file: MemberFile, options) => await importMembers(openApi(options), { file, options }))

const exportCommand = membersCommand
  .command('export')
  .description('Export all active and invited members. Importing the file unchanged has no effect.')
  .argument('[file]', 'a new file (default: standard output)')
  .addHelpText('after', examples('members export staff.csv'))
  .action(async (file: string | undefined, options) => await exportMembers(openApi(options), file))

const approveCommand = membersCommand
  .command('approve')
  .description(
    'Approve an import that is waiting for a review because it offboards many members, and follow it to the end.',
  )
  .argument('<job>', 'the job’s id, maj_…')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('members approve maj_…'))
  .action(async (jobId: string, options) => print(await approve(openApi(options), jobId), options))

const rejectCommand = membersCommand
  .command('reject')
  .description('Reject an import that is waiting for a review. Nothing is imported.')
  .argument('<job>', 'the job’s id, maj_…')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('members reject maj_…'))
  .action(async (jobId: string, options) => print(await reject(openApi(options), jobId), options))

for (const command of [importCommand, exportCommand, approveCommand, rejectCommand]) {
  command
    .option('--url <url>', 'address of the service (default: OPENWAGE_URL, then http://127.0.0.1:8080)', address)
    .option('--key <key>', 'API key; prefer OPENWAGE_API_KEY, which process listings don’t show')
}

function openApi(options: Address): Api {
  const settings = readSettings(terminal().env)
  const key = (options.key ?? settings.OPENWAGE_API_KEY).trim()
  if (key === '') throw new SettingsProblem('No API key: set OPENWAGE_API_KEY; create a key with openwage key create')
  if (!/^[\x21-\x7e]+$/.test(key))
    throw new SettingsProblem('The API key contains spaces or invalid characters; copy it again')
  return new Api({ url: options.url ?? settings.OPENWAGE_URL, key })
}

function memberFile(path: string): MemberFile {
  const mediaType = mediaTypeOf(path)
  if (mediaType === undefined)
    throw new InvalidArgumentError('Use a .csv, .txt, .tsv or .xlsx file; save the list as "CSV UTF-8" or .xlsx.')
  return { path, mediaType }
}

function address(text: string): string {
  if (!/^https?:\/\/[^\s?#]+$/.test(text) || !URL.canParse(text))
    throw new InvalidArgumentError('Use a URL, for example https://pay.example.com.')
  return text
}
