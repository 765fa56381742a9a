import { type Budget, Unreadable } from './budget.ts'
import type { Part, Word } from './syntax.ts'

const MAX_WORDS = 256
const MAX_TOKENS = 2048
/** Of its text, quoted or not. */
const MAX_LENGTH = 32 * 1024
const MAX_BRACES = 64
const TOKENS_PER_STEP = 4

/** A character outside of quotes, or a whole part that is not looked into. */
type Token = string | Part

/** `{a,b}` and `{1..3}`, before anything else is expanded. Throws Unreadable beyond the bounds; long counts are cut. */
export function expandBraces(word: Word, budget: Budget): readonly Word[] {
  if (!word.some((part) => part.kind === 'text' && !part.isQuoted && part.text.includes('{'))) return [word]
  const length = word.reduce((sum, part) => sum + (part.kind === 'text' ? part.text.length : 1), 0)
  if (length > MAX_LENGTH) throw new Unreadable('The braces are too long.')
  const all = word.flatMap(tokens)
  if (all.length > MAX_TOKENS || all.filter((token) => token === '{').length > MAX_BRACES)
    throw new Unreadable('The braces are too long.')
  return expand(all, budget).map(toWord)
}

function tokens(part: Part): readonly Token[] {
  return part.kind === 'text' && !part.isQuoted ? Array.from(part.text) : [part]
}

/** The first group that has alternatives is taken apart; what follows it is expanded for each. */
function expand(all: readonly Token[], budget: Budget): readonly (readonly Token[])[] {
  for (let at = all.indexOf('{'); at >= 0; at = all.indexOf('{', at + 1)) {
    budget.spend(all.length / TOKENS_PER_STEP)
    const group = readGroup(all, at)
    if (group === undefined) continue
    const before = all.slice(0, at)
    const ways = group.ways.flatMap((way) => expand(way, budget))
    const rests = expand(all.slice(group.end + 1), budget)
    if (ways.length * rests.length > MAX_WORDS) throw new Unreadable('The braces become too many words.')
    budget.spend((ways.length * rests.length * all.length) / TOKENS_PER_STEP)
    return ways.flatMap((way) => rests.map((rest) => [...before, ...way, ...rest]))
  }
  return [all]
}

interface Group {
  readonly ways: readonly (readonly Token[])[]
  readonly end: number
}

function readGroup(all: readonly Token[], begin: number): Group | undefined {
  const ways: Token[][] = [[]]
  let depth = 0
  for (let at = begin + 1; at < all.length; at++) {
    const token = all[at]
    if (token === undefined) return undefined
    if (token === '}' && depth === 0) return close(ways, at)
    if (token === '{') depth++
    if (token === '}') depth--
    if (token === ',' && depth === 0) ways.push([])
    else ways.at(-1)?.push(token)
  }
  return undefined
}

function close(ways: readonly (readonly Token[])[], end: number): Group | undefined {
  if (ways.length > 1) return { ways, end }
  const sequence = readSequence((ways[0] ?? []).map((token) => (typeof token === 'string' ? token : ' ')).join(''))
  return sequence === undefined ? undefined : { ways: sequence.map((item) => Array.from(item)), end }
}

function readSequence(text: string): readonly string[] | undefined {
  const numbers = /^(-?\d{1,6})\.\.(-?\d{1,6})$/u.exec(text)
  if (numbers !== null) return range(Number(numbers[1]), Number(numbers[2])).map(String)
  const letters = /^([a-zA-Z])\.\.([a-zA-Z])$/u.exec(text)
  if (letters === null) return undefined
  return range(letters[1]?.charCodeAt(0) ?? 0, letters[2]?.charCodeAt(0) ?? 0).map((code) => String.fromCodePoint(code))
}

function range(first: number, last: number): readonly number[] {
  const length = Math.min(MAX_WORDS, Math.abs(last - first) + 1)
  return Array.from({ length }, (_, at) => first + (last < first ? -at : at))
}

function toWord(all: readonly Token[]): Word {
  const parts: Part[] = []
  let text = ''
  for (const token of all) {
    if (typeof token === 'string') text += token
    else {
      if (text !== '') parts.push({ kind: 'text', text, isQuoted: false })
      text = ''
      parts.push(token)
    }
  }
  if (text !== '') parts.push({ kind: 'text', text, isQuoted: false })
  return parts
}
