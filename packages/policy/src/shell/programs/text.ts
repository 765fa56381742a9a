import { isKnown } from '../../reading.ts'
import { UNKNOWN } from '../../path.ts'
import { valueOf } from '../../writers.ts'
import { decodeAnsi } from '../quotes.ts'
import { type Look, type Looked, NO_OUTPUT, type Output, type Shell, type Started } from '../started.ts'
import { splitOptions } from './options.ts'

const MAX_TEXT = 64 * 1024

/** Of what is worked out character by character. */
const CHARACTERS_PER_STEP = 4

const echo: Look = ({ words }) => {
  const flags = words.findIndex((word) => !/^-[neE]+$/u.test(word))
  const options = (flags < 0 ? words : words.slice(0, flags)).join('')
  const text = (flags < 0 ? [] : words.slice(flags)).join(' ')
  const decoded = options.includes('e') || text.includes('\\') ? decodeAnsi(text) : text
  return { output: { text: options.includes('n') ? decoded : `${decoded}\n`, sources: [] } }
}

const printf: Look = ({ words }, shell) => {
  const { scope } = shell
  const isVariable = words[0] === '-v'
  const [format = '', ...values] = words.slice(isVariable ? 2 : words[0] === '--' ? 1 : 0)
  shell.spend((format.length * (1 + Math.min(64, values.length))) / CHARACTERS_PER_STEP)
  const text = formatted(decodeAnsi(format), values)
  if (isVariable) scope.set(words[1] ?? '', text)
  return { output: isVariable ? NO_OUTPUT : { text, sources: [] } }
}

const DIRECTIVE = /%(?:%|[-+ #0]*[0-9]*(?:\.[0-9]+)?([sbcdiuxXofq]))/gu

/** As often as there are values for it. */
function formatted(format: string, values: readonly string[]): string {
  const directives = [...format.matchAll(DIRECTIVE)].filter((match) => match[1] !== undefined).length
  const rounds = directives === 0 ? 1 : Math.max(1, Math.min(64, Math.ceil(values.length / directives)))
  let at = 0
  const one = () =>
    format.replaceAll(DIRECTIVE, (_, kind: string | undefined) =>
      kind === undefined ? '%' : value(values[at++], kind),
    )
  return Array.from({ length: rounds }, one).join('').slice(0, MAX_TEXT)
}

function value(text: string | undefined, kind: string): string {
  if (text === undefined) return 'diuxXof'.includes(kind) ? '0' : ''
  if (kind === 'b') return decodeAnsi(text)
  if (kind === 'c') return text.slice(0, 1)
  return 'sdiq'.includes(kind) ? text : UNKNOWN
}

const cat: Look = (started, shell) => ({ output: inputOf(started, shell) })

/** What a filter reads: its files in a row, or what comes in. */
function inputOf({ words, stdin, program }: Started, shell: Shell): Output {
  const paths = words.filter((word) => !word.startsWith('-'))
  if (paths.length === 0) return stdin ?? { text: undefined, sources: [] }
  const parts = paths.map((path) => shell.file(path))
  const texts = parts.map((part) => part?.text)
  const sources = parts.flatMap((part) => part?.sources ?? [])
  if (texts.every((text) => text !== undefined)) return { text: texts.join(''), sources }
  return { text: undefined, sources: sources.length > 0 ? sources : [program] }
}

/** A filter that can be worked out on a text that is known. */
function filter(change: (text: string, words: readonly string[]) => string | undefined): Look {
  return (started, shell) => {
    const { program, words } = started
    const { text, sources } = inputOf({ ...started, words: splitOptions(words, ['-w', '-n', '-c']).rest }, shell)
    shell.spend((text?.length ?? 0) / CHARACTERS_PER_STEP)
    const changed = text === undefined || !isKnown(text) ? undefined : change(text, words)
    return { output: { text: changed, sources: changed === undefined ? [program, ...sources] : sources } }
  }
}

function base64(text: string, words: readonly string[]): string | undefined {
  if (!words.some((word) => /^(?:-[a-z]*[dD][a-z]*|--decode)$/u.test(word))) return undefined
  return Buffer.from(text, 'base64').toString('utf8')
}

function hexadecimal(text: string, words: readonly string[]): string | undefined {
  const flags = words.filter((word) => word.startsWith('-')).join('')
  if (!flags.includes('r') || !flags.includes('p')) return undefined
  return Buffer.from(text.replaceAll(/\s/gu, ''), 'hex').toString('utf8')
}

function reversed(text: string): string {
  return text
    .split('\n')
    .map((line) => Array.from(line).toReversed().join(''))
    .join('\n')
}

/** `tr SET SET` and `tr -d SET` of what comes in. */
const translate: Look = ({ words, stdin }, shell) => {
  const operands = words.filter((word) => !/^-[cdst]+$/u.test(word))
  const from = setOf(operands[0] ?? '')
  const to = setOf(operands[1] ?? '')
  const text = stdin?.text
  const unknown: Looked = { output: { text: undefined, sources: ['tr', ...(stdin?.sources ?? [])] } }
  if (text === undefined || from === undefined || to === undefined || words[0] === '-c') return unknown
  shell.spend((text.length * (1 + from.length / 16)) / CHARACTERS_PER_STEP)
  const isDeleted = words.includes('-d')
  if (!isDeleted && to.length === 0) return unknown
  const changed = Array.from(text, (char) => {
    const at = from.indexOf(char)
    return at < 0 ? char : isDeleted ? '' : (to[at] ?? to.at(-1) ?? '')
  })
  return { output: { text: changed.join(''), sources: [] } }
}

function setOf(text: string): readonly string[] | undefined {
  if (/\[[:.=]/u.test(text)) return undefined
  const chars = Array.from(decodeAnsi(text))
  const set: string[] = []
  for (let at = 0; at < chars.length; at++) {
    const last = chars[at + 1] === '-' ? chars[at + 2] : undefined
    const first = chars[at] ?? ''
    if (last === undefined) set.push(first)
    else {
      const length = Math.max(0, Math.min(256, last.charCodeAt(0) - first.charCodeAt(0) + 1))
      set.push(...Array.from({ length }, (_, offset) => String.fromCodePoint(first.charCodeAt(0) + offset)))
      at += 2
    }
  }
  return set
}

/** What they fetch lies where they are told, or has the name it had there. */
const download: Look = ({ program, words }) => {
  const told = valueOf(words, program === 'curl' ? ['-o', '--output'] : ['-O', '--output-document'])
  const names = words.filter((word) => /^\w+:\/\//u.test(word)).map((url) => url.slice(url.lastIndexOf('/') + 1))
  const isNamed = program === 'wget' || words.some((word) => /^-[A-Za-z]*O/u.test(word))
  return { files: told.length > 0 ? told : isNamed ? names : [] }
}

/** Passes on what comes in, and writes it. */
const tee: Look = ({ stdin, program, words }) => ({
  output: { text: stdin?.text, sources: stdin?.text === undefined ? [program, ...(stdin?.sources ?? [])] : [] },
  files: stdin?.text === undefined ? words.filter((word) => !word.startsWith('-')) : [],
})

/** A pipe with a name: who writes into it is not known. */
const pipe: Look = ({ program, words }) => {
  const { rest } = splitOptions(words, ['-m', '--mode'])
  return { files: program === 'mknod' ? rest.slice(0, 1) : rest, output: NO_OUTPUT }
}

export const TEXT: Readonly<Record<string, Look>> = {
  echo,
  mkfifo: pipe,
  mknod: pipe,
  printf,
  cat,
  tee,
  curl: download,
  wget: download,
  aria2c: download,
  tac: filter((text) => text.split('\n').toReversed().join('\n')),
  rev: filter(reversed),
  base64: filter(base64),
  base32: filter(() => undefined),
  xxd: filter(hexadecimal),
  tr: translate,
}
