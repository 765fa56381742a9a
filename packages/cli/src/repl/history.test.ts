import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { History } from './history.ts'

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'airlock-history-'))
})
afterEach(() => rmSync(home, { recursive: true }))

describe('History', () => {
  it('keeps lines for the next time, newest first, each runtime its own', () => {
    const directory = join(home, 'state')
    const history = new History('python', directory)
    for (const line of ['one', '  ', '    two']) history.add(line)
    expect(new History('python', directory).load()).toEqual(['    two', 'one'])
    expect(new History('node', directory).load()).toEqual([])
    expect(statSync(directory).mode & 0o777).toBe(0o700)
    expect(statSync(join(directory, 'history-python')).mode & 0o777).toBe(0o600)
  })

  it('shortens itself when it has grown', () => {
    const file = join(home, 'history-bash')
    writeFileSync(file, Array.from({ length: 2500 }, (_, i) => `line ${i}\n`).join(''))
    const loaded = new History('bash', home).load()
    expect([loaded.length, loaded[0], loaded.at(-1)]).toEqual([1000, 'line 2499', 'line 1500'])
    expect(readFileSync(file, 'utf8').split('\n')).toHaveLength(1001)
  })

  it('is silent where it cannot be kept', () => {
    const file = join(home, 'file')
    writeFileSync(file, '')
    const history = new History('bash', join(file, 'below'))
    history.add('line')
    expect(history.load()).toEqual([])
  })
})
