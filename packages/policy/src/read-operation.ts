import type { Operation } from '@airlock/contract'
import type { Reading } from './reading.ts'
import { readArgv, readProgram, readScript } from './shell/read.ts'

const NOTHING: Reading = { invocations: [], codes: [], work: 0 }

/** What a command or a piece of code would start; nothing of every other operation. Total: what cannot be read says so. */
export function readOperation(operation: Operation): Reading {
  if (operation.kind === 'command') return readArgv(operation.argv, operation)
  if (operation.kind !== 'code') return NOTHING
  if (operation.runtime === 'bash') return readScript(operation.code, { env: [] })
  return readProgram(operation.runtime, operation.code)
}
