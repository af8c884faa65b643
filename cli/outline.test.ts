import { Command } from 'commander'
import { expect, test } from 'vitest'
import { outlinedCommand, outlineOf } from './outline.ts'
import { operatorCommands } from './run.ts'

const helpsOf = (command: Command): string[] => [command.helpInformation(), ...command.commands.flatMap(helpsOf)]

test('the help of an outlined command is that of the command itself', async () => {
  for (const { name, description, load } of operatorCommands.entries) {
    const command = (await load([name], async () => new Command())).description(description)
    expect(helpsOf(outlinedCommand(name))).toEqual(helpsOf(command))
    expect(outlineOf(outlinedCommand(name))).toEqual(outlineOf(command))
  }
})
