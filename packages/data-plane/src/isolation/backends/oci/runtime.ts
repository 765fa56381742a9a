import { AirlockError } from '@airlock/contract'
import { basename } from 'node:path'
import { findTool, runTool } from './run-tool.ts'

/** How a runtime treats control groups: crun leaves them to us, runc joins the one it is told. */
export type RuntimeKind = 'crun' | 'runc'

export interface Runtime {
  readonly kind: RuntimeKind
  readonly path: string
  readonly version: string
}

const KINDS: readonly RuntimeKind[] = ['crun', 'runc']

/** `auto` takes the first of crun and runc; else a name or a path of one of them. Fails closed. */
export async function findRuntime(wanted: string): Promise<Runtime> {
  const candidates = wanted === 'auto' ? KINDS : [wanted]
  for (const name of candidates) {
    const path = findTool(name)
    const runtime = path === undefined ? undefined : await describeRuntime(path)
    if (runtime) return runtime
  }
  throw new AirlockError(
    'isolation_unavailable',
    wanted === 'auto' ? 'No OCI runtime was found.' : `The OCI runtime "${wanted}" was not found or is not supported.`,
    { hint: 'apt-get install crun' },
  )
}

/** Undefined when it does not answer as one of the runtimes we know. */
export async function describeRuntime(path: string): Promise<Runtime | undefined> {
  const { exitCode, stdout } = await runTool(path, ['--version'])
  const match = /^(\w+) version (\S+)/mu.exec(stdout)
  const kind = KINDS.find((name) => name === match?.[1])
  return exitCode === 0 && kind && match?.[2] ? { kind, path, version: match[2] } : undefined
}

/** The runtime as it is shown: `crun 1.8.1`. */
export function nameOf(runtime: Runtime): string {
  return `${basename(runtime.path)} ${runtime.version}`
}
