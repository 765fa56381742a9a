/** The words of one `update-alternatives` that a package would have run: its arguments from `--install` on. */
export type Alternative = readonly string[]

const MAX = 256
const NAME = /^[\w.+-]+$/u
const PATH = /^\/(?!.*(?:^|\/)\.\.(?:\/|$))[\w.+@/-]+$/u

/**
 * Reads what a maintainer script would install as alternatives, without running it. Lines that need a shell to be
 * understood are left out: what they offer has to be called by its own name.
 */
export function readAlternatives(script: string): readonly Alternative[] {
  const lines = script.replaceAll(/\\\n/gu, ' ').split('\n')
  return lines.flatMap((line) => parse(line) ?? []).slice(0, MAX)
}

function parse(line: string): readonly [Alternative] | undefined {
  const [, rest] = /^\s*update-alternatives\b.*?\s(--install\s.*)$/u.exec(line) ?? []
  if (rest === undefined) return undefined
  const plain = rest.split(/\s*(?:\|\||&&|;|\||>|2>)/u)[0] ?? ''
  const words = plain.trim().split(/\s+/u)
  const isWhole = isPlain(words.slice(1, 4)) && /^-?\d+$/u.test(words[4] ?? '') && areSlaves(words.slice(5))
  return isWhole ? [words] : undefined
}

function areSlaves(words: readonly string[]): boolean {
  if (words.length === 0) return true
  return words[0] === '--slave' && isPlain(words.slice(1, 4)) && areSlaves(words.slice(4))
}

function isPlain([link = '', name = '', path = '']: readonly string[]): boolean {
  return PATH.test(link) && NAME.test(name) && PATH.test(path)
}
