import type { Finding, FindingKind } from '@airlock/contract'
import { findSecrets } from './secrets.ts'
import { foldName, sensitiveKinds, strangeName } from './sensitive-paths.ts'

const LINK = '120000'
const GITLINK = '160000'
const MAX_LINE = 10_000
const LARGE_BYTES = 5 * 1024 * 1024
const MANY_CHANGES = 1000
const MANY_BYTES = 20 * 1024 * 1024
/** How many are said of each kind; there is one more that says how many there are. */
const SHOWN = 20

/** One change as the gate sees it: names and contents, never a patch. */
export interface JudgedChange {
  /** Bytes that are not UTF-8 as U+FFFD. */
  readonly path: string
  /** What people and rules are told. */
  readonly shown: string
  readonly oldMode: string | null
  readonly newMode: string | null
  /** Undefined where nothing new leaves. */
  readonly content: Buffer | undefined
}

export function isBinary(content: Buffer): boolean {
  return content.includes(0)
}

/** Collects what a person should see before work leaves. Every change is given once; the order does not matter. */
export class Gate {
  readonly #findings: Finding[] = []
  readonly #counts = new Map<FindingKind, number>()
  readonly #folded = new Map<string, string>()
  #changes = 0
  #bytes = 0

  async judge(change: JudgedChange): Promise<void> {
    const { path, shown, oldMode, newMode, content } = change
    this.#changes++
    for (const kind of sensitiveKinds(path)) this.#add(kind, shown, newMode === null ? 'is deleted' : 'is changed')
    if (oldMode === GITLINK || newMode === GITLINK) this.#add('submodule', shown, 'is a submodule')
    if (newMode === null) return
    this.#judgeName(path, shown)
    if (content === undefined) return
    this.#bytes += content.length
    if (newMode === LINK) this.#judgeLink(path, shown, content)
    else await this.#judgeContent(shown, content)
  }

  /** What git cannot hold and stays behind: a person should know. */
  leaveOut(shown: string, why: string): void {
    this.#add('left-out', shown, why)
  }

  /** In the order in which they were found, those of a kind together. */
  finish(): readonly Finding[] {
    if (this.#changes > MANY_CHANGES) this.#add('many', '', `${this.#changes} files are changed`)
    if (this.#bytes > MANY_BYTES) this.#add('many', '', `${this.#bytes >> 20} MiB are new`)
    const more = [...this.#counts].flatMap(([kind, count]): Finding[] => {
      return count > SHOWN ? [{ kind, path: '', line: null, detail: `${count - SHOWN} more of this kind` }] : []
    })
    return [...this.#findings, ...more].toSorted((a, b) => (a.kind < b.kind ? -1 : a.kind > b.kind ? 1 : 0))
  }

  #judgeName(path: string, shown: string): void {
    const why = strangeName(path)
    if (why !== undefined) this.#add('name', shown, why)
    const folded = path.split('/').map(foldName).join('/')
    const other = this.#folded.get(folded)
    if (other !== undefined && other !== path) this.#add('name', shown, 'differs from another file only in its case')
    this.#folded.set(folded, path)
  }

  #judgeLink(path: string, shown: string, content: Buffer): void {
    const target = content.toString('latin1')
    if (leadsOut(path, target)) this.#add('link-out', shown, 'is a link that leads out of the repository')
    if (target.split('/').some((name) => foldName(name) === '.git')) this.#add('link-out', shown, 'is a link into .git')
  }

  async #judgeContent(shown: string, content: Buffer): Promise<void> {
    if (content.length > LARGE_BYTES) this.#add('large', shown, `has ${(content.length / 1024 / 1024).toFixed(1)} MiB`)
    if (isBinary(content)) this.#add('binary', shown, 'is not text')
    else {
      const line = longLine(content)
      if (line !== undefined) this.#add('long-line', shown, `has a line of more than ${MAX_LINE} characters`, line)
    }
    for (const { what, at } of await findSecrets(content)) this.#add('secret', shown, what, lineAt(content, at))
  }

  // oxlint-disable-next-line max-params -- a row of a list
  #add(kind: FindingKind, path: string, detail: string, line: number | null = null): void {
    const count = (this.#counts.get(kind) ?? 0) + 1
    this.#counts.set(kind, count)
    if (count <= SHOWN) this.#findings.push({ kind, path, line, detail })
  }
}

/** Behind a name ".." means the parent of wherever another link leads: then nobody can tell. */
function leadsOut(path: string, target: string): boolean {
  if (target.startsWith('/') || target.includes('\\') || /^[a-z]:/iu.test(target)) return true
  const parts = target.split('/').filter((part) => part !== '' && part !== '.')
  const first = parts.findIndex((part) => part !== '..')
  const up = first < 0 ? parts.length : first
  return up > path.split('/').length - 1 || parts.slice(up).includes('..')
}

function longLine(content: Buffer): number | undefined {
  let line = 1
  for (let from = 0; from <= content.length; line++) {
    const end = content.indexOf(10, from)
    if ((end < 0 ? content.length : end) - from > MAX_LINE) return line
    if (end < 0) return undefined
    from = end + 1
  }
  return undefined
}

function lineAt(content: Buffer, at: number): number {
  let line = 1
  for (let next = content.indexOf(10); next >= 0 && next < at; next = content.indexOf(10, next + 1)) line++
  return line
}
