import { Command, Option } from 'commander'
import type { PayCycle, PayCycleId, PayCycleStatus } from '../../packages/sdk/src/generated/schemas.ts'
import { enumOf } from '../contract.ts'
import { examples } from '../help.ts'
import { type SheetRow, sheet } from '../print.ts'
import { writeLine } from '../terminal.ts'
import { whole } from '../whole.ts'
import { idOf } from './arguments.ts'
import { type Address, addConnectionOptions, connect } from './connection.ts'
import { saveAnswer } from './files.ts'
import { printJson, printLines, printList } from './output.ts'

type Options = Address & { json?: boolean }

export const cyclesCommand = new Command('cycles')

addConnectionOptions(cyclesCommand.command('list'))
  .description('List pay cycles, newest first.')
  .addOption(new Option('--status <statuses...>', 'only cycles with these statuses').choices(enumOf('PayCycleStatus')))
  .option('--take <n>', 'how many to show, up to 1,000', whole({ min: 1, max: 1_000 }), 50)
  .option('--all', 'show every page')
  .option('--json', 'print the response of the API; with --all, a line of JSON per cycle')
  .addHelpText('after', examples('cycles list', 'cycles list --status Open --json'))
  .action(async (options: Options & { status?: PayCycleStatus[]; take: number; all?: boolean }) => {
    const midmonth = await connect(options)
    const list = midmonth.payCycles.list({ statuses: options.status, take: options.take })
    await printList(list, options, cycleRow)
  })

addConnectionOptions(cyclesCommand.command('show'))
  .description('Show one pay cycle.')
  .argument('<cycle>', 'the id, pc_…', idOf('pc'))
  .option('--json', 'print the response of the API')
  .addHelpText('after', examples('cycles show pc_…'))
  .action(async (payCycleId: PayCycleId, options: Options) => {
    const cycle = await (await connect(options)).payCycles.get(payCycleId)
    if (options.json) printJson(cycle)
    else writeLine(sheet(cycleRow(cycle)))
  })

addConnectionOptions(cyclesCommand.command('deductions'))
  .description('Write the deductions of a pay cycle for payroll as CSV. They are final once the cycle is closed.')
  .argument('<cycle>', 'the id, pc_…', idOf('pc'))
  .argument('[file]', 'a new file (default: standard output)')
  .option('--json', 'print a line of JSON per member instead, as the API has it')
  .addHelpText('after', examples('cycles deductions pc_… deductions.csv', 'cycles deductions pc_… --json'))
  .action(async (payCycleId: PayCycleId, file: string | undefined, options: Options) => {
    const { payCycles } = await connect(options)
    if (options.json) return await printLines(payCycles.listDeductions(payCycleId, { take: 1_000 }))
    await saveAnswer(() => payCycles.exportDeductions(payCycleId), { file })
    if (file !== undefined) writeLine(`Wrote ${file}.`)
  })

function cycleRow({ id, status, startDate, endDate, ...rest }: PayCycle): SheetRow {
  return { cycle: id, status, from: startDate, to: endDate, ...rest }
}
