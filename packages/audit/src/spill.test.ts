import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLog } from '@airlock/std'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Spill, type SpilledNote } from './spill.ts'

const log = createLog({ process: 'test', level: 'silent', write: () => {} })
let dir: string

beforeEach(() => (dir = mkdtempSync(join(tmpdir(), 'airlock-spill-'))))
afterEach(() => rmSync(dir, { recursive: true }))

describe('a spill', () => {
  it('gives the next life what is not done, oldest first, the last word on each', () => {
    const notes = live(3)
    const spill = new Spill(dir, log)
    for (const one of notes.values()) spill.add(one)
    spill.add({ ...note(2), at: 20 })
    notes.delete('rec_1')
    spill.remove('rec_1', notes)
    spill.close()
    expect(new Spill(dir, log).found).toEqual([{ ...parsed(2), at: 20 }, parsed(3)])
  })

  it('has nothing for the next life when everything is done, and is cut when it has grown', () => {
    const spill = new Spill(dir, log)
    spill.add(note(1))
    spill.remove('rec_1', new Map())
    // Not even closed: whoever is killed here has said that it is done.
    expect(new Spill(dir, log).found).toEqual([])
    spill.add({ ...note(2), record: { ...note(2).record, payload: { text: 'x'.repeat(64 * 1024) } } })
    spill.remove('rec_2', new Map())
    expect(readFileSync(join(dir, 'notes.ndjson'), 'utf8')).toBe('')
  })

  it('is rewritten with what is left when it has grown large', () => {
    const spill = new Spill(dir, log)
    const big = { ...note(1), record: { ...note(1).record, payload: { text: 'x'.repeat(1024 * 1024) } } }
    for (let n = 0; n < 33; n++) spill.add(big)
    spill.remove('rec_1', new Map([['rec_2', note(2)]]))
    spill.add(note(3))
    spill.close()
    expect(new Spill(dir, log).found).toEqual([parsed(2), parsed(3)])
  })

  it('does without a directory', () => {
    const spill = new Spill(join(dir, 'missing'), log)
    spill.add(note(1))
    spill.remove('rec_1', new Map())
    spill.close()
    expect(existsSync(join(dir, 'missing'))).toBe(false)
  })

  it('follows no link', () => {
    writeFileSync(join(dir, 'victim'), 'precious')
    symlinkSync(join(dir, 'victim'), join(dir, 'notes.ndjson'))
    const spill = new Spill(dir, log)
    spill.add(note(1))
    spill.remove('rec_1', new Map())
    expect([readFileSync(join(dir, 'victim'), 'utf8'), spill.found]).toEqual(['precious', []])
  })
})

function note(n: number): SpilledNote {
  const record = { tenant: 'default', actor: 'system', point: 'sandbox.terminate', status: 'done' } as const
  return { rid: `rec_${n}`, at: n, record }
}

function parsed(n: number): SpilledNote {
  return { ...note(n), record: { ...note(n).record, agent: null, sandbox: null, payload: {} } }
}

function live(count: number): Map<string, SpilledNote> {
  return new Map(Array.from({ length: count }, (_, n) => [`rec_${n + 1}`, note(n + 1)]))
}
