import { AirlockError, type ModelRouteName, ROUTES_OF_KIND, type ServedModel } from '@airlock/contract'
import { type DemoPlan, planDemo } from '../demo/answer-demo.ts'
import { isStream, type ModelCall, readCall, wantsUsageChunk } from '../request/read-call.ts'
import { modelRouteOfCall, writeCall } from '../request/write-call.ts'
import type { CallName } from '../routes/find-route.ts'
import { ceilingOf } from '../terms/ceiling.ts'
import { fitCall } from '../terms/fit-call.ts'
import { takeInventory } from '../terms/take-inventory.ts'
import { termsOf } from '../terms/terms-of.ts'

export interface CallToPrepare {
  readonly name: CallName
  readonly bytes: Uint8Array
  /** Those that the sandbox may name. */
  readonly models: readonly ServedModel[]
}

/** A call that was read, bounded and written anew, with the most that it can cost. */
export interface PreparedCall {
  readonly name: CallName
  /** What the demo says; null where an upstream does. */
  readonly demo: DemoPlan | null
  readonly model: ServedModel
  /** As the program inside named the model. */
  readonly asked: string
  readonly route: ModelRouteName
  readonly body: Buffer
  readonly isStream: boolean
  readonly wantsUsageChunk: boolean
  readonly inputTokens: number
  readonly maxOutputTokens: number
  readonly ceilingMicroDollars: number
}

/** Throws `invalid_request` with the field that is wrong, or `model_not_found`. */
export function prepareCall({ name, bytes, models }: CallToPrepare): PreparedCall {
  const read = readCall(name, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
  const asked = read.body.model
  const model = findModel(asked, models)
  assertServed(read, model)
  const terms = termsOf(model)
  const call = fitCall(read, terms)
  const body = writeCall(call, terms.upstreamModel)
  const ceiling = ceilingOf({ call, body }, terms)
  if (ceiling.microDollars === null) throw new AirlockError('invalid_request', `The price of ${asked} is not known.`)
  return {
    name,
    demo: model.upstream === null ? planDemo(call) : null,
    model,
    asked,
    route: modelRouteOfCall(call),
    body: Buffer.from(body),
    isStream: isStream(call),
    wantsUsageChunk: wantsUsageChunk(call),
    inputTokens: ceiling.inputTokens,
    maxOutputTokens: ceiling.outputTokens,
    ceilingMicroDollars: ceiling.microDollars,
  }
}

const MAX_NAMED = 5

export function findModel(asked: string, models: readonly ServedModel[]): ServedModel {
  const found = models.find(({ name, aliases }) => name === asked || aliases.includes(asked))
  if (found) return found
  const names = models.slice(0, MAX_NAMED).map(({ name }) => name)
  const may = names.length === 0 ? 'It may name no model.' : `It may name: ${names.join(', ')}.`
  throw new AirlockError('model_not_found', `The sandbox may not name the model ${asked}.`, {
    hint: `${may} Create one that may: airlock create or run with --model ${asked}`,
  })
}

/** What its upstream cannot answer, or the table has no price for, is refused before anything is reserved. */
function assertServed(call: ModelCall, { name, upstream, maxOutput }: ServedModel): void {
  const route = modelRouteOfCall(call)
  if (upstream !== null && !ROUTES_OF_KIND[upstream.kind].includes(route))
    throw new AirlockError('invalid_request', `The provider of ${name} does not have this route.`, {
      hint: `It has: ${ROUTES_OF_KIND[upstream.kind].join(', ')}.`,
    })
  if (maxOutput === 0 && route !== 'embeddings' && route !== 'count_tokens')
    throw new AirlockError('invalid_request', `${name} is a model for embeddings.`)
  if (takeInventory(call).longCache)
    throw new AirlockError(
      'invalid_request',
      '"ttl" of a cache costs what the price table of the server does not have.',
      {
        hint: 'Leave it out.',
      },
    )
}
