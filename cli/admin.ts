import { Command } from 'commander'
import { adminKeyCommand } from './admin-key.ts'

export const adminCommand = new Command('admin').addCommand(adminKeyCommand)
