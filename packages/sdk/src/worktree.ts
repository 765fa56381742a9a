import type { ExportedWorktree, ExportWorktreeBody, WorktreeDiff } from './nouns.ts'
import type { Transport } from './transport/transport.ts'

interface Options {
  readonly signal?: AbortSignal | undefined
}

export interface ExportWorktreeOptions extends Options, ExportWorktreeBody {}

/** The git repository that a sandbox was created with, at /workspace/repo: what was changed in it, and how that leaves. */
export class SandboxWorktree {
  readonly #transport: Transport
  readonly #sandbox: string

  /** @internal */
  constructor(transport: Transport, sandbox: string) {
    this.#transport = transport
    this.#sandbox = sandbox
  }

  /** Seals what was changed so far. The hash of the answer names exactly this work in `patch` and `export`. */
  async diff(options: Options = {}): Promise<WorktreeDiff> {
    return this.#transport.json('diffWorktree', { params: this.#params, ...options })
  }

  /** Sealed work as a unified patch, which `git apply` takes. The gate decides. */
  async patch(seal: string, options: Options = {}): Promise<Uint8Array> {
    const response = await this.#transport.send('readWorktreePatch', {
      params: this.#params,
      query: { seal },
      ...options,
    })
    return new Uint8Array(await response.arrayBuffer())
  }

  /** Writes the work as one commit and a new branch `sandbox/<name>` of the repository. The gate decides. */
  async export(options: ExportWorktreeOptions = {}): Promise<ExportedWorktree> {
    const { signal, ...body } = options
    return this.#transport.json('exportWorktree', { params: this.#params, body, signal })
  }

  get #params(): { readonly id: string } {
    return { id: this.#sandbox }
  }
}
