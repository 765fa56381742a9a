import { z } from 'zod'
import { BOUNDS } from '../defaults.ts'
import { INSIDE } from '../guest/boot.ts'
import { agentId, id, plainText, time } from './scalars.ts'
import { WORKTREE_NAME, worktreeBase } from './files/worktree.ts'

export const grantId = z.string().regex(/^grt_[0-9a-hjkmnp-tv-z]{26}$/, 'is not a grant id')

/** `worktree`: nothing is mounted; sandboxes may get a commit of the git repository at that path, and hand back a branch. */
export const grantMode = z.enum(['ro', 'rw', 'worktree'])
export type GrantMode = z.infer<typeof grantMode>
const kind = z.enum(['file', 'dir'])

/** One spelling for one place: what is compared, mounted and shown is the same text. */
const exactPath = plainText
  .refine((path) => Buffer.byteLength(path) <= BOUNDS.pathBytes, `at most ${BOUNDS.pathBytes} bytes`)
  .refine(
    (path) =>
      path === '/' || (/^(?:\/[^/]+)+$/u.test(path) && !path.split('/').some((part) => part === '.' || part === '..')),
    'must be absolute and exact: no ".", no "..", no empty names, no slash at the end',
  )

/** A host path: names of any bytes exist, but not in our texts. */
const hostPath = exactPath.refine((path) => !/[\p{Cc}\uFFFD]/u.test(path), 'must not contain control characters')

/** Where grants appear unless told otherwise. */
const TARGETS = [INSIDE.grants, INSIDE.workspace, INSIDE.home] as const

const target = exactPath
  .refine((path) => /^[\w./@+-]+$/u.test(path), 'must be letters, digits, "_", "-", ".", "@" or "+"')
  .refine(
    (path) => TARGETS.some((directory) => path.startsWith(`${directory}/`)),
    `must be below one of ${TARGETS.join(', ')}`,
  )

/** Names with * ? and [], or paths of them in which ** is any depth; relative to what is granted. */
const pattern = plainText
  .min(1)
  .max(BOUNDS.patternLength)
  .refine((text) => !text.startsWith('/'), 'must be relative to what is granted')
  .refine((text) => !text.split('/').includes('..'), 'must not contain ".."')
const patterns = z.array(pattern).max(BOUNDS.patterns)

export const addGrantBody = z
  .strictObject({
    path: hostPath.describe('Of the host; exact, without any link in it.'),
    mode: grantMode.default('ro'),
    kind: kind.optional().describe('What it has to be; whatever is there when absent.'),
    target: target.optional().describe(`Where it appears inside: ${INSIDE.grants}/<its name> when absent.`),
    allowed: patterns.default([]).describe('Read-only directories: only what matches is there.'),
    blocked: patterns.default([]).describe('Read-only directories: what matches is not there.'),
    tenant: id.optional().describe('The tenant of the agent; yours when absent.'),
  })
  .refine((body) => body.target === undefined || isPlain(body) || body.target.startsWith(`${INSIDE.grants}/`), {
    path: ['target'],
    message: `with patterns must be below ${INSIDE.grants}`,
  })
  .refine((body) => body.mode === 'ro' || isPlain(body), {
    path: ['mode'],
    message: 'patterns are only for ro: what is written cannot be masked',
  })
  .refine((body) => body.mode !== 'worktree' || (body.target === undefined && body.kind !== 'file'), {
    path: ['target'],
    message: `a worktree is a directory, and always at ${INSIDE.workspace}/${WORKTREE_NAME}`,
  })
export type AddGrantBody = z.infer<typeof addGrantBody>

/** A host path that every sandbox of an agent sees. */
export const grant = z.strictObject({
  id: grantId,
  tenant: id,
  agent: agentId,
  /** The node whose path it is. */
  node: z.string(),
  path: z.string(),
  mode: grantMode,
  kind,
  target: z.string(),
  allowed: z.array(z.string()),
  blocked: z.array(z.string()),
  createdAt: time,
  createdBy: z.string(),
})
export type Grant = z.infer<typeof grant>

/** What a sandbox sees of its host. */
export const mount = z.strictObject({
  grant: grantId,
  path: z.string(),
  target: z.string(),
  mode: grantMode,
  kind,
  commit: z.string().exactOptional().describe('Of a worktree: what it was made from.'),
})
export type Mount = z.infer<typeof mount>

/** The same for the data plane: with what was at the path when it was granted, and nothing else is mounted. */
export const permitMount = mount.extend({
  path: hostPath,
  target,
  dev: z.string().regex(/^\d{1,20}$/),
  ino: z.string().regex(/^\d{1,20}$/),
  allowed: patterns,
  blocked: patterns,
  /** Of a worktree, and of nothing else. */
  base: worktreeBase.exactOptional(),
})
export type PermitMount = z.infer<typeof permitMount>

/** Preconditions of a mount table: a mount inside another would be made in what is granted. */
export const permitMounts = z
  .array(permitMount)
  .max(BOUNDS.grants)
  .refine((mounts) => mounts.every((one, at) => mounts.every((other, by) => at === by || !overlaps(one, other))), {
    message: 'targets must not contain each other',
  })
  .refine(
    (mounts) =>
      mounts.every((one) => isPlain(one) || (one.mode === 'ro' && one.target.startsWith(`${INSIDE.grants}/`))),
    {
      message: 'patterns are only for ro',
    },
  )
  .refine((mounts) => mounts.every(({ mode, base }) => (mode === 'worktree') === (base !== undefined)), {
    message: 'a worktree has a base, and nothing else has one',
  })
  .refine((mounts) => mounts.filter(({ mode }) => mode === 'worktree').length <= 1, {
    message: 'a sandbox has at most one worktree',
  })

/** The whole of it is there. */
function isPlain(grant: { readonly allowed: readonly string[]; readonly blocked: readonly string[] }): boolean {
  return grant.allowed.length + grant.blocked.length === 0
}

/** Whether two grants would be at the same place inside, or one in the other. */
export function overlaps(one: Pick<Mount, 'target'>, other: Pick<Mount, 'target'>): boolean {
  return `${one.target}/`.startsWith(`${other.target}/`) || `${other.target}/`.startsWith(`${one.target}/`)
}

/** What the data plane is asked before something is granted. */
export const lookAtPathRequest = z.strictObject({
  path: hostPath,
  mode: grantMode,
  kind: kind.nullable(),
  target: z.string(),
})
export type LookAtPathRequest = z.infer<typeof lookAtPathRequest>
export const foundPath = z.strictObject({ kind, dev: z.string(), ino: z.string() })
export type FoundPath = z.infer<typeof foundPath>

export const ofGrantsQuery = z.strictObject({
  tenant: id.optional().describe('The tenant of the agent; another than yours needs a key of the platform.'),
})
