import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { isReducing, ROUTES, type Route, type RouteName } from './routes.ts'

const NAMES = Object.keys(ROUTES) as readonly RouteName[]
const table: Readonly<Record<RouteName, Route>> = ROUTES

/** Paths of the fields with that name that have a default, as the caller of a route sees them. */
function defaultsOf(field: string, schema: unknown, at: string): readonly string[] {
  if (typeof schema !== 'object' || schema === null) return []
  return Object.entries(schema).flatMap(([key, value]: [string, unknown]) => {
    const path = `${at}.${key}`
    const isIt = key === field && typeof value === 'object' && value !== null && 'default' in value
    return [...(isIt ? [path] : []), ...defaultsOf(field, value, path)]
  })
}

describe('the table of routes', () => {
  it.each(['agent', 'agents', 'tenant'])('has no default for %s: who calls decides what it is', (field) => {
    const found = NAMES.flatMap((name) => {
      const { body, query } = table[name]
      return [body, query].flatMap((schema) =>
        schema === undefined
          ? []
          : defaultsOf(field, z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }), name),
      )
    })
    expect(found).toEqual([])
  })

  it('asks nothing of the server for what is public, but for what a signed URL grants', () => {
    const isPublic = NAMES.filter((name) => table[name].roles === 'public')
    expect(isPublic.filter((name) => table[name].needs !== 'nothing')).toEqual(['downloadLinkedArtifact'])
  })

  it('has what grants wait until the server may grant, but for reading and mending evidence', () => {
    const grants = NAMES.filter((name) => table[name].effect !== undefined && !isReducing(table[name]))
    const others = grants.filter((name) => table[name].needs !== 'granting').map((name) => table[name].effect)
    expect(new Set(others)).toEqual(new Set(['audit.read', 'audit.quarantine']))
  })

  it('keeps nothing that takes away from a server that serves', () => {
    const reducing = NAMES.filter((name) => isReducing(table[name]))
    expect(reducing.filter((name) => table[name].needs !== 'serving')).toEqual([])
  })

  it('lets every read be repeated', () => {
    const reads = NAMES.filter((name) => table[name].method === 'GET')
    expect(reads.filter((name) => table[name].repeats !== 'safe')).toEqual([])
  })
})
