/** Examples shown below a command's help. They run as pasted in a checkout once the ids are filled in. */
export function examples(...commands: string[]): string {
  const lines = commands.map(command => `  midmonth ${command}`)
  return `\n${commands.length === 1 ? 'Example' : 'Examples'}:\n${lines.join('\n')}`
}
