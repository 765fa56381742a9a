import { join } from 'node:path'
import type { Kernel, StepRequest } from '../session/driver.ts'

/**
 * Its driver is `bash.sh`. "Interactive" only means that an error of an expansion ends the step and not the shell: it has
 * no terminal, no job control, no history and no prompt.
 */
export const BASH: Kernel = {
  argv: ({ kernels }) => ['bash', '--noprofile', '--norc', '-i', join(kernels, 'bash.sh')],
  env: {},
  encodeStep,
  interrupt: { signal: true },
}

/** A length, so that bash need not read byte by byte, and so many characters for it to evaluate. */
function encodeStep({ nonce, stdin, stdout, stderr, code, env }: StepRequest): string {
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  // Where there is no command the status would be that of the last step.
  const isEmpty = code.split('\n').every((line) => /^\s*(?:#|$)/.test(line))
  const words = [nonce, stdin, stdout, stderr, isEmpty ? ':' : code, ...variables].map(quote)
  const line = `__airlock_begin ${words.join(' ')}`
  return `${line.length} ${line}`
}

/** ANSI-C quoting; nothing but printable ASCII is left, so that characters are bytes in every locale. */
function quote(text: string): string {
  const bytes = [...Buffer.from(text)].map((byte) => {
    const character = String.fromCodePoint(byte)
    return /[\w ./=:,@%+-]/.test(character) ? character : `\\${byte.toString(8).padStart(3, '0')}`
  })
  return `$'${bytes.join('')}'`
}
