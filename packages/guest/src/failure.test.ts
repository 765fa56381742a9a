import { describe, expect, it } from 'vitest'
import { GuestFailure, toGuestError } from './failure.ts'
import { resolvePath } from './path.ts'

describe('an error for the host', () => {
  it('keeps the code of our own failures', () => {
    expect(toGuestError(new GuestFailure('command_ended', 'over'))).toEqual({ code: 'command_ended', message: 'over' })
  })

  it.each([
    ['ENOENT', 'file_not_found'],
    ['EEXIST', 'file_exists'],
    ['ENOTDIR', 'not_a_directory'],
    ['EISDIR', 'is_a_directory'],
    ['ENOTEMPTY', 'directory_not_empty'],
    ['EACCES', 'permission_denied'],
    ['EROFS', 'permission_denied'],
    ['ENOSPC', 'disk_full'],
    ['EDQUOT', 'disk_full'],
    ['ENAMETOOLONG', 'invalid_path'],
    ['EIO', 'disk_failed'],
    ['ENODEV', 'internal'],
  ])('says for %s the code %s', (errno, code) => {
    expect(toGuestError(Object.assign(new TypeError('why'), { code: errno }))).toEqual({ code, message: 'why' })
  })

  it('is short, whatever was thrown', () => {
    expect(toGuestError('x'.repeat(5000))).toEqual({ code: 'internal', message: 'x'.repeat(1000) })
  })
})

describe('a path', () => {
  it.each([
    ['a/b', '/workspace/a/b'],
    ['/a//b/./c/', '/a/b/c'],
    ['.', '/workspace'],
    ['a..b', '/workspace/a..b'],
  ])('%s means %s', (path, absolute) => {
    expect(resolvePath(path)).toBe(absolute)
  })

  it.each(['', '..', '/a/../b', 'a/..', 'a\0'])('%j is refused', (path) => {
    expect(() => resolvePath(path)).toThrow(expect.objectContaining({ code: 'invalid_path' }))
  })
})
