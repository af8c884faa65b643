#!/usr/bin/env node
import { runProcess, runProgram } from '../program.ts'
import { partnerCommands } from './commands.ts'

// The program of the package for partners, which has no commands for operators.
await runProcess((args, on) => runProgram([partnerCommands], args, on))
