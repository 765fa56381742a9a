import { expect, it } from 'vitest'
import { parseConfig } from './config.ts'

const argv = ['node', '/opt/helper/main.mjs']

it('reads an agent program of the operator, with its caps and limits', () => {
  const { graph } = parseConfig({ graph: { helper: { argv, models: ['fast'], dollars: 0.5, memory_mb: 256 } } }, {})
  expect(graph).toEqual({
    helper: {
      description: '',
      version: '1',
      template: 'base',
      argv,
      models: ['fast'],
      modelLimits: { dollars: 0.5 },
      limits: { memoryBytes: 256 * 1024 * 1024 },
      tier: 'standard',
      doors: [],
      timeoutMs: 600_000,
    },
  })
})

it.each([
  ['a name that is none', { 'No Name': { argv } }],
  ['the name of a program of the server', { agent: { argv } }],
  ['no program', { helper: {} }],
  ['a key that is not known', { helper: { argv, code: 'print()' } }],
])('refuses %s', (_, graph) => {
  expect(() => parseConfig({ graph }, {})).toThrow(/graph/)
})
