import { graphSpec, type GraphSpec } from '@airlock/contract'
import { readFileSync } from 'node:fs'

/** An agent program that every tenant has. */
export interface FixedGraph {
  readonly name: string
  readonly source: 'builtin' | 'configuration'
  readonly spec: GraphSpec
}

/** Those that come with the server. Reads their files, so it is called before rights are given up. */
export function builtinGraphs(): readonly FixedGraph[] {
  const code = readFileSync(new URL('./graphs/agent.py', import.meta.url), 'utf8')
  const description = 'Asks one model and streams its answer. No tools.'
  const timeoutMs = 120_000
  const spec = graphSpec.parse({ description, version: '1', code, language: 'python', timeoutMs })
  return [{ name: 'sandbox:agent', source: 'builtin', spec }]
}

/** Those that the operator wrote into the configuration. */
export function configuredGraphs(graphs: Readonly<Record<string, GraphSpec>>): readonly FixedGraph[] {
  return Object.entries(graphs).map(([name, spec]) => ({ name: `sandbox:${name}`, source: 'configuration', spec }))
}
