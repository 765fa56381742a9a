import { assertNever } from '@airlock/std'
import { isStream, type ModelCall } from '../request/read-call.ts'
import { composeDemo, countDemoTokens, type DemoText } from './compose-demo.ts'
import type { DemoCall, DemoEvent } from './demo-call.ts'
import { completeDemo, streamDemoChat } from './demo-chat.ts'
import { embedDemo } from './demo-embeddings.ts'
import { messageDemo, streamDemoMessage } from './demo-messages.ts'
import { respondDemo, streamDemoResponse } from './demo-responses.ts'

/** An answer as an upstream would give it: JSON in one piece, or the events of a stream with its usage. */
export interface DemoAnswer {
  readonly kind: 'json' | 'stream'
  readonly chunks: readonly Buffer[]
}

/** What the demo says to a call. It is short whatever the call is, but for embeddings, which are written. */
export type DemoPlan =
  | { readonly name: 'chat'; readonly isStream: boolean; readonly said: DemoText & { readonly choices: number } }
  | { readonly name: 'responses' | 'messages'; readonly isStream: boolean; readonly said: DemoText }
  | { readonly name: 'embeddings' | 'countTokens'; readonly answer: Uint8Array }

/** Of a call that `fitCall` made. Takes as long as the call is. */
export function planDemo(call: ModelCall): DemoPlan {
  switch (call.name) {
    case 'chat':
      return { name: call.name, isStream: isStream(call), said: { ...composeDemo(call), choices: call.body.n ?? 1 } }
    case 'responses':
    case 'messages':
      return { name: call.name, isStream: isStream(call), said: composeDemo(call) }
    case 'embeddings':
      return { name: call.name, answer: write(embedDemo(call.body)) }
    case 'countTokens':
      return { name: call.name, answer: write({ input_tokens: countDemoTokens(call.body) }) }
    default:
      return assertNever(call)
  }
}

/** Answers a call by no model at all, in the protocol of the call. */
export function answerDemo(plan: DemoPlan, made: DemoCall): DemoAnswer {
  switch (plan.name) {
    case 'chat': {
      const said = { ...plan.said, ...made }
      return plan.isStream ? stream(streamDemoChat(said)) : json(completeDemo(said))
    }
    case 'responses': {
      const said = { ...plan.said, ...made }
      return plan.isStream ? stream(streamDemoResponse(said)) : json(respondDemo(said))
    }
    case 'messages': {
      const said = { ...plan.said, ...made }
      return plan.isStream ? stream(streamDemoMessage(said)) : json(messageDemo(said))
    }
    case 'embeddings':
    case 'countTokens':
      return { kind: 'json', chunks: [bufferOf(plan.answer)] }
    default:
      return assertNever(plan)
  }
}

function stream(events: readonly DemoEvent[]): DemoAnswer {
  const chunks = events.map(({ name, data }) => {
    const text = typeof data === 'string' ? data : JSON.stringify(data)
    return Buffer.from(`${name === undefined ? '' : `event: ${name}\n`}data: ${text}\n\n`)
  })
  return { kind: 'stream', chunks }
}

function json(body: object): DemoAnswer {
  return { kind: 'json', chunks: [write(body)] }
}

function write(body: object): Buffer {
  return Buffer.from(JSON.stringify(body))
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
