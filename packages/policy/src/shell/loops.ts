import { literal } from './parse.ts'
import type { Command, Script } from './syntax.ts'

/** Its condition always holds: `while true`, `while :`, `until false`, `for ((;;))`. */
export function isEndless({ condition, isUntil, words }: Extract<Command, { kind: 'loop' }>): boolean {
  if (condition === undefined) return words.some((word) => /^[^;]*;\s*(?:1\s*)?;/u.test(literal(word)))
  const [pipeline] = condition
  const [command] = pipeline?.commands ?? []
  if (condition.length !== 1 || command === undefined) return false
  if (command.kind === 'test') return !isUntil && command.words.map(literal).join(' ') === '1'
  if (command.kind !== 'simple') return false
  const text = command.words.map(literal).join(' ')
  return (isUntil ? NEVER : ALWAYS).has(text)
}

const ALWAYS = new Set(['true', ':', '/bin/true', '[ 1 ]', '[ true ]', 'test 1', '[ 1 = 1 ]', '[ 1 -eq 1 ]'])
const NEVER = new Set(['false', '/bin/false', '[ ]', '[ 1 = 0 ]'])

/** Whether it waits for one of the programs, as far as they are written out. */
export function mentions(script: Script, programs: ReadonlySet<string>): boolean {
  return script.some(
    ({ commands, isBackground }) => !isBackground && commands.some((command) => isMentioned(command, programs)),
  )
}

function isMentioned(command: Command, programs: ReadonlySet<string>): boolean {
  if (command.kind === 'simple') return command.words.length > 0 && programs.has(literal(command.words[0] ?? []))
  if (command.kind === 'function') return isMentioned(command.body, programs)
  if (command.kind === 'test') return false
  if (command.kind === 'branches') return [command.choice, ...command.branches].some((part) => mentions(part, programs))
  return mentions(command.body, programs) || (command.kind === 'loop' && mentions(command.condition ?? [], programs))
}
