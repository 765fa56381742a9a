import { type AuditRecord, limits, type Operation, type Point, type Question, tier } from '@airlock/contract'
import { z } from 'zod'
import { insidePath } from '../sandboxes/asked-paths.ts'

/** What was asked, as far as its record tells: the operation, and what it brought along. */
export function replayed(record: AuditRecord): {
  readonly question: Question
  readonly others: readonly Question[]
  readonly isPartial: boolean
} {
  const { point, tenant, actor, agent, sandbox, role = 'developer' } = record
  const { about, others = [], isPartial } = operationOf(record)
  // A sandbox had no name when it was asked for.
  const who = { point, tenant, actor, role, agent, sandbox: point === 'sandbox.create' ? null : sandbox }
  const ask = (operation: Operation): Question => ({ ...who, operation })
  return { question: ask(about), others: others.map(ask), isPartial }
}

interface Told {
  readonly about: Operation
  readonly others?: readonly Operation[]
  readonly isPartial: boolean
}

const command = z.object({
  argv: z.array(z.string()),
  cwd: z.string(),
  env: z.array(z.string()),
  timeoutMs: z.number(),
  cpuTimeMs: z.number().optional(),
})
const code = z.object({
  code: z.object({ head: z.string(), bytes: z.number() }),
  runtime: z.string(),
  env: z.array(z.string()).default([]),
  timeoutMs: z.number(),
})
const at = z.object({ path: z.string() })
const moved = z.object({ from: z.string(), to: z.string() })
const mount = z.object({ path: z.string(), mode: z.enum(['ro', 'rw']) })
const ofSandbox = z.object({
  template: z.string(),
  tier,
  limits,
  labels: z.record(z.string(), z.string()),
  lifetimeMs: z.number(),
  env: z.array(z.string()).default([]),
  mounts: z.array(mount),
})

/** The record of a point that has a kind of its own holds what the question did; what does not fit is like all others. */
function operationOf(record: AuditRecord): Told {
  const about = READERS[record.point]?.(record)
  return about ?? { about: { kind: 'other', payload: record.payload }, isPartial: false }
}

const READERS: { readonly [P in Point]?: (record: AuditRecord) => Told | undefined } = {
  'command.run': ({ payload }) => {
    const read = command.safeParse(payload).data
    if (!read) return undefined
    const { cpuTimeMs, ...rest } = read
    const bound = cpuTimeMs === undefined ? {} : { cpuTimeMs }
    return whole({ kind: 'command', ...rest, ...bound, cwd: insidePath(read.cwd) })
  },
  'step.run': ({ payload }) => {
    const read = code.safeParse(payload).data
    if (!read) return undefined
    const { head, bytes } = read.code
    const about = { kind: 'code', runtime: read.runtime, code: head, env: read.env, timeoutMs: read.timeoutMs } as const
    return { about, isPartial: Buffer.byteLength(head) !== bytes }
  },
  'file.read': file('read'),
  'file.write': file('write'),
  'file.list': file('list'),
  'file.mkdir': file('mkdir'),
  'file.remove': file('remove'),
  'file.move': ({ payload }) => {
    const read = moved.safeParse(payload).data
    return read && whole({ kind: 'file', action: 'move', path: insidePath(read.from), to: insidePath(read.to) })
  },
  'grant.add': ({ payload }) => {
    const read = mount.safeParse(payload).data
    return read && whole({ kind: 'mount', ...read })
  },
  'sandbox.create': ({ payload }) => {
    const read = ofSandbox.safeParse(payload).data
    if (!read) return undefined
    const others = read.mounts.map((one) => ({ kind: 'mount', ...one }) as const)
    return { about: { kind: 'sandbox', ...read }, others, isPartial: false }
  },
  'sandbox.limit': ({ payload }) => {
    const read = ofSandbox.safeParse(payload).data
    return read && whole({ kind: 'sandbox', ...read })
  },
}

function file(action: 'read' | 'write' | 'list' | 'mkdir' | 'remove') {
  return ({ payload }: AuditRecord): Told | undefined => {
    const read = at.safeParse(payload).data
    return read && whole({ kind: 'file', action, path: insidePath(read.path) })
  }
}

function whole(about: Operation): Told {
  return { about, isPartial: false }
}
