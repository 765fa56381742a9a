import { describe, expect, it } from 'vitest'
import { parseConfig } from './config.ts'

const MODEL = {
  context_window: 400_000,
  max_output: 128_000,
  price: { input: '1.25', output: 10, cache_read: '0.125', cache_write: '0' },
}
const UPSTREAM = {
  kind: 'openai',
  base_url: 'https://api.openai.com/v1/',
  key_file: '/etc/airlock/openai.key',
  models: { 'gpt-5': MODEL },
}
const CANARY = 'sk-canary-0123456789abcdef'

const parse = (...upstreams: readonly object[]) =>
  parseConfig({ llm: { upstream: Object.fromEntries(upstreams.map((one, at) => [`up-${at}`, one])) } }, {}).llm.upstream
const models = (changes: object) => ({ ...UPSTREAM, models: { 'gpt-5': { ...MODEL, ...changes } } })

describe('an upstream', () => {
  it('is read with prices in micro-dollars for a million tokens, and with defaults', () => {
    expect(parse({ ...UPSTREAM, aliases: { fast: 'gpt-5' } })).toEqual({
      'up-0': {
        kind: 'openai',
        base_url: { origin: 'https://api.openai.com', path: '/v1' },
        key_file: '/etc/airlock/openai.key',
        models: {
          'gpt-5': {
            context_window: 400_000,
            max_output: 128_000,
            price: { input: 1_250_000, output: 10_000_000, cacheRead: 125_000, cacheWrite: 0 },
          },
        },
        aliases: { fast: 'gpt-5' },
        connect_timeout_s: 10,
        first_byte_timeout_s: 600,
        read_timeout_s: 3600,
        max_concurrent: 64,
      },
    })
  })

  it('is absent by default', () => {
    expect(parseConfig({}, {}).llm).toEqual({ upstream: {} })
  })

  it('is not read from a variable', () => {
    expect(() => parseConfig({}, { AIRLOCK_LLM: '{}' })).toThrow('AIRLOCK_LLM is no setting.')
  })

  it.each([
    ['https://api.anthropic.com', 'https://api.anthropic.com', ''],
    ['http://127.0.0.1:4000', 'http://127.0.0.1:4000', ''],
    ['http://[::1]:4000/v1', 'http://[::1]:4000', '/v1'],
    ['http://10.1.2.3', 'http://10.1.2.3', ''],
    ['http://litellm:4000/base/', 'http://litellm:4000', '/base'],
  ])('may be at %s', (base_url, origin, path) => {
    expect(parse({ ...UPSTREAM, base_url })['up-0']?.base_url).toEqual({ origin, path })
  })

  it.each([
    'http://8.8.8.8/v1',
    'http://0x08080808/v1',
    'http://169.254.169.254',
    'http://100.64.0.1',
    'http://0.0.0.0',
    'http://[::ffff:10.0.0.1]',
    'http://[2001:db8::1]',
    `https://user:${CANARY}@api.openai.com`,
    `https://api.openai.com/?key=${CANARY}`,
    'https://api.openai.com/#x',
    'ftp://api.openai.com',
    'unix:/run/x.sock',
    'api.openai.com',
    '',
  ])('may not be at "%s", which is not repeated', (base_url) => {
    const text = thrownBy({ ...UPSTREAM, base_url })
    expect(text).toContain('llm.upstream.up-0.base_url: must')
    if (base_url !== '') expect(text).not.toContain(base_url)
  })

  it('of kind compatible can do without a key, and no other can', () => {
    const { key_file: _key, ...keyless } = UPSTREAM
    expect(parse({ ...keyless, kind: 'compatible' })['up-0']?.key_file).toBeUndefined()
    for (const kind of ['openai', 'anthropic', 'litellm'])
      expect(thrownBy({ ...keyless, kind })).toContain('llm.upstream.up-0.key_file: is missing')
  })

  it.each([
    ['key', { ...UPSTREAM, key: CANARY }],
    ['api_key', { ...UPSTREAM, api_key: CANARY }],
    ['auth-token', { ...UPSTREAM, 'auth-token': CANARY }],
    ['password', { ...UPSTREAM, password: CANARY }],
    ['models.gpt-5.key', models({ key: CANARY })],
  ])('is refused with a key in the file as %s, and the key is not repeated', (field, upstream) => {
    const text = thrownBy(upstream)
    expect(text).toContain(`llm.upstream.up-0.${field}: a key must not be in airlock.toml`)
    expect(text).toContain('chmod 600')
    expect(text).not.toContain(CANARY)
  })

  it('is refused with a key for the path of its file, and the key is not repeated', () => {
    const text = thrownBy({ ...UPSTREAM, key_file: CANARY })
    expect(text).toContain('llm.upstream.up-0.key_file: must be the absolute path of a file')
    expect(text).not.toContain(CANARY)
  })

  it.each([
    ['an unknown field', { ...UPSTREAM, modles: {} }, 'llm.upstream.up-0: Unrecognized key: "modles"'],
    ['an unknown field of a model', models({ windw: 1 }), 'llm.upstream.up-0.models.gpt-5: Unrecognized key: "windw"'],
    ['an unknown kind', { ...UPSTREAM, kind: 'openia' }, 'llm.upstream.up-0.kind'],
    ['no model', { ...UPSTREAM, models: {} }, 'llm.upstream.up-0.models: must list at least one model'],
    ['a name of ours', { ...UPSTREAM, models: { 'airlock/demo': MODEL } }, 'llm.upstream.up-0.models.airlock/demo'],
    ['a model that is no name', { ...UPSTREAM, models: { 'a b': MODEL } }, 'llm.upstream.up-0.models.a b'],
    ['more output than context', models({ max_output: 400_001 }), 'models.gpt-5.max_output: is above context_window'],
    ['an alias of nothing', { ...UPSTREAM, aliases: { a: 'b' } }, 'aliases.a: names a model that is not listed'],
    ['an alias that is a model', { ...UPSTREAM, aliases: { 'gpt-5': 'gpt-5' } }, 'gpt-5: is a model and an alias'],
    ['no context window', models({ context_window: undefined }), 'models.gpt-5.context_window'],
    ['half a timeout', { ...UPSTREAM, read_timeout_s: 0.5 }, 'read_timeout_s'],
    ['no calls at all', { ...UPSTREAM, max_concurrent: 0 }, 'max_concurrent'],
  ])('is refused with %s', (_what, upstream, named) => {
    expect(thrownBy(upstream)).toContain(named)
  })

  it('has models of its own', () => {
    expect(() => parse(UPSTREAM, UPSTREAM)).toThrow('llm.upstream.up-1.gpt-5: is served by up-0 too')
    const other = { ...UPSTREAM, models: { other: MODEL }, aliases: { 'gpt-5': 'other' } }
    expect(() => parse(UPSTREAM, other)).toThrow('llm.upstream.up-1.gpt-5: is served by up-0 too')
  })

  it('has a name of a closed alphabet', () => {
    for (const name of ['', 'Main', '../x', 'a_b', '-a', 'a-', 'x'.repeat(33)])
      expect(() => parseConfig({ llm: { upstream: { [name]: UPSTREAM } } }, {})).toThrow(`llm.upstream.${name}`)
  })
})

describe('a price', () => {
  const price = (given: unknown) => parse(models({ price: given }))['up-0']?.models['gpt-5']?.price
  const four = (input: unknown) => ({ input, output: 0, cache_read: 0, cache_write: 0 })

  it.each([
    ['0.1', 100_000],
    [0.1, 100_000],
    [3, 3_000_000],
    ['0.000001', 1],
    ['100000', 100_000_000_000],
  ])('of %j dollars is exact', (given, micro) => {
    expect(price(four(given))).toEqual({ input: micro, output: 0, cacheRead: 0, cacheWrite: 0 })
  })

  it('is free when it says so', () => {
    expect(price('free')).toEqual({ input: 0, output: 0, cacheRead: 0, cacheWrite: 0 })
  })

  it.each([
    ['absent', undefined],
    ['zero by number', 0],
    ['zero in all parts', four(0)],
    ['half', { input: 1, output: 1 }],
    ['negative', four(-1)],
    ['finer than a micro-dollar', four('0.0000001')],
    ['no number', four('1,25')],
    ['of an exponent', four(1e-7)],
    ['beyond what anything costs', four('100001')],
    ['more than four parts', { ...four(1), image: 1 }],
  ])('is refused when it is %s', (_what, given) => {
    expect(() => price(given)).toThrow('llm.upstream.up-0.models.gpt-5.price')
  })
})

function thrownBy(upstream: object): string {
  try {
    parse(upstream)
  } catch (error) {
    const { message, hint } = error as { message: string; hint: string }
    return `${message} ${hint}`
  }
  throw new TypeError('nothing was thrown')
}
