/** Examples of a command, below its help. They work as pasted in a checkout, but for the ids. */
export function examples(...commands: string[]): string {
  const lines = commands.map(command => `  npx openwage ${command}`)
  return `\n${commands.length === 1 ? 'Example' : 'Examples'}:\n${lines.join('\n')}`
}
