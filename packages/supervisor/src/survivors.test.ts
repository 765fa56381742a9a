import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { endSurvivors, ProcessList } from './survivors.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'al-survivors-'))
})
afterEach(() => rmSync(directory, { recursive: true }))
const list = () => `${directory}/processes.json`

it('kills a process of the supervisor before that does not leave by itself', async () => {
  const stubborn = spawn('sleep', ['60'])
  const exited = once(stubborn, 'exit')
  new ProcessList(list()).set('recorder', stubborn.pid)
  await endSurvivors(list())
  expect(await exited).toEqual([null, 'SIGKILL'])
})

it('spares a process that got the pid of one of ours', async () => {
  const innocent = spawn('sleep', ['60'])
  const exited = once(innocent, 'exit')
  writeFileSync(
    list(),
    JSON.stringify([
      { pid: innocent.pid, startTicks: '1' },
      { pid: 1, startTicks: '1' },
    ]),
  )
  await endSurvivors(list())
  expect(innocent.exitCode ?? innocent.signalCode).toBe(null)
  innocent.kill('SIGTERM')
  expect(await exited).toEqual([null, 'SIGTERM'])
})

it('forgets who has ended, and takes no list or a torn one for an empty one', async () => {
  const processes = new ProcessList(list())
  processes.set('recorder', process.pid)
  processes.set('recorder', undefined)
  expect(readFileSync(list(), 'utf8')).toBe('[]')
  writeFileSync(list(), '[{"pid":')
  await endSurvivors(list())
  await endSurvivors(`${directory}/missing.json`)
})
