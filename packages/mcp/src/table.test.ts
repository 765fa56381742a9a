import { ROUTES, type Route } from '@airlock/contract'
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { TOOLS } from './table.ts'

describe('the table of tools', () => {
  it('has each name once', () => {
    const names = TOOLS.map((tool) => tool.name)
    expect(new Set(names).size).toBe(names.length)
  })

  it('is the one of docs/mcp.md', () => {
    const text = readFileSync(new URL('../../../docs/mcp.md', import.meta.url), 'utf8')
    expect(text.match(/^\| `.*\|$/gm)).toEqual(
      TOOLS.map(({ listing, routes }) => {
        const { readOnlyHint, destructiveHint } = listing.annotations ?? {}
        const kind = readOnlyHint === true ? 'reads' : destructiveHint === true ? 'changes' : 'adds'
        const names = routes.map((route) => `\`${route}\``).join(', ')
        return `| \`${listing.name}\` | ${listing.description} | ${kind} | ${names} |`
      }),
    )
  })

  it.each(TOOLS.map((tool) => [tool.name, tool] as const))('%s changes nothing when it says so', (_, tool) => {
    const isReading = tool.routes.every((name) => (ROUTES[name] satisfies Route).method === 'GET')
    expect(tool.listing.annotations?.readOnlyHint).toBe(isReading)
  })

  it.each(TOOLS.map((tool) => [tool.name, tool] as const))('%s has closed schemas of objects', (_, { listing }) => {
    expect(listing.inputSchema).toMatchObject({ type: 'object', additionalProperties: false })
    expect(listing.outputSchema).toMatchObject({ type: 'object', additionalProperties: false })
  })
})
