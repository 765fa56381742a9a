import type { FileEntry, SandboxFiles } from '@airlock/sdk'
import { quote } from '../text/quote.ts'
import { noteTo, type Watching } from './copy-files.ts'

const WORKSPACE = '/workspace'
const MOST = 1000
const SHOWN = 5

/** The files of /workspace before a run, to tell afterwards which are new. Where nobody watches it asks nothing. */
export class NewFiles {
  readonly #watching: Watching
  readonly #files: SandboxFiles
  readonly #before: ReadonlyMap<string, string>

  private constructor(watching: Watching, files: SandboxFiles, before: ReadonlyMap<string, string>) {
    this.#watching = watching
    this.#files = files
    this.#before = before
  }

  static async watch(watching: Watching, files: SandboxFiles): Promise<NewFiles> {
    const entries = isWatched(watching) ? await listWorkspace(files) : []
    return new NewFiles(watching, files, new Map(entries.map((entry) => [entry.name, markOf(entry)])))
  }

  /** One line that names new and changed files, and how to get them. */
  async tell(out: readonly string[], command: string): Promise<void> {
    if (!isWatched(this.#watching)) return
    const brought = new Set(out.map((path) => path.replace(/^\/workspace\//u, '').split('/')[0]))
    const entries = await listWorkspace(this.#files)
    const fresh = entries.filter((one) => this.#before.get(one.name) !== markOf(one) && !brought.has(one.name))
    if (fresh.length === 0 || brought.has(WORKSPACE) || brought.has('.')) return
    const names = fresh.slice(0, SHOWN).map(({ name, kind }) => (kind === 'directory' ? `${name}/` : name))
    const more = fresh.length > SHOWN ? ` and ${fresh.length - SHOWN} more` : ''
    const options = fresh.length > SHOWN ? '--out .' : names.map((name) => `--out ${quote(name)}`).join(' ')
    noteTo(this.#watching)(
      `new in /workspace, and gone with the sandbox: ${names.join(', ')}${more}. To bring them back: ${command} ${options} …`,
    )
  }
}

function isWatched({ terminal, json }: Watching): boolean {
  return terminal.isWatched && !json
}

/** An end that took the sandbox along has no files, and its own sentence. */
async function listWorkspace(files: SandboxFiles): Promise<readonly FileEntry[]> {
  try {
    return (await files.list(WORKSPACE, { limit: MOST })).entries
  } catch {
    // The line is a courtesy: the run itself must not fail for it.
    return []
  }
}

function markOf({ kind, size, modifiedAt }: FileEntry): string {
  return `${kind} ${size} ${modifiedAt}`
}
