import { describe, expect, it } from 'vitest'
import { parseConfig } from './config.ts'

describe('configuration', () => {
  it('has defaults that listen on loopback only', () => {
    const { host, port, trusted_proxy } = parseConfig({}, {})
    expect({ host, port, trusted_proxy }).toEqual({ host: '127.0.0.1', port: 7070, trusted_proxy: false })
  })

  it('lets the environment win over the file', () => {
    expect(parseConfig({ port: 1 }, { AIRLOCK_PORT: '2', HOME: '/x' }).port).toBe(2)
  })

  it.each([
    ['an unknown key in the file', { prot: 1 }, {}, 'prot'],
    ['an unknown variable', {}, { AIRLOCK_PROT: '1' }, 'prot'],
    ['a port that is none', {}, { AIRLOCK_PORT: '70000' }, 'port'],
    ['a word where a number belongs', { capacity: 'many' }, {}, 'capacity'],
  ])('refuses %s and names it', (_what, file, env, named) => {
    expect(() => parseConfig(file, env)).toThrow(named)
  })

  it('leaves the variables of clients alone', () => {
    expect(parseConfig({}, { AIRLOCK_URL: 'http://x', AIRLOCK_API_KEY: 'k' }).port).toBe(7070)
  })
})
