import type { ModelCall } from '../request/read-call.ts'
import { outputTokensOf } from '../terms/fit-call.ts'
import { DEMO_NOTICE } from './demo-model.ts'

/** What the demo says, before a protocol gives it a shape. */
export interface DemoText {
  /** In the pieces of a stream; together they are the text. */
  readonly pieces: readonly string[]
  readonly text: string
  /** Whether the bound on the answer cut it. */
  readonly isCut: boolean
  readonly inputTokens: number
  readonly outputTokens: number
}

/** Of the caller's own words. */
const MAX_ECHO = 200
const BYTES_A_TOKEN = 4

/** Always the same for the same call. A word is a token. */
export function composeDemo(call: ModelCall): DemoText {
  const echo = lastOfUser(call).replaceAll(/\s+/g, ' ').trim()
  const shown = echo.length > MAX_ECHO ? `${echo.slice(0, MAX_ECHO)}…` : echo
  const said = shown === '' ? DEMO_NOTICE : `You said: "${shown}" ${DEMO_NOTICE}`
  const words = (wantsJson(call) ? JSON.stringify({ demo: said }) : said).split(/(?<= )/)
  const choices = call.name === 'chat' ? (call.body.n ?? 1) : 1
  const pieces = words.slice(0, Math.floor(outputTokensOf(call) / choices))
  return {
    pieces,
    text: pieces.join(''),
    isCut: pieces.length < words.length,
    inputTokens: countDemoTokens(call.body),
    outputTokens: pieces.length * choices,
  }
}

export function countDemoTokens(value: unknown): number {
  return Math.ceil(Buffer.byteLength(JSON.stringify(value)) / BYTES_A_TOKEN)
}

function wantsJson(call: ModelCall): boolean {
  if (call.name === 'chat') return (call.body.response_format?.type ?? 'text') !== 'text'
  if (call.name === 'responses') return (call.body.text?.format?.type ?? 'text') !== 'text'
  return call.name === 'messages' && call.body.output_config?.format !== undefined
}

function lastOfUser(call: ModelCall): string {
  switch (call.name) {
    case 'chat':
    case 'messages':
    case 'countTokens':
      return textOf(call.body.messages.findLast(({ role }) => role === 'user')?.content)
    case 'responses': {
      const { input } = call.body
      if (typeof input === 'string') return input
      const last = input.findLast((item) => 'role' in item && item.role === 'user')
      return last && 'content' in last ? textOf(last.content) : ''
    }
    case 'embeddings':
      return ''
  }
}

interface MayHaveText {
  readonly type: string
  readonly text?: unknown
}

function textOf(content: string | readonly MayHaveText[] | undefined): string {
  if (typeof content === 'string' || content === undefined) return content ?? ''
  return content.flatMap(({ text }) => (typeof text === 'string' ? [text] : [])).join(' ')
}
