import { expect, it } from 'vitest'
import { insidePath } from './asked-paths.ts'

it.each([
  ['note', '/workspace/note'],
  ['/etc/./passwd', '/etc/passwd'],
  ['file:///workspace/secret/%FF', '/workspace/secret/\ufffd'],
  ['file:///workspace//secret/./a%FF', '/workspace/secret/a\ufffd'],
])('a rule sees %s as %s, where the guest will look', (path, seen) => expect(insidePath(path)).toBe(seen))
