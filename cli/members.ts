import { Command, InvalidArgumentError } from 'commander'
import { readSettings, SettingsProblem } from '../src/config.ts'
import { Api } from './api.ts'
import { examples } from './help.ts'
import { exportMembers } from './member-export.ts'
import { approve, importMembers, reject } from './member-import.ts'
import { type MemberFile, mediaTypeOf } from './member-source.ts'
import { print } from './print.ts'

type Address = { url?: string; key?: string }

export const membersCommand = new Command('members').description(
  'A partner’s members in files, over the API of a running service (OPENWAGE_URL, OPENWAGE_API_KEY).',
)

const importCommand = membersCommand
  .command('import')
  .description(
    'Send the complete list of members: who is new is invited, who has changed is updated, who was removed is brought back, and who is missing is offboarded. Shows what it would do first, and asks before anybody is offboarded.',
  )
  .argument('<file>', '.csv, .txt, .tsv or .xlsx; see docs/guides/import-members.md', memberFile)
  .option('--dry-run', 'only show what it would do')
  .option('--v1', 'an empty bank account in the file leaves the member’s as it is; without --v1 it removes it')
  .option('--yes', 'do not ask: offboard, and approve what needs a review')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('members import staff.csv --dry-run', 'members import staff.xlsx'))
  .action(async (file: MemberFile, options) => await importMembers(openApi(options), { file, options }))

const exportCommand = membersCommand
  .command('export')
  .description('Write the complete list of members, active and invited. To import it as it is changes nothing.')
  .argument('[file]', 'a new file; left out, standard output')
  .addHelpText('after', examples('members export staff.csv'))
  .action(async (file: string | undefined, options) => await exportMembers(openApi(options), file))

const approveCommand = membersCommand
  .command('approve')
  .description('Let an import go on that waits for a review, because it offboards many, and wait for its end.')
  .argument('<job>', 'the job’s id, maj_…')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('members approve maj_…'))
  .action(async (jobId: string, options) => print(await approve(openApi(options), jobId), options))

const rejectCommand = membersCommand
  .command('reject')
  .description('End an import that waits for a review, with nothing done.')
  .argument('<job>', 'the job’s id, maj_…')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('members reject maj_…'))
  .action(async (jobId: string, options) => print(await reject(openApi(options), jobId), options))

for (const command of [importCommand, exportCommand, approveCommand, rejectCommand]) {
  command
    .option('--url <url>', 'address of the service; else OPENWAGE_URL, else http://127.0.0.1:8080', address)
    .option('--key <key>', 'API key; better in OPENWAGE_API_KEY, where no list of processes shows it')
}

function openApi(options: Address): Api {
  const settings = readSettings(process.env)
  const key = (options.key ?? settings.OPENWAGE_API_KEY).trim()
  if (key === '') throw new SettingsProblem('OPENWAGE_API_KEY must hold an API key; key create makes one')
  if (!/^[\x21-\x7e]+$/.test(key)) throw new SettingsProblem('The API key holds blanks or odd letters; copy it again')
  return new Api({ url: options.url ?? settings.OPENWAGE_URL, key })
}

function memberFile(path: string): MemberFile {
  const mediaType = mediaTypeOf(path)
  if (mediaType === undefined)
    throw new InvalidArgumentError('It must end in .csv, .txt, .tsv or .xlsx: save it as "CSV UTF-8" or as .xlsx.')
  return { path, mediaType }
}

function address(text: string): string {
  if (!/^https?:\/\/[^\s?#]+$/.test(text) || !URL.canParse(text))
    throw new InvalidArgumentError('It must be an address, for example https://pay.example.com.')
  return text
}
