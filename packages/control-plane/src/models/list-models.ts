import type { Model, ServedModel } from '@airlock/contract'
import type { Context } from '../app/context.ts'

const MICRO = 1_000_000

/** Models of the configured upstreams and the demo, as callers see them. */
export function listModels({ models }: Pick<Context, 'models'>): readonly Model[] {
  return models.all.map(show)
}

function show({ name, aliases, upstream, contextWindow, maxOutput, price }: ServedModel): Model {
  return {
    name,
    aliases,
    upstream: upstream?.name ?? null,
    kind: upstream?.kind ?? null,
    contextWindow,
    maxOutput,
    price: {
      input: price.input / MICRO,
      output: price.output / MICRO,
      cacheRead: price.cacheRead / MICRO,
      cacheWrite: price.cacheWrite / MICRO,
    },
  }
}
