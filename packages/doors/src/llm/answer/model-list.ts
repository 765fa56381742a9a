import { assertNever } from '@airlock/std'
import type { Protocol } from '../routes/find-route.ts'

/** The models that a caller may use, in the shape of its SDK. */
export function listModels(names: readonly string[], protocol: Protocol): object {
  const data = names.map((name) => describeModel(name, protocol))
  return protocol === 'openai'
    ? { object: 'list', data }
    : { data, has_more: false, first_id: names[0] ?? null, last_id: names.at(-1) ?? null }
}

/** When a model was made is not known here, and no provider is asked. */
export function describeModel(name: string, protocol: Protocol): object {
  switch (protocol) {
    case 'openai':
      return { id: name, object: 'model', created: 0, owned_by: 'airlock' }
    case 'anthropic':
      return { type: 'model', id: name, display_name: name, created_at: '1970-01-01T00:00:00Z' }
    default:
      return assertNever(protocol)
  }
}
