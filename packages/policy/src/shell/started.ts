import type { Trait } from '@airlock/contract'
import type { InvocationFacts } from '../reading.ts'
import type { Scope } from './scope.ts'

/** What comes out of a program. */
export interface Output {
  /** The text itself, where it can be known. */
  readonly text: string | undefined
  /** The programs that made it, when it cannot. */
  readonly sources: readonly string[]
  /** Paths that it lists, or that lie above what it lists. */
  readonly paths?: readonly string[]
}

export const NO_OUTPUT: Output = { text: '', sources: [] }

/** A program that is about to be started. */
export interface Started {
  readonly program: string
  readonly words: readonly string[]
  readonly stdin: Output | undefined
  /** The programs whose output is in its words, where that is not known. */
  readonly sources: readonly string[]
}

/** What was seen by looking into its arguments. */
export interface Looked {
  readonly output?: Output
  readonly runsOutputOf?: readonly string[]
  readonly traits?: readonly Trait[]
  readonly assigns?: readonly string[]
  /** Where it leaves something that is not known. */
  readonly files?: readonly string[]
  /** It is nothing but what it starts. */
  readonly isCovered?: boolean
}

/** What the readers of single programs may do. */
export interface Shell {
  readonly scope: Scope
  /** Reads a script: in this shell, or in one of its own with these arguments. */
  run(text: string, own?: { readonly positionals: readonly string[]; readonly stdin?: Output | undefined }): Output
  start(
    argv: readonly string[],
    more?: { readonly stdin?: Output | undefined; readonly sources?: readonly string[] },
  ): Output
  readCode(runtime: string, code: string): void
  /** Counts work on texts that are worked out. Throws Exhausted. */
  spend(work: number): void
  note(facts: Omit<InvocationFacts, 'cwd'>): void
  /** What was written to it before, in the same script. */
  file(path: string): Output | undefined
}

export type Look = (started: Started, shell: Shell) => Looked
