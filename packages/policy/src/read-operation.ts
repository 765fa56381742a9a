import type { Operation } from '@airlock/contract'
import { WORKSPACE } from './path.ts'
import { Invocation, type Reading } from './reading.ts'
import { readArgv, readProgram, readScript } from './shell/read.ts'

const NOTHING: Reading = { invocations: [], codes: [], work: 0 }

/**
 * What a command or a piece of code would start, and the variables that an operation sets for whatever is started. Total: what
 * cannot be read says so.
 */
export function readOperation(operation: Operation): Reading {
  const reading = readStarted(operation)
  const assigns = variablesOf(operation)
  if (assigns.length === 0) return reading
  // A program without a name: rules about variables see it, and no rule has to cover it.
  const set = new Invocation({ program: '', words: [], cwd: WORKSPACE, assigns, isCovered: true })
  return { ...reading, invocations: [...reading.invocations, set], work: reading.work + assigns.length }
}

function readStarted(operation: Operation): Reading {
  if (operation.kind === 'command') return readArgv(operation.argv, operation)
  if (operation.kind !== 'code') return NOTHING
  if (operation.runtime === 'bash') return readScript(operation.code, { env: operation.env ?? [] })
  return readProgram(operation.runtime, operation.code)
}

/** Of a command they are read with it. What has no kind of its own, as a new session, names them in its payload. */
function variablesOf(operation: Operation): readonly string[] {
  if (operation.kind === 'code' || operation.kind === 'sandbox') return operation.env ?? []
  if (operation.kind !== 'other') return []
  const { env } = operation.payload
  return Array.isArray(env) ? env.filter((name) => typeof name === 'string') : []
}
