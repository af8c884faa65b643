/**
 * Milliseconds of CPU time that this process has used. A bound on the work of a test is a bound on CPU time, because on a busy
 * machine any work may take long.
 */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}
