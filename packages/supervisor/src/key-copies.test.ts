import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseConfig } from '@airlock/contract'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { requires } from '../../../test/support/requires.ts'
import { KEYS_UID } from './directories.ts'
import { KeyCopies } from './key-copies.ts'
import { serve } from './serve.ts'

const KEY = 'sk-canary-0123456789abcdef'

let dir: string
let file: string
let copy: string
let warned: string[]
let copies: KeyCopies

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'al-copies-'))
  chmodSync(dir, 0o711)
  file = join(dir, 'operators.key')
  copy = join(dir, 'run/keys/main.key')
  mkdirSync(join(dir, 'run/keys'), { recursive: true })
  writeFileSync(file, KEY, { mode: 0o600 })
  warned = []
  copies = new KeyCopies(
    { config: parseConfig(settings(), {}), runtimeDir: join(dir, 'run') },
    (text) => void warned.push(text),
  )
})
afterEach(() => {
  copies.stop()
  rmSync(dir, { recursive: true })
})

function settings() {
  const model = { context_window: 1, max_output: 1, price: 'free' }
  const upstream = { base_url: 'http://127.0.0.1:1', models: { a: model } }
  return {
    llm: {
      upstream: {
        main: { ...upstream, kind: 'openai', key_file: file },
        local: { ...upstream, kind: 'compatible', models: { b: model } },
      },
    },
  }
}

const stateOf = (path: string) => {
  const { uid, gid, mode } = statSync(path)
  return { uid, gid, mode: (mode & 0o777).toString(8) }
}

describe('the copy of a key', requires('root'), () => {
  it('is for the process of the keys alone, and goes when the server stops', () => {
    copies.start()
    expect(stateOf(copy)).toEqual({ uid: KEYS_UID, gid: KEYS_UID, mode: '400' })
    expect(readFileSync(copy, 'utf8')).toBe(KEY)
    expect(readdirSync(join(dir, 'run/keys'))).toEqual(['main.key'])
    copies.stop()
    expect(readdirSync(join(dir, 'run/keys'))).toEqual([])
  })

  it('takes the place of what an earlier server left', () => {
    writeFileSync(copy, 'old')
    writeFileSync(`${copy}.new`, 'old')
    writeFileSync(join(dir, 'run/keys/gone.key'), 'old')
    copies.start()
    expect(readdirSync(join(dir, 'run/keys'))).toEqual(['main.key'])
    expect(readFileSync(copy, 'utf8')).toBe(KEY)
  })

  it('follows a file that is written again, replaced, or the end of a link that is turned', () => {
    const second = join(dir, 'second.key')
    writeFileSync(second, 'by a link', { mode: 0o600 })
    copies.start()
    writeFileSync(file, 'written again')
    copies.look()
    expect(readFileSync(copy, 'utf8')).toBe('written again')
    writeFileSync(`${file}.new`, 'replaced', { mode: 0o600 })
    renameSync(`${file}.new`, file)
    copies.look()
    expect(readFileSync(copy, 'utf8')).toBe('replaced')
    rmSync(file)
    symlinkSync(second, file)
    copies.look()
    expect(readFileSync(copy, 'utf8')).toBe('by a link')
    expect(stateOf(copy)).toEqual({ uid: KEYS_UID, gid: KEYS_UID, mode: '400' })
    expect(warned).toEqual([])
  })

  it('stays as it is, and that is told once, when the file becomes one that cannot be used', () => {
    copies.start()
    writeFileSync(file, 'for everybody')
    chmodSync(file, 0o644)
    copies.look()
    copies.look()
    expect(readFileSync(copy, 'utf8')).toBe(KEY)
    expect(warned).toEqual([
      `upstream main keeps its earlier key: llm.upstream.main.key_file: ${file} is open to other users. Run "chmod 600 ${file}".`,
    ])
    chmodSync(file, 0o600)
    copies.look()
    expect(readFileSync(copy, 'utf8')).toBe('for everybody')
  })

  it('goes with the file, and comes back with it', () => {
    copies.start()
    rmSync(file)
    copies.look()
    expect(existsSync(copy)).toBe(false)
    expect(warned).toEqual([`upstream main has no key any more: ${file} is gone`])
    writeFileSync(file, 'back', { mode: 0o600 })
    copies.look()
    expect(readFileSync(copy, 'utf8')).toBe('back')
  })
})

describe('a server does not start', requires('root'), () => {
  it.each<[string, () => void, string]>([
    ['that everybody may read', () => chmodSync(file, 0o644), 'is open to other users. Run "chmod 600'],
    ['that a group may read', () => chmodSync(file, 0o640), 'is open to other users. Run "chmod 600'],
    ['of another user', () => chownSync(file, 1000, 1000), 'belongs to uid 1000. Run "chown root'],
    ['that is not there', () => rmSync(file), 'cannot be opened (ENOENT). Write the key there'],
    ['that is empty', () => writeFileSync(file, ''), 'does not hold one key. Write the key to it on one line.'],
    ['that is a directory', () => (rmSync(file), mkdirSync(file, { mode: 0o700 })), 'is not a file'],
  ])('with a key file %s', async (_what, spoil, sentence) => {
    spoil()
    writeFileSync(
      join(dir, 'airlock.toml'),
      `[llm.upstream.main]\nkind = "openai"\nbase_url = "https://api.openai.com/v1"\nkey_file = "${file}"\n[llm.upstream.main.models.a]\ncontext_window = 1\nmax_output = 1\nprice = "free"\n`,
    )
    const printed: string[] = []
    const print = (line: string) => void printed.push(line)
    const io = {
      env: { AIRLOCK_HOME: dir },
      cwd: '/',
      platform: 'linux',
      uid: 0,
      isTerminal: false,
      out: print,
      err: print,
    }
    expect(await serve([], io)).toBe(1)
    expect(printed).toEqual([expect.stringContaining(`llm.upstream.main.key_file: ${file} ${sentence}`)])
    expect(printed.join('')).not.toContain(KEY)
    expect(readdirSync(join(dir, 'run/keys'))).toEqual([])
  })

  it('with one of two keys, and leaves no copy of the other', () => {
    const { llm } = settings()
    const other = { ...llm.upstream.main, key_file: join(dir, 'missing'), models: { c: llm.upstream.main.models.a } }
    const both = parseConfig({ llm: { upstream: { ...llm.upstream, other } } }, {})
    expect(() => new KeyCopies({ config: both, runtimeDir: join(dir, 'run') }, () => {}).start()).toThrow(
      'other.key_file',
    )
    expect(readdirSync(join(dir, 'run/keys'))).toEqual([])
  })
})
