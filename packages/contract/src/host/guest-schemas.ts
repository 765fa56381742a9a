import { z } from 'zod'
import { BOUNDS } from '../defaults.ts'
import { type GuestMessage, GUEST_ERROR_CODES } from '../guest/messages.ts'
import { runtime } from '../nouns/session.ts'

/** What the host accepts from a guest: strict, bounded, and nothing about identity, time of day or money. */
const channel = z.int().min(1).max(0xffffffff)
const count = z.int().min(0)
const text = z.string().max(4096)

const commandEnd = z.strictObject({
  exitCode: z.int().min(0).max(255).nullable(),
  signal: z.string().max(16).nullable(),
  timedOut: z.boolean(),
  durationMs: z.number().min(0),
  forksRefused: count.exactOptional(),
  restarted: z.boolean().exactOptional(),
})

const commandState = z.strictObject({
  id: z.string().max(64),
  channel,
  produced: count,
  truncated: z.boolean(),
  end: commandEnd.nullable(),
  closed: z.boolean(),
})

const guestError = z.strictObject({ code: z.enum(GUEST_ERROR_CODES), message: text })

export const guestMessage = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('hello'), protocol: z.int(), commands: z.array(commandState).max(1024) }),
  z.strictObject({ type: z.literal('result'), id: count, result: z.unknown() }),
  z.strictObject({ type: z.literal('failure'), id: count, error: guestError }),
  z.strictObject({ type: z.literal('ack'), channel, offset: count }),
  z.strictObject({ type: z.literal('exited'), channel, end: commandEnd }),
  z.strictObject({ type: z.literal('closed'), channel, produced: count, truncated: z.boolean() }),
  z.strictObject({ type: z.literal('eof'), channel, bytes: count }),
  z.strictObject({ type: z.literal('written'), channel, bytes: count }),
  z.strictObject({ type: z.literal('broken'), channel, error: guestError }),
]) satisfies z.ZodType<GuestMessage>

const fileEntry = z.strictObject({
  name: z.string().max(255 * 4),
  path: text,
  kind: z.enum(['file', 'directory', 'symlink', 'other']),
  size: z.int(),
  mode: z.int(),
  modifiedMs: z.number(),
  target: text.optional(),
})
/** Each byte of a path may be three characters. */
const longText = z.string().max(3 * BOUNDS.pathBytes + 16)
const nothing = z.strictObject({})

const guestSession = z.strictObject({
  id: z.string().max(64),
  runtime,
  runtimeVersion: z.string().max(128),
  restarts: count,
})

/** The result of each request, parsed before anybody uses it. */
export const guestResults = {
  ping: nothing,
  token: nothing,
  run: z.strictObject({ startedMs: z.number() }),
  signal: nothing,
  forget: nothing,
  'session.open': guestSession,
  'session.list': z.strictObject({ sessions: z.array(guestSession).max(BOUNDS.sessions) }),
  'session.interrupt': nothing,
  'session.restart': guestSession,
  'session.close': nothing,
  step: z.strictObject({ startedMs: z.number() }),
  'file.read': z.strictObject({ size: count }),
  'file.find': z.strictObject({
    files: z.array(z.strictObject({ path: longText, size: count })).max(BOUNDS.collectedArtifacts),
    skipped: z.array(z.strictObject({ path: longText, why: text })).max(100),
    skippedCount: count,
    stopped: z.enum(['files', 'names', 'time']).exactOptional(),
  }),
  'file.write': nothing,
  'file.pack': nothing,
  'file.unpack': nothing,
  'file.stat': fileEntry,
  'file.list': z.strictObject({ entries: z.array(fileEntry).max(10_000), truncated: z.boolean() }),
  'file.mkdir': nothing,
  'file.move': nothing,
  'file.remove': nothing,
} as const
