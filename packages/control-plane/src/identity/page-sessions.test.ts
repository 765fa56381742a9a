import { describe, expect, it } from 'vitest'
import { LINK_MS, PageSessions, SESSION_MS } from './page-sessions.ts'

describe('sessions of the page', () => {
  it('end after twelve hours, and when they are closed', () => {
    let now = 0
    const sessions = new PageSessions({ now: () => now })
    const [one, other] = [sessions.open('a'), sessions.open('b')]
    expect([sessions.keyOf(one), sessions.keyOf(other), sessions.keyOf('guess')]).toEqual(['a', 'b', undefined])
    expect(sessions.close(one)).toBe('a')
    expect([sessions.keyOf(one), sessions.close(one)]).toEqual([undefined, undefined])
    now = SESSION_MS - 1
    expect(sessions.keyOf(other)).toBe('b')
    now = SESSION_MS
    expect(sessions.keyOf(other)).toBeUndefined()
  })

  it('are 32 of a key and 2048 in all: the oldest make room', () => {
    const sessions = new PageSessions({ now: () => 0 })
    const first = sessions.open('a')
    const others = Array.from({ length: 32 }, () => sessions.open('a'))
    expect([sessions.keyOf(first), others.every((secret) => sessions.keyOf(secret) === 'a')]).toEqual([undefined, true])
    for (let key = 0; key < 2_047; key++) sessions.open(`key-${key}`)
    expect([sessions.keyOf(others[0] ?? ''), sessions.keyOf(others[31] ?? '')]).toEqual([undefined, 'a'])
  })

  it('begin with a link once, and not when it is old', () => {
    let now = 0
    const sessions = new PageSessions({ now: () => now })
    const [one, late] = [sessions.openLink('a'), sessions.openLink('a')]
    expect([sessions.keyOf(one), sessions.spendLink(one), sessions.spendLink(one)]).toEqual([undefined, 'a', undefined])
    now = LINK_MS
    expect(sessions.spendLink(late)).toBeUndefined()
  })
})
