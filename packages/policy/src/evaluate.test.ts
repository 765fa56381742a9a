import {
  isGoverned,
  point,
  policyDocument,
  type Operation,
  type PolicyDocumentInput,
  type Question,
} from '@airlock/contract'
import { describe, expect, it } from 'vitest'
import { BUILTIN, BUILTIN_VERSION } from './builtin/document.ts'
import { compilePolicy } from './compile.ts'
import { evaluate } from './evaluate.ts'

const builtin = compilePolicy(BUILTIN, { version: BUILTIN_VERSION })
const house = (input: Omit<PolicyDocumentInput, 'name' | 'rules'> & { rules?: PolicyDocumentInput['rules'] }) =>
  compilePolicy(policyDocument.parse({ name: 'house', rules: [], ...input }), { version: 2 })
const shell = (line: string): Operation => ({
  kind: 'command',
  argv: ['/bin/sh', '-c', line],
  cwd: '/workspace',
  env: [],
  timeoutMs: 1000,
})
const question = (operation: Operation, more: Partial<Question> = {}): Question => ({
  point: 'command.run',
  tenant: 'default',
  actor: 'key:a',
  role: 'developer',
  agent: 'default',
  sandbox: null,
  operation,
  ...more,
})
const sandbox: Extract<Operation, { kind: 'sandbox' }> = {
  kind: 'sandbox',
  template: 'base',
  tier: 'standard',
  limits: {
    cpus: 8,
    memoryBytes: 1024 ** 3,
    pids: 64,
    diskBytes: 1024 ** 3,
    inodes: 65_536,
    openFiles: 4096,
    cpuSeconds: null,
  },
  labels: { team: 'red' },
  lifetimeMs: 60_000,
  mounts: [],
}
const ALLOW = { default: 'allow' } as const
const DENY = { default: 'deny' } as const

describe('what no rule speaks of', () => {
  it('is as the default says, with low risk', () => {
    for (const effect of ['allow', 'ask', 'deny'] as const)
      expect(evaluate([], question(shell('ls')), { default: effect })).toEqual({
        effect,
        risk: 'low',
        rules: [],
        conditions: {},
        policyVersion: '',
      })
  })

  it('is as the strictest of the documents says', () => {
    const asks = house({ default: 'ask' })
    expect(evaluate([builtin, asks], question(shell('ls')), ALLOW)).toMatchObject({
      effect: 'ask',
      policyVersion: 'builtin@3,house@2',
    })
    expect(evaluate([asks], question(shell('ls')), DENY).effect).toBe('deny')
  })

  it('is every single program of a command line', () => {
    const allows = house({
      rules: [{ id: 'npm', kind: 'command', effect: 'allow', risk: 'low', reason: 'x', match: { programs: ['npm'] } }],
    })
    const effectOf = (line: string) => evaluate([allows], question(shell(line)), DENY).effect
    expect(effectOf('npm test')).toBe('allow')
    expect(effectOf('timeout 5 npm test && npm run build')).toBe('allow')
    expect(effectOf('set -e; cd app && npm test')).toBe('allow')
    expect(effectOf('npm test; curl x')).toBe('deny')
    expect(effectOf('npm test; : > x')).toBe('deny')
    expect(effectOf('npm "$(curl x)"')).toBe('deny')
    expect(effectOf('curl x')).toBe('deny')
    expect(effectOf('')).toBe('deny')
  })

  it('is not settled by what only marks a risk', () => {
    expect(evaluate([builtin], question(shell('pip install x')), DENY)).toMatchObject({
      effect: 'deny',
      risk: 'medium',
    })
    expect(evaluate([builtin], question(shell('pip install x')), ALLOW)).toMatchObject({
      effect: 'allow',
      risk: 'medium',
      rules: [{ policy: 'builtin', rule: 'package-installation' }],
    })
  })

  it('is settled by a rule about the operation as a whole', () => {
    const allows = house({
      rules: [
        { id: 'any', kind: 'operation', effect: 'allow', risk: 'low', reason: 'x', match: { points: ['command.*'] } },
      ],
    })
    expect(evaluate([allows], question(shell('ls')), DENY).effect).toBe('allow')
    expect(evaluate([allows, builtin], question(shell('rm -rf /')), DENY).effect).toBe('deny')
  })
})

describe('a connection to a host', () => {
  const asked = (host: string, more: object = {}) => question({ kind: 'network', host, port: 443, ...more })
  const effectOf = (of: Question, ...rules: readonly object[]) => {
    const shared = { effect: 'allow', risk: 'low', reason: 'x', kind: 'network' } as const
    const document = { name: 'house', rules: rules.map((rule, at) => ({ id: `r${at}`, ...shared, ...rule })) }
    return evaluate([builtin, house(document as PolicyDocumentInput)], of, ALLOW).effect
  }

  it('is denied where no rule names the host, whatever the default says', () => {
    expect(effectOf(asked('example.com'))).toBe('deny')
    expect(effectOf(asked('example.com'), { kind: 'operation', match: { points: ['*'] } })).toBe('deny')
    expect(effectOf(asked('example.com'), { match: { ports: [443] } })).toBe('deny')
    expect(effectOf(asked('example.com'), { match: { hosts: ['example.com'] }, note: true })).toBe('deny')
  })

  it.each([
    ['example.com', ['example.com'], 'allow'],
    ['example.com', ['EXAMPLE.com'], 'allow'],
    ['a.example.com', ['*.example.com'], 'allow'],
    ['example.com', ['*.example.com'], 'deny'],
    ['evilexample.com', ['*.example.com'], 'deny'],
    ['example.com.evil.example', ['example.com'], 'deny'],
    ['10.0.0.1', ['*'], 'deny'],
    ['10.0.0.1', ['10.0.0.*'], 'deny'],
    ['10.0.0.1', ['!example.com'], 'deny'],
    ['10.0.0.1', ['10.0.0.1'], 'allow'],
    ['fd00::1', ['*'], 'deny'],
    ['fd00::1', ['fd00::1'], 'allow'],
    ['a1.example1', ['*'], 'allow'],
  ] as const)('to %s under a rule for %j: %s', (host, hosts, effect) => {
    expect(effectOf(asked(host), { match: { hosts } })).toBe(effect)
  })

  it('is denied by a rule that denies everything, an address too', () => {
    const both = [{ match: { hosts: ['10.0.0.1', 'example.com'] } }, { effect: 'deny', match: { hosts: ['*'] } }]
    expect([effectOf(asked('10.0.0.1'), ...both), effectOf(asked('example.com'), ...both)]).toEqual(['deny', 'deny'])
    expect(
      effectOf(
        asked('example.com', { traffic: 'raw' }),
        { match: { hosts: ['example.com'], traffic: ['raw'] } },
        both[1] ?? {},
      ),
    ).toBe('deny')
  })

  it('carries other bytes than TLS only where a rule says so', () => {
    const raw = asked('example.com', { traffic: 'raw' })
    expect(effectOf(raw, { match: { hosts: ['example.com'] } })).toBe('deny')
    expect(effectOf(raw, { match: { hosts: ['example.com'], traffic: ['raw'] } })).toBe('allow')
    expect(effectOf(asked('example.com'), { match: { hosts: ['example.com'], traffic: ['http'] } })).toBe('deny')
  })

  it('is asked about where a rule asks', () => {
    expect(effectOf(asked('example.com'), { effect: 'ask', match: { hosts: ['*'] } })).toBe('ask')
  })
})

describe('what reaches out of a sandbox', () => {
  const asked = (action: string) => question({ kind: 'other', payload: { action } }, { point: 'sandbox.ask' })
  const rule = (kind: object): PolicyDocumentInput =>
    ({ name: 'house', rules: [{ id: 'x', effect: 'allow', risk: 'low', reason: 'x', ...kind }] }) as PolicyDocumentInput
  const effectOf = (of: Question, document?: PolicyDocumentInput) =>
    evaluate([builtin, ...(document ? [house(document)] : [])], of, ALLOW).effect

  it.each<[string, Question, object, object]>([
    [
      'an action',
      asked('deploy.staging'),
      { kind: 'operation', match: { actions: ['deploy.*'] } },
      { kind: 'operation', match: { actions: ['release'] } },
    ],
    [
      'a model',
      question({ kind: 'model', model: 'gpt-5' }),
      { kind: 'model', match: { models: ['gpt-*'] } },
      { kind: 'model', match: { models: ['claude-*'] } },
    ],
  ])('is asked about where no rule names it: %s', (_what, of, naming, other) => {
    expect(effectOf(of)).toBe('ask')
    expect(effectOf(of, rule(other))).toBe('ask')
    expect(effectOf(of, rule(naming))).toBe('allow')
    expect(effectOf(of, rule({ ...naming, effect: 'deny' }))).toBe('deny')
    expect(effectOf(of, rule({ ...naming, note: true }))).toBe('ask')
    // A rule about points says nothing of what is asked for; it may still deny.
    const everything = { kind: 'operation', match: { points: ['*'] } }
    expect(effectOf(of, rule(everything))).toBe('ask')
    expect(effectOf(of, rule({ ...everything, effect: 'deny' }))).toBe('deny')
    expect(effectOf(of, { ...rule(other), default: 'deny' })).toBe('deny')
  })

  it('is no action at any other point', () => {
    const payload = { action: 'deploy' }
    const deny = { kind: 'operation', effect: 'deny', match: { actions: ['*'] } }
    expect(effectOf(question({ kind: 'other', payload }, { point: 'key.create' }), rule(deny))).toBe('allow')
    expect(effectOf(asked('deploy'), rule({ ...deny, match: { points: ['key.*'], actions: ['*'] } }))).toBe('ask')
    expect(effectOf(asked('deploy'), rule({ ...deny, match: { points: ['sandbox.*'], actions: ['*'] } }))).toBe('deny')
  })
})

describe('a rule', () => {
  it('is named with where it is written, and each once', () => {
    expect(evaluate([builtin], question(shell('sudo id; sudo id')), ALLOW)).toEqual({
      effect: 'deny',
      risk: 'high',
      rules: [
        {
          policy: 'builtin',
          rule: 'privilege-escalation',
          effect: 'deny',
          risk: 'high',
          reason: 'It asks for the rights of another user.',
        },
      ],
      conditions: {},
      policyVersion: 'builtin@3',
    })
  })

  it('can be switched off by another document', () => {
    const off = house({ off: ['builtin/privilege-escalation'] })
    expect(evaluate([builtin, off], question(shell('sudo id')), ALLOW).effect).toBe('allow')
    expect(evaluate([builtin, off], question(shell('sudo rm -rf /')), ALLOW).effect).toBe('deny')
  })

  it('holds only when and for whom it says', () => {
    const deny: PolicyDocumentInput['rules'][number] = {
      id: 'x',
      kind: 'operation',
      effect: 'deny',
      risk: 'low',
      reason: 'x',
      match: { points: ['*'] },
    }
    const effectOf = (when: NonNullable<PolicyDocumentInput['rules'][number]['when']>) =>
      evaluate([house({ rules: [{ ...deny, when }] })], question(shell('ls')), ALLOW).effect
    expect(effectOf({ agents: ['def*'], roles: ['developer'], tenants: ['default'], actors: ['key:*'] })).toBe('deny')
    expect(effectOf({ agents: ['other'] })).toBe('allow')
    expect(effectOf({ roles: ['admin'] })).toBe('allow')
    expect(effectOf({ tenants: ['!default'] })).toBe('allow')
    expect(effectOf({ sandboxes: ['sbx_*'] })).toBe('allow')
    expect(effectOf({ points: ['step.*'] })).toBe('allow')
  })

  it('can deny every operation that is governed', () => {
    const denies = house({
      rules: [{ id: 'x', kind: 'operation', effect: 'deny', risk: 'low', reason: 'x', match: { points: ['*'] } }],
    })
    const governed = point.options.filter(isGoverned)
    expect(governed.length).toBeGreaterThan(10)
    for (const point of governed)
      expect(evaluate([denies], question({ kind: 'other', payload: {} }, { point }), ALLOW).effect).toBe('deny')
  })

  it('of a command is asked of the code of a bash step too', () => {
    const operation: Operation = { kind: 'code', runtime: 'bash', code: 'cd / && rm -rf *', timeoutMs: 1 }
    expect(evaluate([builtin], question(operation), ALLOW).effect).toBe('deny')
  })

  it.each<[string, Operation]>([
    ['a command', { kind: 'command', argv: ['ls'], cwd: '/workspace', env: ['LD_PRELOAD'], timeoutMs: 1 }],
    ['a step of bash', { kind: 'code', runtime: 'bash', code: 'ls', env: ['LD_PRELOAD'], timeoutMs: 1 }],
    ['a step of python', { kind: 'code', runtime: 'python', code: '1', env: ['PYTHONSTARTUP'], timeoutMs: 1 }],
    ['a sandbox', { ...sandbox, env: ['A', 'LD_AUDIT'] }],
    ['a session', { kind: 'other', payload: { runtime: 'python', labels: {}, env: ['BASH_ENV'] } }],
  ])('of variables is asked of the environment of %s', (_of, operation) => {
    const { effect, rules } = evaluate([builtin], question(operation), ALLOW)
    expect({ effect, rules: rules.map(({ rule }) => rule) }).toMatchObject({
      effect: 'ask',
      rules: expect.arrayContaining(['preloading']),
    })
  })

  it('of variables leaves alone what has none of them, and covers nothing that was not covered', () => {
    const harmless: Operation = { kind: 'other', payload: { env: ['EDITOR'] } }
    expect(evaluate([builtin], question(harmless), ALLOW)).toMatchObject({ effect: 'allow', rules: [] })
    expect(evaluate([builtin], question(harmless), { default: 'deny' }).effect).toBe('deny')
  })

  it('of code is asked of the code in a command too', () => {
    const decision = evaluate([builtin], question(shell(`python3 -c "import shutil; shutil.rmtree('/')"`)), ALLOW)
    expect(decision.rules.map(({ rule }) => rule)).toEqual(['destructive-removal-in-code'])
  })
})

describe('rules about sandboxes', () => {
  it('compare limits and lifetimes', () => {
    const effectOf = (over: Record<string, number>) =>
      evaluate(
        [house({ rules: [{ id: 'q', kind: 'quota', effect: 'ask', risk: 'low', reason: 'x', match: { over } }] })],
        question(sandbox, { point: 'sandbox.create' }),
        ALLOW,
      ).effect
    expect(effectOf({ cpus: 4 })).toBe('ask')
    expect(effectOf({ cpus: 8 })).toBe('allow')
    expect(effectOf({ memoryBytes: 1 })).toBe('ask')
    expect(effectOf({ lifetimeMs: 59_999 })).toBe('ask')
    expect(effectOf({ lifetimeMs: 60_000, pids: 64, diskBytes: 1024 ** 3 })).toBe('allow')
  })

  it('can name every limit, and no cap is over each', () => {
    const effectOf = (over: Record<string, number>, operation: Operation) =>
      evaluate(
        [house({ rules: [{ id: 'q', kind: 'quota', effect: 'ask', risk: 'low', reason: 'x', match: { over } }] })],
        question(operation, { point: 'sandbox.create' }),
        ALLOW,
      ).effect
    const asked = { ...sandbox.limits, cpuSeconds: 60 }
    for (const [name, value] of Object.entries(asked)) {
      expect([name, effectOf({ [name]: value }, { ...sandbox, limits: asked })]).toEqual([name, 'allow'])
      expect([name, effectOf({ [name]: value - 0.5 }, { ...sandbox, limits: asked })]).toEqual([name, 'ask'])
    }
    expect(effectOf({ cpuSeconds: 1e9 }, { ...sandbox, limits: { ...asked, cpuSeconds: null } })).toBe('ask')
    const command: Operation = { kind: 'command', argv: ['ls'], cwd: '/', env: [], timeoutMs: 1 }
    const runs: Operation[] = [{ ...command, cpuTimeMs: 1000 }, { ...command, cpuTimeMs: 1001 }, command]
    expect(runs.map((run) => effectOf({ cpuTimeMs: 1000 }, run))).toEqual(['allow', 'ask', 'ask'])
  })

  it('mark large ones by default', () => {
    expect(evaluate([builtin], question(sandbox), ALLOW)).toMatchObject({ effect: 'allow', risk: 'medium' })
  })

  it('raise the tier', () => {
    const raises = house({
      rules: [
        {
          id: 't',
          kind: 'tier',
          effect: 'allow',
          risk: 'low',
          reason: 'x',
          match: { labels: { team: ['red'] } },
          conditions: { tier: 'strict', maxTimeoutMs: 10 },
        },
        {
          id: 'q',
          kind: 'quota',
          effect: 'allow',
          risk: 'low',
          reason: 'x',
          match: { over: { cpus: 1 } },
          conditions: { maxTimeoutMs: 5, readOnly: true },
        },
      ],
    })
    expect(evaluate([raises], question(sandbox), ALLOW).conditions).toEqual({
      maxTimeoutMs: 5,
      readOnly: true,
      tier: 'strict',
    })
    expect(evaluate([raises], question({ ...sandbox, labels: {} }), ALLOW).conditions.tier).toBeUndefined()
  })

  it('look at each mount', () => {
    const mounts = (path: string, mode: 'ro' | 'rw') =>
      evaluate(
        [builtin],
        question({
          ...sandbox,
          mounts: [
            { path: '/srv/a', mode: 'ro' },
            { path, mode },
          ],
        }),
        ALLOW,
      )
    expect(mounts('/etc/ssl', 'ro')).toMatchObject({ effect: 'deny', risk: 'critical' })
    expect(mounts('/srv/data', 'rw')).toMatchObject({ effect: 'allow', risk: 'medium' })
    expect(evaluate([builtin], question({ kind: 'mount', path: '/home/me/.ssh', mode: 'ro' }), ALLOW).effect).toBe(
      'deny',
    )
  })
})
