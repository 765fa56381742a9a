import type { Runtime } from '@airlock/sdk'
import { statSync } from 'node:fs'
import { basename, extname } from 'node:path'
import { toStepOptions, type CodeOptions } from '../options/code-options.ts'
import type { Context } from '../context.ts'
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
  options: CodeOptions & { readonly json?: boolean },
): Promise<number> {
  const code = await readCodeFile(path)
  const step = await toStepOptions(options)
  return withSession(context, { runtime, options, code }, async (session, interrupts) =>
    runCode(context.terminal, {
      session,
      interrupts,
      code,
      argv: [basename(path), ...args],
      options: step,
      json: options.json === true,
    }),
  )
}
