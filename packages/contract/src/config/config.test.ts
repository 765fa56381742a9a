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
    ['a port that is none', {}, { AIRLOCK_PORT: '70000' }, 'port'],
    ['a word where a number belongs', { capacity: 'many' }, {}, 'capacity'],
  ])('refuses %s and names it', (_what, file, env, named) => {
    expect(() => parseConfig(file, env)).toThrow(named)
  })

  it.each([
    ['a key of the file', { prot: 1 }, {}, 'prot is no setting.', 'Did you mean port?'],
    ['a variable', {}, { AIRLOCK_PRT: '1' }, 'AIRLOCK_PRT is no setting.', 'Did you mean AIRLOCK_PORT?'],
    [
      'something else',
      {},
      { AIRLOCK_COLOUR: '1' },
      'AIRLOCK_COLOUR is no setting.',
      'All of them: docs/configuration.md',
    ],
  ])('refuses %s that is no setting, and says what was meant', (_what, file, env, message, hint) => {
    expect(() => parseConfig(file, env)).toThrow(expect.objectContaining({ message, hint }))
  })

  it('leaves the variables of clients alone', () => {
    expect(parseConfig({}, { AIRLOCK_URL: 'http://x', AIRLOCK_API_KEY: 'k' }).port).toBe(7070)
  })
})
