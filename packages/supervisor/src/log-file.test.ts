import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { LogFile } from './log-file.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'al-log-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

it('appends, and keeps one older file when it is full', () => {
  const path = `${directory}/airlock.log`
  new LogFile(path, 20).write('before')
  const log = new LogFile(path, 20)
  for (const line of ['one', 'two', 'three three', 'four four four']) log.write(line)
  log.close()
  expect(readdirSync(directory).toSorted()).toEqual(['airlock.log', 'airlock.log.1'])
  expect(readFileSync(path, 'utf8')).toBe('four four four\n')
  expect(readFileSync(`${path}.1`, 'utf8')).toBe('three three\n')
})
