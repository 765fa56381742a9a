import { execFileSync } from 'node:child_process'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { requires } from '../../../../test/support/requires.ts'
import { readScript } from './read.ts'

/** Words that bash expands without looking at the machine, and without variables that nobody has set. */
const PIECES = [
  'a',
  'b',
  '-r',
  '/x',
  '=',
  ':',
  '%',
  ',',
  '.',
  "'a b'",
  '"c d"',
  '""',
  "''",
  String.raw`\ `,
  String.raw`\$`,
  String.raw`"\$x\"y"`,
  String.raw`$'\x61\t'`,
  String.raw`$'\'q\''`,
  String.raw`$'\101\n'`,
  '"$V"',
  '${V}',
  '"${V}"',
  '"$W"',
  '${V:-d}',
  '${N:-d e}',
  '"${N:-d e}"',
  '${V:+s}',
  '${N:+s}',
  '${#V}',
  '${V:1}',
  '${V:1:2}',
  '${V: -2}',
  '${V#h}',
  '${V%o}',
  '${V##*l}',
  '${V%%l*}',
  '${V/l/L}',
  '${V//l/L}',
  '${V^^}',
  '${V,}',
  '"${A[@]}"',
  '${A[0]}',
  '"${A[1]}"',
  '{p,q}',
  '{1..3}',
  '{c..a}',
  'x{1,}y',
  '{a,{b,c}}',
  '{a}',
  '{}',
  '"~"',
  '$(echo o p)',
  '"$(echo o  p)"',
  '`echo t`',
  String.raw`$(printf '%s-' u v)`,
  '$(printf "%b" "w\\tz")',
]
const SETUP = `HOME=/home/user; cd /; V=hello; W='k  l'; A=(i 'j k'); unset N`

const word = fc.array(fc.constantFrom(...PIECES), { minLength: 1, maxLength: 4 }).map((pieces) => pieces.join(''))
const words = fc.array(word, { maxLength: 4 })

describe('what the reader makes of words', requires('bash'), () => {
  it('is what bash makes of them', () => {
    const lines = fc.sample(words, 400).map((line) => line.join(' '))
    const script = lines.map((line) => String.raw`printf '%s\0' args ${line}; printf '\1'`).join('\n')
    const output = execFileSync('bash', ['-f', '-s'], { input: `${SETUP}\n${script}`, encoding: 'utf8' })
    const ofBash = output.split('\u0001').slice(0, -1)
    expect(ofBash).toHaveLength(lines.length)
    for (const [at, line] of lines.entries()) {
      const { invocations } = readScript(`${SETUP}\nargs ${line}`, { env: [], cwd: '/' })
      const read = invocations.findLast(({ program }) => program === 'args')
      expect({ line, words: ['args', ...(read?.words ?? [])] }).toEqual({
        line,
        words: ofBash[at]?.split('\0').slice(0, -1),
      })
    }
  })
})
