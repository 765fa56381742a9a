import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { parseKey } from './key.ts'
import { WatchedFile } from '../watched-file.ts'

const KEY = 'sk-canary-0123456789abcdef'

let dir: string
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'al-key-'))
})
afterEach(() => rmSync(dir, { recursive: true }))

it.each([KEY, `${KEY}\n`, `${KEY}\r\n`])('a key is one line: %j', (text) => {
  expect(parseKey(Buffer.from(text)).reveal()).toBe(KEY)
})

it.each(['', '\n', 'short', `${KEY}\n${KEY}`, `${KEY}\n\n`, ` ${KEY}`, `${KEY}ä`, `a\tb${KEY}`, 'x'.repeat(2049)])(
  'a file is refused without its text when it holds %j',
  (text) => {
    const thrown = caught(() => parseKey(Buffer.from(text)))
    expect(thrown).toMatchObject({ code: 'key_unavailable' })
    expect(inspect(thrown)).not.toContain(KEY)
  },
)

it('a key shows itself to no printer', () => {
  const key = parseKey(Buffer.from(KEY))
  const printed = [inspect(key, { showHidden: true, depth: 9 }), JSON.stringify({ key })]
  expect(printed.join('\n')).not.toMatch(/canary|c2stY2/)
})

it('a file is read again when it was written or replaced, and is nothing when it is gone', () => {
  const path = join(dir, 'key')
  const file = new WatchedFile(path, String)
  expect(file.get()).toBeUndefined()
  writeFileSync(path, 'one')
  expect(file.get()).toBe('one')
  writeFileSync(path, 'other')
  expect(file.get()).toBe('other')
  writeFileSync(`${path}.new`, 'third')
  renameSync(`${path}.new`, path)
  expect(file.get()).toBe('third')
  rmSync(path)
  expect(file.get()).toBeUndefined()
})

function caught(work: () => unknown): unknown {
  try {
    work()
  } catch (error) {
    return error
  }
  throw new TypeError('nothing was thrown')
}
