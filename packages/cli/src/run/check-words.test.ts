import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { checkProgram, throwOnLine } from './check-words.ts'

it.each([
  ['nothere.py', 'For a program of the sandbox: airlock run -- nothere.py'],
  ['./tool', 'For a program of the sandbox: airlock run -- ./tool'],
  ['my notes.txt', "For a program of the sandbox: airlock run -- 'my notes.txt'"],
])('%s is looked for here, and missed', (word, hint) => {
  expect(() => checkProgram(word, {})).toThrow(
    expect.objectContaining({ message: `There is no file ${word} here.`, hint }),
  )
})

it.each(['ls', 'python3.11', 'mkfs.ext4', 'g++', '/usr/bin/ls', '/workspace/x.py'])(
  '%s may be a program of the sandbox',
  (word) => expect(() => checkProgram(word, {})).not.toThrow(),
)

it('what is copied in may have any name', () => {
  expect(() => checkProgram('bin/tool.py', { with: ['bin'] })).not.toThrow()
})

it('a file that is here and no program is copied in', () => {
  const home = mkdtempSync(join(tmpdir(), 'al-words-'))
  const path = join(home, 'data')
  writeFileSync(path, '')
  const word = join('..', '..', '..', '..', '..', '..', '..', '..', path)
  expect(() => checkProgram(word, {})).toThrow(
    expect.objectContaining({ hint: `To copy it in: airlock run --with ${word} -- PROGRAM` }),
  )
  rmSync(home, { recursive: true })
})

it.each([
  ['ls -la', "airlock exec --shell box 'ls -la'"],
  ['python3 x.py', "airlock exec --shell box 'python3 x.py'"],
  ['echo a && ls', "airlock exec --shell box 'echo a && ls'"],
  ['cd', "airlock exec --shell box 'cd …'"],
])('%j is for a shell', (word, instead) => {
  expect(() => throwOnLine(word, 'airlock exec --shell box')).toThrow(
    expect.objectContaining({ hint: `For a line of shell: ${instead}` }),
  )
})

it.each(['ls', 'my program.py', '/opt/my tool/run', './my tool'])('%j is no line', (word) => {
  expect(() => throwOnLine(word, 'airlock run --shell')).not.toThrow()
})
