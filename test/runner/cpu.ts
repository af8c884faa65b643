/**
 * The CPU time of this process, in milliseconds. Tests bound CPU time instead of elapsed time, because on a busy
 * machine any work may take long to finish.
 */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}
