import type { Channel } from './channels/channel.ts'
import type { ChannelType } from './channels/rail.ts'
import type { simulatedBank } from './channels/simulated/simulated-bank.ts'

/** The channel of each `type` that a rail can have in the settings file. A new bank API adds one line. */
export const channelTypes: Readonly<Record<string, () => Promise<ChannelType>>> = {
  'sepa-file': async () => (await import('./channels/files/configure.ts')).sepaFile,
  'standard18-file': async () => (await import('./channels/files/configure.ts')).standard18File,
  'uk-pain001-file': async () => (await import('./channels/files/configure.ts')).ukPain001File,
  adyen: async () => (await import('./channels/adyen/configure.ts')).adyen,
}

/** The bank of a sandbox, which needs no rail: it pays the currencies that no rail pays. */
export async function openSimulatedBank(options: Parameters<typeof simulatedBank>[0]): Promise<Channel> {
  return (await import('./channels/simulated/simulated-bank.ts')).simulatedBank(options)
}
