import { appendFileSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLog, newId } from '@airlock/std'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { type CommandMeta, Spool } from './spool.ts'

const log = createLog({ process: 'test', level: 'silent', write: () => {} })

let directory: string
beforeEach(() => (directory = mkdtempSync(join(tmpdir(), 'al-spool-'))))
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const running = (): CommandMeta => ({
  channel: 1,
  timeoutMs: 1000,
  maxOutputBytes: 1000,
  stdin: 'none',
  complete: false,
  session: newId('ses'),
  command: {
    id: newId('stp'),
    state: 'running',
    exitCode: null,
    signal: null,
    timedOut: false,
    truncated: false,
    outputBytes: 0,
    startedAt: 1,
    endedAt: null,
  },
})
const load = async () => (await new Spool(directory, log).load()).map(({ meta }) => meta)

it('finds a step as it was saved last', async () => {
  const spool = new Spool(directory, log)
  const meta = running()
  const ended: CommandMeta = { ...meta, complete: true, command: { ...meta.command, state: 'exited', endedAt: 2 } }
  await spool.save(meta)
  await spool.save(ended)
  expect(await load()).toEqual([ended])
})

it('finds a step as it was before a save that was cut off', async () => {
  const meta = running()
  await new Spool(directory, log).save(meta)
  appendFileSync(join(directory, `${meta.command.id}.json`), JSON.stringify({ ...meta, complete: true }).slice(0, 40))
  expect(await load()).toEqual([meta])
})

it('leaves nothing of what was removed, and removes what is not there', async () => {
  const spool = new Spool(directory, log)
  const meta = running()
  await spool.save(meta)
  await spool.remove(meta.command.id)
  await spool.remove(meta.command.id)
  expect(readdirSync(directory)).toEqual([])
})
