import { assertNever } from '@airlock/std'
import { isStream, type ModelCall } from '../request/read-call.ts'
import { composeDemo, countDemoTokens } from './compose-demo.ts'
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

/** Answers a call that `fitCall` made, by no model at all, in the protocol of the call. */
export function answerDemo(call: ModelCall, made: DemoCall): DemoAnswer {
  switch (call.name) {
    case 'chat': {
      const said = { ...composeDemo(call), choices: call.body.n ?? 1, ...made }
      return isStream(call) ? stream(streamDemoChat(said)) : json(completeDemo(said))
    }
    case 'responses': {
      const said = { ...composeDemo(call), ...made }
      return isStream(call) ? stream(streamDemoResponse(said)) : json(respondDemo(said))
    }
    case 'messages': {
      const said = { ...composeDemo(call), ...made }
      return isStream(call) ? stream(streamDemoMessage(said)) : json(messageDemo(said))
    }
    case 'embeddings':
      return json(embedDemo(call.body))
    case 'countTokens':
      return json({ input_tokens: countDemoTokens(call.body) })
    default:
      return assertNever(call)
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
  return { kind: 'json', chunks: [Buffer.from(JSON.stringify(body))] }
}
