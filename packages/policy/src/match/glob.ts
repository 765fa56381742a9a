import { type Automaton, runAutomaton, type State } from './automaton.ts'
import { rememberAutomaton } from './remembering.ts'

export type Matcher = (text: string) => boolean

/** How `*` reads a slash: like every other character, or as the end of a name. */
export type GlobOf = 'text' | 'path'

/** A list of globs: one of them matches, unless one that begins with `!` does. Only such ones: whatever they do not match. */
export interface GlobList {
  readonly matches: Matcher
  /** Every text that matches, when none of the globs has a wildcard. */
  readonly literals: readonly string[] | undefined
  /** Where the globs begin, up to their first wildcard: what a glob in a command is held against. */
  readonly stems: readonly string[]
}

export function compileGlobs(globs: readonly string[], of: GlobOf): GlobList {
  const wanted = globs.filter((glob) => !glob.startsWith('!'))
  const unwanted = globs.filter((glob) => glob.startsWith('!')).map((glob) => glob.slice(1))
  const isWanted = wanted.length === 0 ? () => true : anyOf(wanted, of)
  const isUnwanted = anyOf(unwanted, of)
  return {
    matches: unwanted.length === 0 ? isWanted : (text) => isWanted(text) && !isUnwanted(text),
    literals: wanted.length > 0 && unwanted.length === 0 && !wanted.some(hasWildcard) ? wanted : undefined,
    stems: wanted.map(stem),
  }
}

/** What has no wildcard is looked up, and of the others only those that begin in the same directory are tried. */
function anyOf(globs: readonly string[], of: GlobOf): Matcher {
  const literals = new Set(globs.filter((glob) => !hasWildcard(glob)))
  const wild = Map.groupBy(globs.filter(hasWildcard), (glob) => (of === 'path' ? topOf(glob) : ''))
  const anywhere = (wild.get('') ?? []).map((glob) => compileGlob(glob, of, rememberAutomaton))
  wild.delete('')
  const byTop = new Map(
    [...wild].map(([top, group]) => [top, group.map((glob) => compileGlob(glob, of, rememberAutomaton))]),
  )
  return (text) =>
    literals.has(text) ||
    anywhere.some((matches) => matches(text)) ||
    (byTop.size > 0 && byTop.get(topOf(text))?.some((matches) => matches(text)) === true)
}

/** `/etc` of `/etc/x`; empty when it does not begin with such a name. */
function topOf(path: string): string {
  if (!path.startsWith('/')) return ''
  const end = path.indexOf('/', 1)
  const top = end < 0 ? path : path.slice(0, end)
  return hasWildcard(top) ? '' : top
}

export function hasWildcard(glob: string): boolean {
  return /[*?[]/u.test(glob)
}

/** Total: what is not well-formed stands for itself. In a path `/x/**` is `/x` too. */
export function compileGlob(glob: string, of: GlobOf, run: typeof rememberAutomaton = runOnce): Matcher {
  if (!hasWildcard(glob)) return (text) => text === glob
  const simple = of === 'text' ? simpleText(glob) : simplePath(glob)
  if (simple !== undefined) return simple
  // Most texts do not even begin like the glob.
  const begin = glob.slice(0, glob.search(/[*?[]/u))
  const matches = run(build(glob, of))
  if (of === 'text' || !glob.endsWith('/**')) return (text) => text.startsWith(begin) && matches(text)
  const isDirectory = run(build(glob.slice(0, -3), of))
  return (text) => text.startsWith(begin) && (matches(text) || isDirectory(text))
}

/** For a glob that is tried a few times. */
function runOnce(automaton: Automaton): Matcher {
  return (text) => runAutomaton(automaton, text)
}

function stem(glob: string): string {
  const wildcard = glob.search(/[*?[]/u)
  return wildcard < 0 ? glob : glob.slice(0, wildcard).replace(/(?<=.)\/$/u, '')
}

function simpleText(glob: string): Matcher | undefined {
  const core = glob.replace(/^\*/u, '').replace(/\*$/u, '')
  if (hasWildcard(core)) return undefined
  if (glob === '*') return () => true
  if (glob.startsWith('*') && glob.endsWith('*')) return (text) => text.includes(core)
  return glob.startsWith('*') ? (text) => text.endsWith(core) : (text) => text.startsWith(core)
}

function simplePath(glob: string): Matcher | undefined {
  if (glob === '/**' || glob === '**') return glob === '**' ? () => true : (text) => text.startsWith('/')
  if (!glob.endsWith('/**') || hasWildcard(glob.slice(0, -3))) return undefined
  const directory = glob.slice(0, -3)
  const below = `${directory}/`
  return (text) => text.startsWith(below) || text === directory
}

function build(glob: string, of: GlobOf): Automaton {
  const states: State[] = []
  const loop = (test: (code: number) => boolean) => {
    const at = states.length
    states.push({ kind: 'either', first: at + 1, second: at + 2 }, { kind: 'take', test, next: at })
  }
  const take = (test: (code: number) => boolean) => states.push({ kind: 'take', test, next: states.length + 1 })
  const notSlash = of === 'path' ? (code: number) => code !== 47 : () => true
  for (let at = 0; at < glob.length; at++) {
    const char = glob.charAt(at)
    const set = char === '[' ? characterSet(glob, at) : undefined
    if (char === '*' && glob.charAt(at + 1) === '*') {
      loop(() => true)
      at++
    } else if (char === '*') loop(notSlash)
    else if (char === '?') take(notSlash)
    else if (set === undefined) take((code) => code === char.charCodeAt(0))
    else {
      take(set.test)
      at = set.end
    }
  }
  states.push({ kind: 'found' })
  return { states, start: 0, isWhole: true }
}

/** `[abc]`, `[a-z]`, `[!abc]`; undefined when nothing closes it. */
function characterSet(glob: string, begin: number): { test: (code: number) => boolean; end: number } | undefined {
  const isNegated = glob[begin + 1] === '!' || glob[begin + 1] === '^'
  const first = begin + (isNegated ? 2 : 1)
  const end = glob.indexOf(']', first + 1)
  if (end < 0) return undefined
  const ranges: [number, number][] = []
  for (let at = first; at < end; at++) {
    const isRange = glob[at + 1] === '-' && at + 2 < end
    ranges.push([glob.charCodeAt(at), glob.charCodeAt(isRange ? at + 2 : at)])
    if (isRange) at += 2
  }
  return { test: (code) => ranges.some(([low, high]) => code >= low && code <= high) !== isNegated, end }
}
