import { describe, expect, it } from 'vitest'
import { addGrantBody, overlaps, permitMounts } from './grant.ts'

const parses = (body: object) => addGrantBody.safeParse({ path: '/srv/data', ...body }).success

describe('the path of a grant', () => {
  it.each(['/', '/srv', '/srv/a b/c', '/srv/…', '/srv/...', '/srv/.hidden'])('may be %s', (path) => {
    expect(parses({ path })).toBe(true)
  })

  it.each([
    '',
    'srv',
    './srv',
    '/srv/',
    '//srv',
    '/srv//a',
    '/srv/.',
    '/srv/../etc',
    '/srv/..',
    '/s\0',
    '/s\n',
    `/${'x'.repeat(4095)}`,
  ])('is not %j', (path) => {
    expect(parses({ path })).toBe(false)
  })
})

describe('the target of a grant', () => {
  it.each(['/grants/a', '/grants/a/b', '/workspace/a', '/home/user/.cache'])('may be %s', (target) => {
    expect(parses({ target })).toBe(true)
  })

  it.each([
    '/grants',
    '/workspace',
    '/home/user',
    '/home',
    '/grants/',
    '/grants/../usr',
    '/grantsx/a',
    '/usr/a',
    '/a',
    '/grants/a b',
    '/run/airlock',
  ])('is not %s', (target) => {
    expect(parses({ target })).toBe(false)
  })
})

describe('patterns', () => {
  it('are for read-only grants below /grants, relative and bounded', () => {
    expect(parses({ blocked: ['*.key', 'a/**/b'], allowed: ['src'] })).toBe(true)
    expect(parses({ blocked: ['*.key'], target: '/grants/x' })).toBe(true)
    expect(parses({ blocked: ['*.key'], mode: 'rw' })).toBe(false)
    expect(parses({ allowed: ['*.key'], target: '/workspace/x' })).toBe(false)
    for (const pattern of ['', '/etc', '../x', 'a/../b', 'x'.repeat(257)])
      expect(parses({ blocked: [pattern] })).toBe(false)
    expect(parses({ blocked: Array.from({ length: 33 }, () => 'x') })).toBe(false)
  })
})

describe('a mount table', () => {
  const mount = (target: string, more: object = {}) => ({
    grant: `grt_${'0'.repeat(26)}`,
    path: '/srv',
    target,
    mode: 'ro',
    kind: 'dir',
    dev: '1',
    ino: '2',
    allowed: [],
    blocked: [],
    ...more,
  })
  const isTable = (...mounts: object[]) => permitMounts.safeParse(mounts).success

  it('has no mount in another, and none at the same place', () => {
    expect(isTable()).toBe(true)
    expect(isTable(mount('/grants/a'), mount('/grants/ab'), mount('/workspace/a'))).toBe(true)
    expect(isTable(mount('/grants/a'), mount('/grants/a'))).toBe(false)
    expect(isTable(mount('/grants/a/b'), mount('/grants/a'))).toBe(false)
    expect(overlaps({ target: '/grants/a' }, { target: '/grants/a/b' })).toBe(true)
    expect(overlaps({ target: '/grants/a' }, { target: '/grants/ab' })).toBe(false)
  })

  it('says what was at the path, and has patterns only where they hold', () => {
    expect(isTable(mount('/grants/a', { ino: '' }))).toBe(false)
    expect(isTable(mount('/grants/a', { path: '/srv/../etc' }))).toBe(false)
    expect(isTable(mount('/grants/a', { blocked: ['x'] }))).toBe(true)
    expect(isTable(mount('/grants/a', { blocked: ['x'], mode: 'rw' }))).toBe(false)
    expect(isTable(mount('/workspace/a', { blocked: ['x'] }))).toBe(false)
  })
})
