import { HOME, normalisePath, UNKNOWN } from '../path.ts'
import { Unreadable } from './budget.ts'

/** Of Linux. */
const PATH_MAX = 4096

/** What a variable holds: a text or a list; what is not known in it is UNKNOWN. */
export type Value = string | readonly string[]

/** What the shell knows at one place: it is copied for subshells and branches. */
export class Scope {
  readonly #variables: Map<string, Value>
  #cwd: string
  positionals: readonly string[]
  readonly exported: Set<string>

  private constructor(variables: Map<string, Value>, from: Pick<Scope, 'cwd' | 'positionals' | 'exported'>) {
    this.#variables = variables
    this.#cwd = from.cwd
    this.positionals = from.positionals
    this.exported = new Set(from.exported)
  }

  /** `env` are names of variables whose values nobody told us. */
  static start(cwd: string, env: readonly string[]): Scope {
    const variables = new Map<string, Value>(Object.entries(BASE))
    for (const name of env) variables.set(name, UNKNOWN)
    return new Scope(variables, { cwd: normalisePath(cwd, '/'), positionals: [], exported: new Set() })
  }

  /** How much there is to copy. */
  get size(): number {
    return this.#variables.size + this.exported.size
  }

  copy(): Scope {
    return new Scope(new Map(this.#variables), this)
  }

  get cwd(): string {
    return this.#cwd
  }

  changeDirectory(path: string): void {
    this.#variables.set('OLDPWD', this.#cwd)
    this.#cwd = normalisePath(path, this.#cwd)
    // Each path is spelled from here: what no kernel takes would cost more with every step down.
    if (this.#cwd.length > PATH_MAX) throw new Unreadable('The directory is too long.')
  }

  get(name: string): Value | undefined {
    return name === 'PWD' ? this.#cwd : this.#variables.get(name)
  }

  set(name: string, value: Value): void {
    this.#variables.set(name, value)
  }

  unset(name: string): void {
    this.#variables.delete(name)
  }

  /** After one of several ways was taken: what differs is not known. */
  mergeWays(ways: readonly Scope[]): void {
    for (const way of ways) {
      for (const [name, value] of way.#variables)
        if (this.#variables.get(name) !== value) this.#variables.set(name, UNKNOWN)
      if (way.cwd !== this.#cwd) this.#cwd = way.cwd
    }
  }
}

const BASE: Readonly<Record<string, Value>> = {
  HOME,
  USER: 'user',
  LOGNAME: 'user',
  UID: '1000',
  EUID: '1000',
  IFS: ' \t\n',
  SHELL: '/bin/bash',
  PATH: '/usr/local/bin:/usr/bin:/bin',
}
