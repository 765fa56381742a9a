import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { SandboxPaths } from './paths.ts'
import { identityOf, type Runtime } from './runtime.ts'

/** What crun made of our list for its first sandbox: given back to it, that saves the time. Another crun compiles again. */
export class CompiledFilter {
  #known: { readonly by: string; readonly filter: string | undefined } | undefined

  /** In base64. */
  of(runtime: Runtime): string | undefined {
    return runtime.kind === 'crun' && this.#known?.by === identityOf(runtime) ? this.#known.filter : undefined
  }

  async keep(runtime: Runtime, paths: SandboxPaths, id: string): Promise<void> {
    if (runtime.kind !== 'crun') return
    const by = identityOf(runtime)
    if (this.#known?.by !== by) this.#known = { by, filter: await read(paths, id) }
  }
}

/** Where crun keeps the filter of a sandbox, for commands of its own. Undefined when it does not. */
async function read(paths: SandboxPaths, id: string): Promise<string | undefined> {
  return await readFile(join(paths.runtimeState, id, 'seccomp.bpf'), 'base64').catch(() => undefined)
}
