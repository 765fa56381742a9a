import { appendFileSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { STREAM } from '@airlock/contract/guest'
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
const ended = (meta: CommandMeta): CommandMeta => ({
  ...meta,
  complete: true,
  command: { ...meta.command, state: 'exited', endedAt: 2 },
})
const said = (text: string) => [{ stream: STREAM.stdout, bytes: Buffer.from(text) }]
const load = async () => (await new Spool(directory, log).load()).map(({ meta }) => meta)

async function read(spool: Spool, id: string): Promise<string> {
  const reader = spool.reader(id)
  const entries = await Array.fromAsync(reader.entries(reader.size()))
  reader.close()
  return Buffer.concat(entries.map(({ bytes }) => bytes)).toString()
}

it('finds a step as it was saved last', async () => {
  const spool = new Spool(directory, log)
  const meta = running()
  spool.save(meta)
  spool.save(ended(meta))
  expect(await load()).toEqual([ended(meta)])
})

it('finds a step as it was before a save that was cut off', async () => {
  const meta = running()
  new Spool(directory, log).save(meta)
  appendFileSync(join(directory, 'journal.ndjson'), JSON.stringify({ meta: ended(meta) }).slice(0, 40))
  expect(await load()).toEqual([meta])
  const again = new Spool(directory, log)
  await again.load()
  again.save(ended(meta))
  expect(await load()).toEqual([ended(meta)])
})

it('does not find what was removed, and removes what is not there', async () => {
  const spool = new Spool(directory, log)
  const [gone, stays] = [running(), running()]
  spool.save(gone)
  await spool.append(gone.command.id, said('x'))
  spool.remove(gone.command.id)
  spool.remove(gone.command.id)
  spool.save(stays)
  expect(await load()).toEqual([stays])
  expect(readdirSync(directory)).toEqual(['journal.ndjson'])
})

it('keeps what is held with the end and without a file, and not before', async () => {
  const spool = new Spool(directory, log)
  const [open, over] = [running(), running()]
  for (const meta of [open, over]) {
    spool.save(meta)
    expect(spool.hold(meta.command.id, said('hello'))).toBe(10)
    expect(await read(spool, meta.command.id)).toBe('hello')
  }
  spool.save(ended(over))
  expect(readdirSync(directory)).toEqual(['journal.ndjson'])
  const next = new Spool(directory, log)
  expect(await next.load()).toEqual([
    { meta: open, outputBytes: 0, fileBytes: 0 },
    { meta: ended(over), outputBytes: 5, fileBytes: 10 },
  ])
  expect(await read(next, over.command.id)).toBe('hello')
})

it('has what was held before what is appended, also for whoever was reading', async () => {
  const spool = new Spool(directory, log)
  const meta = running()
  const { id } = meta.command
  spool.save(meta)
  spool.hold(id, said('one '))
  const reader = spool.reader(id)
  const first = await Array.fromAsync(reader.entries(reader.size()))
  await spool.append(id, said('two'))
  const second = await Array.fromAsync(reader.entries(reader.size()))
  reader.close()
  expect([first, second].map((entries) => entries.map(({ bytes }) => bytes.toString()))).toEqual([['one '], ['two']])
  spool.save(ended(meta))
  const next = new Spool(directory, log)
  expect(await next.load()).toEqual([{ meta: ended(meta), outputBytes: 7, fileBytes: 17 }])
  expect(await read(next, id)).toBe('one two')
})

it('stays short however many come and go, and loses none that stay', async () => {
  const spool = new Spool(directory, log)
  const stays = running()
  spool.save(stays)
  spool.hold(stays.command.id, said('kept'))
  spool.save(ended(stays))
  for (let n = 0; n < 10_000; n++) {
    const meta = running()
    spool.save(meta)
    spool.save(ended(meta))
    spool.remove(meta.command.id)
  }
  expect(statSync(join(directory, 'journal.ndjson')).size).toBeLessThan(2 * 1024 * 1024)
  const last = running()
  spool.save(last)
  const next = new Spool(directory, log)
  expect((await next.load()).map(({ meta }) => meta)).toEqual([ended(stays), last])
  expect(await read(next, stays.command.id)).toBe('kept')
})
