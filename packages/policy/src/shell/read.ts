import type { Reading } from '../reading.ts'
import { WORKSPACE } from '../path.ts'
import { Budget, workFor } from './budget.ts'
import { Scope } from './scope.ts'
import { Walker } from './walk.ts'

/** What an argv would start, through shells and wrappers. Total and bounded: what cannot be read is a part of the answer. */
export function readArgv(
  argv: readonly string[],
  { cwd, env }: { readonly cwd: string; readonly env: readonly string[] },
): Reading {
  const scope = Scope.start(cwd === '' ? WORKSPACE : cwd, env)
  for (const name of env) scope.exported.add(name)
  const length = argv.reduce((sum, word) => sum + word.length, 0)
  return walk(new Walker(scope, new Budget(workFor(length, 'script'))), (walker) => walker.start(argv))
}

/** The same of a script. */
export function readScript(
  text: string,
  { cwd = WORKSPACE, env }: { readonly cwd?: string; readonly env: readonly string[] },
): Reading {
  const scope = Scope.start(cwd, env)
  for (const name of env) scope.exported.add(name)
  return walk(new Walker(scope, new Budget(workFor(text.length, 'script'))), (walker) => walker.run(text))
}

/** The same of code for an interpreter: the programs that it starts by literal lines. */
export function readProgram(runtime: string, code: string): Reading {
  return walk(new Walker(Scope.start(WORKSPACE, []), new Budget(workFor(code.length, 'code'))), (walker) =>
    walker.readCode(runtime, code),
  )
}

function walk(walker: Walker, start: (walker: Walker) => void): Reading {
  walker.read(start)
  return walker.finish()
}
