#!/usr/bin/env node
import { runProcess } from './program.ts'
import { run } from './run.ts'

await runProcess(run)
