import type { AuditRecord, Point } from '@airlock/contract'
import { describe, expect, it } from 'vitest'
import { replayed } from './backtest-question.ts'

function record(point: Point, payload: AuditRecord['payload'], more: Partial<AuditRecord> = {}): AuditRecord {
  return {
    seq: 1,
    ts: '2026-01-31T00:00:00.000Z',
    tenant: 'acme',
    agent: 'a',
    sandbox: 'sbx_1',
    actor: 'key:x',
    role: 'operator',
    point,
    status: 'requested',
    payload: { requestId: 'req_1', ...payload },
    process: 'control-plane',
    late: false,
    prev: '0',
    hash: '0',
    ...more,
  }
}

const LIMITS = { memoryBytes: 2 ** 29, cpus: 1, pids: 256, diskBytes: 2 ** 30 }

describe('what a record tells of its question', () => {
  it('is who asked, where, and what', () => {
    const payload = { command: 'cmd_1', argv: ['ls'], cwd: 'sub', env: ['A'], timeoutMs: 5 }
    expect(replayed(record('command.run', payload))).toEqual({
      question: {
        point: 'command.run',
        tenant: 'acme',
        actor: 'key:x',
        role: 'operator',
        agent: 'a',
        sandbox: 'sbx_1',
        operation: { kind: 'command', argv: ['ls'], cwd: '/workspace/sub', env: ['A'], timeoutMs: 5 },
      },
      others: [],
      isPartial: false,
    })
  })

  it.each([
    ['all of short code', 6, false],
    ['a part of long code', 600, true],
  ])('is %s', (_what, bytes, isPartial) => {
    const payload = { code: { sha256: 'x', bytes, head: 'print(' }, runtime: 'python', timeoutMs: 5, env: [] }
    const told = replayed(record('step.run', payload))
    expect(told).toMatchObject({ isPartial })
    expect(told.question.operation).toEqual({ kind: 'code', runtime: 'python', code: 'print(', env: [], timeoutMs: 5 })
  })

  it.each([
    ['file.read', { path: 'x' }, { kind: 'file', action: 'read', path: '/workspace/x' }],
    ['file.write', { path: '/tmp/x', append: true }, { kind: 'file', action: 'write', path: '/tmp/x' }],
    ['file.list', { path: '/' }, { kind: 'file', action: 'list', path: '/' }],
    ['file.mkdir', { path: 'd', parents: true }, { kind: 'file', action: 'mkdir', path: '/workspace/d' }],
    ['file.remove', { path: 'd', recursive: true }, { kind: 'file', action: 'remove', path: '/workspace/d' }],
    ['file.move', { from: 'a', to: 'b' }, { kind: 'file', action: 'move', path: '/workspace/a', to: '/workspace/b' }],
    ['grant.add', { path: '/srv', mode: 'rw', kind: null }, { kind: 'mount', path: '/srv', mode: 'rw' }],
  ] as const)('of %s is its operation', (point, payload, operation) => {
    expect(replayed(record(point, payload)).question.operation).toEqual(operation)
  })

  it('of a sandbox is what was wanted, without its name, and each mount beside it', () => {
    const mounts = [{ grant: 'grt_1', path: '/srv', target: '/grants/srv', mode: 'ro', kind: 'dir' }]
    const asked = { template: 'base', tier: 'standard', limits: LIMITS, labels: { a: 'b' }, lifetimeMs: 7 } as const
    const told = replayed(record('sandbox.create', { ...asked, mounts, name: 'box', env: [] }))
    const seen = [{ path: '/srv', mode: 'ro' }]
    expect(told.question).toMatchObject({ sandbox: null, operation: { kind: 'sandbox', ...asked, mounts: seen } })
    expect(told.others.map(({ operation }) => operation)).toEqual([{ kind: 'mount', path: '/srv', mode: 'ro' }])
  })

  it('is the payload, where a point has no kind of its own or the record is not whole', () => {
    for (const point of ['key.create', 'command.run', 'sandbox.create'] as const)
      expect(replayed(record(point, { name: 'x' })).question.operation).toEqual({
        kind: 'other',
        payload: { requestId: 'req_1', name: 'x' },
      })
  })
})
