import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { AirlockError } from '@airlock/contract'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { takeInstanceLock } from './lock.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'al-lock-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

it('refuses a state directory that is in use, and takes it once it is released', () => {
  const first = takeInstanceLock(directory)
  expect(() => takeInstanceLock(directory)).toThrow(
    new AirlockError('already_running', `Another Airlock uses ${directory}.`),
  )
  first.release()
  takeInstanceLock(directory).release()
  expect(statSync(`${directory}/airlock.lock`).mode & 0o777).toBe(0o600)
})

it.each([
  ['garbage', 'garbage'],
  ['NULs', '\0'.repeat(8192)],
  ['a database that was cut off', 'SQLite format 3\0\x10'],
])('takes a lock file of %s, which holds nothing, and still excludes a second one', (_name, text) => {
  writeFileSync(join(directory, 'airlock.lock'), text)
  const first = takeInstanceLock(directory)
  expect(() => takeInstanceLock(directory)).toThrow('Another Airlock')
  first.release()
})

it('does not call it another Airlock when the file cannot be locked', () => {
  mkdirSync(join(directory, 'airlock.lock'))
  expect(() => takeInstanceLock(directory)).toThrow(
    new AirlockError('state_damaged', `${directory}/airlock.lock is damaged: unable to open database file.`),
  )
})

it('is free again when its holder is killed', async () => {
  const lock = fileURLToPath(new URL('lock.ts', import.meta.url))
  // What nobody refers to is collected, and a database that is collected is closed.
  const program = `import { takeInstanceLock } from '${lock}'
    const lock = takeInstanceLock('${directory}'); console.log('held'); setInterval(() => lock, 1000)`
  const holder = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(holder.stdout, 'data')
  expect(() => takeInstanceLock(directory)).toThrow('Another Airlock')
  // Damage does not take the lock from its holder.
  writeFileSync(join(directory, 'airlock.lock'), 'garbage')
  expect(() => takeInstanceLock(directory)).toThrow('Another Airlock')
  holder.kill('SIGKILL')
  await once(holder, 'exit')
  takeInstanceLock(directory).release()
})
