import { readdirSync } from 'node:fs'

// The commands that the drill runs, and Debian's packages that have them.
const packages = { etcd: 'etcd-server', patroni: 'patroni', haproxy: 'haproxy', ip: 'iproute2', nsenter: 'util-linux' }

/** Says what this machine lacks for the drill; undefined if it can run. */
export function missingRequirements(): string | undefined {
  const commands = [...(process.env.PATH ?? '').split(':'), '/usr/sbin', '/sbin'].flatMap(entriesOf)
  const missing = Object.entries(packages).flatMap(([command, name]) => (commands.includes(command) ? [] : name))
  if (entriesOf('/usr/lib/postgresql').length === 0) missing.push('postgresql')
  const wants = [
    ...(process.getuid?.() === 0 ? [] : ['root, for the network namespaces of its machines']),
    ...(missing.length === 0 ? [] : [`Debian’s packages ${missing.join(', ')}`]),
  ]
  return wants.length === 0 ? undefined : `the drill needs ${wants.join(', and ')}`
}

function entriesOf(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
