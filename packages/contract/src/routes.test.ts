import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { ROUTES, type Route, type RouteName } from './routes.ts'

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
})
