import type { Runtime } from '@airlock/sdk'
import { statSync } from 'node:fs'
import { basename, extname } from 'node:path'
import { toStepOptions, type CodeOptions, type OutOptions } from '../options/code-options.ts'
import type { Context } from '../context.ts'
import { bringBack } from './bring-back.ts'
import { toBringBack } from './bring-back-options.ts'
import { readCodeFile } from './read-code.ts'
import { runCode } from './run-code.ts'
import { withSession } from './with-session.ts'

const RUNTIMES: Readonly<Record<string, Runtime>> = {
  '.py': 'python',
  '.js': 'node',
  '.mjs': 'node',
  '.cjs': 'node',
  '.ts': 'node',
  '.mts': 'node',
  '.sh': 'bash',
  '.bash': 'bash',
}

/** Whether it is called as a program that we interpret. */
export function isCode(path: string): boolean {
  return Object.hasOwn(RUNTIMES, extname(path))
}

/** What would interpret it, if it is a program on this machine. */
export function runtimeOf(path: string): Runtime | undefined {
  const runtime = RUNTIMES[extname(path)]
  return runtime !== undefined && statSync(path, { throwIfNoEntry: false })?.isFile() === true ? runtime : undefined
}

/** Runs a program of this machine as a step in a sandbox of its own: pictures and tables come out. */
export async function runFile(
  context: Context,
  { path, args, runtime }: { readonly path: string; readonly args: readonly string[]; readonly runtime: Runtime },
  options: CodeOptions & OutOptions & { readonly json?: boolean },
): Promise<number> {
  const code = await readCodeFile(path)
  const step = await toStepOptions(options)
  const watching = { terminal: context.terminal, json: options.json === true }
  return withSession(context, { runtime, options, code }, async (session, interrupts) => {
    const argv = [basename(path), ...args]
    const program = { session, interrupts, code, argv, options: step, json: watching.json }
    const back = { files: session.files, ...toBringBack(options, session.data.sandbox), command: 'airlock run' }
    return bringBack(watching, back, async () => runCode(context.terminal, program))
  })
}
