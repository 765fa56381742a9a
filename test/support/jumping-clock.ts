import child, { type ForkOptions } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

/**
 * Loaded before a server (`NODE_OPTIONS=--import`): the wall clock of all its processes is ahead by as many ms as the file
 * `CLOCK_JUMP` says at the moment. Time since boot is what it is, as when somebody sets the clock of the machine.
 */
const { CLOCK_JUMP: file = '', NODE_OPTIONS = '' } = process.env
const RealDate = Date
const ahead = (): number => Number(readFileSync(file, 'utf8'))

globalThis.Date = class extends RealDate {
  constructor(...of: readonly unknown[]) {
    if (of.length === 0) super(RealDate.now() + ahead())
    else super(...(of as [number]))
  }

  static override now(): number {
    return RealDate.now() + ahead()
  }
} as DateConstructor

// The supervisor gives its processes an environment of their own.
const { fork } = child
const forked = (main: string, args: readonly string[], options: ForkOptions) =>
  fork(main, args, { ...options, env: { ...options.env, CLOCK_JUMP: file, NODE_OPTIONS } })
Object.assign(child, { fork: forked })
syncBuiltinESMExports()
