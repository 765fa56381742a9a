import { posix } from 'node:path'

/** What a list of patterns means, of paths with one character for each byte. */
export interface Patterns {
  /** Directories, or files without a wildcard, where looking begins. None is inside another. */
  readonly roots: readonly string[]
  matches(path: string): boolean
  /** Something below this directory could match. */
  mayLeadTo(directory: string): boolean
}

type Part = { readonly kind: 'any' } | { readonly kind: 'name'; readonly matches: (name: string) => boolean }

/** `*` and `?` end at a slash, `**` as a whole name is any number of directories. Nothing else has a meaning. */
export function compilePatterns(patterns: readonly string[], base: string): Patterns {
  const paths = patterns.map((pattern) => posix.resolve(base, Buffer.from(pattern).toString('latin1')))
  const all = paths.map((path) => namesOf(path).map(partOf))
  return {
    roots: outermost(paths.map(rootOf)),
    matches: (path) => all.some((parts) => matchesAll(parts, namesOf(path))),
    mayLeadTo: (directory) => all.some((parts) => matchesStart(parts, namesOf(directory))),
  }
}

function namesOf(path: string): readonly string[] {
  return path.split('/').filter((name) => name !== '')
}

function partOf(text: string): Part {
  if (text === '**') return { kind: 'any' }
  return { kind: 'name', matches: (name) => matchesName(text, name) }
}

/** Up to the first name with a wildcard. */
function rootOf(path: string): string {
  const names = namesOf(path)
  const wild = names.findIndex((name) => /[*?]/.test(name))
  return `/${names.slice(0, wild < 0 ? names.length : wild).join('/')}`
}

function outermost(roots: readonly string[]): readonly string[] {
  const isInside = (root: string, other: string) => other === '/' || root.startsWith(`${other}/`)
  return [...new Set(roots)]
    .filter((root) => !roots.some((other) => other !== root && isInside(root, other)))
    .toSorted()
}

/** Which parts may come next, after each name; work is bounded by names × parts. */
function run(parts: readonly Part[], names: readonly string[]): ReadonlySet<number> {
  let here = closed(parts, new Set([0]))
  for (const name of names) {
    const next = new Set<number>()
    for (const at of here) {
      const part = parts[at]
      if (part?.kind === 'any') next.add(at)
      else if (part?.matches(name) === true) next.add(at + 1)
    }
    here = closed(parts, next)
  }
  return here
}

/** `**` may be no directory at all. */
function closed(parts: readonly Part[], here: Set<number>): Set<number> {
  for (const at of here) if (parts[at]?.kind === 'any') here.add(at + 1)
  return here
}

function matchesAll(parts: readonly Part[], names: readonly string[]): boolean {
  return run(parts, names).has(parts.length)
}

function matchesStart(parts: readonly Part[], names: readonly string[]): boolean {
  return [...run(parts, names)].some((at) => at < parts.length)
}

/** Goes back to the last `*` alone, so work is bounded by pattern × name. */
function matchesName(pattern: string, name: string): boolean {
  let at = 0
  let star = -1
  let from = 0
  for (let index = 0; index < name.length;) {
    const wanted = pattern[at]
    if (wanted === '*') {
      star = at++
      from = index
    } else if (wanted === '?' || wanted === name[index]) {
      at++
      index++
    } else if (star >= 0) {
      at = star + 1
      index = ++from
    } else return false
  }
  while (pattern[at] === '*') at++
  return at === pattern.length
}
