import { z } from 'zod'
import type { ErrorCode } from '../errors.ts'
import { LIVE, type Route, USERS } from './route.ts'
import { sandboxId } from '../nouns/scalars.ts'
import { exportedWorktree, exportWorktreeBody, sealQuery, worktreeDiff } from '../nouns/files/worktree.ts'

const ofSandbox = z.strictObject({ id: sandboxId })
const WORKTREE: readonly ErrorCode[] = [
  ...LIVE.filter((code) => code !== 'guest_lost'),
  'worktree_not_found',
  'worktree_refused',
  'worktree_too_large',
]

/** The part of the table of routes that is about worktrees. */
export const WORKTREE_ROUTES = {
  diffWorktree: {
    method: 'POST',
    path: '/v1/sandboxes/{id}/worktree/diff',
    needs: 'granting',
    repeats: 'safe',
    summary: 'Seal what a sandbox changed in its worktree, and say what it is.',
    roles: USERS,
    params: ofSandbox,
    answers: 'json',
    response: worktreeDiff,
    errors: [...WORKTREE, 'host_disk_full'],
    effect: 'worktree.diff',
  },
  readWorktreePatch: {
    method: 'GET',
    path: '/v1/sandboxes/{id}/worktree/patch',
    needs: 'granting',
    repeats: 'safe',
    summary: 'Take a sealed copy out as a unified patch; the gate decides.',
    roles: USERS,
    params: ofSandbox,
    query: sealQuery,
    answers: 'bytes',
    errors: [...WORKTREE, 'worktree_changed'],
    effect: 'worktree.export',
  },
  exportWorktree: {
    method: 'POST',
    path: '/v1/sandboxes/{id}/worktree/export',
    needs: 'granting',
    repeats: 'safe',
    summary: 'Write what a sandbox changed as a branch sandbox/<name> of the repository; the gate decides.',
    roles: USERS,
    params: ofSandbox,
    body: exportWorktreeBody,
    answers: 'json',
    response: exportedWorktree,
    errors: [...WORKTREE, 'worktree_changed', 'host_disk_full'],
    effect: 'worktree.export',
  },
} as const satisfies Record<string, Route>
