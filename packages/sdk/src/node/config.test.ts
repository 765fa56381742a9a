import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { resolveConfig } from './config.ts'

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'airlock-sdk-'))
  vi.stubEnv('AIRLOCK_HOME', home)
  vi.stubEnv('AIRLOCK_URL', undefined)
  vi.stubEnv('AIRLOCK_API_KEY', undefined)
})
afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(home, { recursive: true })
})

describe('resolveConfig', () => {
  it('finds the server on this machine and its key by role', () => {
    writeFileSync(join(home, 'developer.key'), 'al_dev\n')
    writeFileSync(join(home, 'admin.key'), 'al_admin\n')
    const found = (role: string, apiKey: string) => ({
      url: 'http://127.0.0.1:7070/',
      apiKey,
      noKey: '',
      keyFrom: `The key in ${home}/${role}.key`,
    })
    expect(resolveConfig()).toEqual(found('developer', 'al_dev'))
    expect(resolveConfig({ role: 'admin' })).toEqual(found('admin', 'al_admin'))
  })

  it('prefers what is given over the environment, and the environment over files', () => {
    writeFileSync(join(home, 'developer.key'), 'al_file')
    vi.stubEnv('AIRLOCK_URL', 'https://airlock.example')
    vi.stubEnv('AIRLOCK_API_KEY', 'al_env')
    expect(resolveConfig()).toEqual({
      url: 'https://airlock.example/',
      apiKey: 'al_env',
      noKey: '',
      keyFrom: 'AIRLOCK_API_KEY',
    })
    expect(resolveConfig({ url: 'http://localhost:1', apiKey: 'al_given' })).toEqual({
      url: 'http://localhost:1/',
      apiKey: 'al_given',
      noKey: '',
      keyFrom: 'The given apiKey',
    })
  })

  it('never offers the key of this machine to another one', () => {
    writeFileSync(join(home, 'developer.key'), 'al_file')
    expect(resolveConfig({ url: 'https://airlock.example' }).apiKey).toBeUndefined()
  })

  it('refuses what is not an address', () => {
    for (const url of ['nonsense', 'file:///etc/passwd', 'http://user:password@localhost'])
      expect(() => resolveConfig({ url })).toThrowError(/not an http or https URL/)
  })
})
