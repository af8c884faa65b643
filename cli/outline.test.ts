import { Command } from 'commander'
import { expect, test } from 'vitest'
import { outlinedCommand, outlineOf } from './outline.ts'
import { operatorCommands } from './run.ts'

const helpsOf = (command: Command): string[] => [command.helpInformation(), ...command.commands.flatMap(helpsOf)]

test('the help of an outlined command is that of the command itself', async () => {
  for (const { name, load } of operatorCommands.entries) {
    const command = await load()
    const outlined = outlinedCommand(name)
    // Another test of the same worker may have added the command to a program, whose name its help then begins with.
    for (const each of [command, outlined]) new Command('midmonth').addCommand(each)
    expect(helpsOf(outlined)).toEqual(helpsOf(command))
    expect(outlineOf(outlined)).toEqual(outlineOf(command))
  }
})
