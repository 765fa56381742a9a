import { writeSync } from 'node:fs'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'

// Runs inside a sandbox, bundled. The clients are as npm has them and read their settings from the environment alone.

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const openai = new OpenAI({ maxRetries: 0 })
const anthropic = new Anthropic({ maxRetries: 0 })
const model = process.argv[3] ?? ''
const messages = [{ role: 'user' as const, content: 'Say hello.' }]

const asks: Readonly<Record<string, () => Promise<unknown>>> = {
  chat: async () => (await openai.chat.completions.create({ model, messages })).choices[0]?.message,
  chatStream: async () => {
    const stream = await openai.chat.completions.create({ model, messages, stream: true })
    return collect(stream, ({ choices: [first] }) => first?.delta.content ?? null)
  },
  chatTools: async () =>
    (
      await openai.chat.completions.create({
        model,
        messages: [
          ...messages,
          {
            role: 'user',
            content: [
              { type: 'text', text: 'And this?' },
              { type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}` } },
            ],
          },
        ],
        tools: [{ type: 'function', function: { name: 'add', parameters: { type: 'object' } } }],
      })
    ).choices[0]?.message.tool_calls,
  responses: async () => (await openai.responses.create({ model, input: 'Say hello.' })).output_text,
  responsesStream: async () => {
    const stream = await openai.responses.create({ model, input: 'Say hello.', stream: true })
    return collect(stream, ({ type }) => type)
  },
  embeddings: async () => (await openai.embeddings.create({ model, input: 'hello' })).data[0]?.embedding.length,
  models: async () => collect(openai.models.list(), ({ id }) => id),
  messages: async () => (await anthropic.messages.create({ model, max_tokens: 100, messages })).content,
  messagesStream: async () => {
    const stream = anthropic.messages.stream({ model, max_tokens: 100, messages })
    return (await stream.finalMessage()).content
  },
  countTokens: async () => (await anthropic.messages.countTokens({ model, messages })).input_tokens,
  anthropicModels: async () => collect(anthropic.models.list(), ({ id }) => id),
  /** Leaves in the middle of a stream. */
  leave: async () => {
    const stream = await openai.chat.completions.create({ model, messages, stream: true })
    for await (const _chunk of stream) return 'left'
    return 'ended'
  },
}

/** `Array.fromAsync` is younger than the Node of some sandboxes. */
async function collect<T, R>(items: AsyncIterable<T>, read: (item: T) => R): Promise<R[]> {
  const found: R[] = []
  for await (const item of items) found.push(read(item))
  return found
}

/** An error as a program sees it. */
function shown(error: unknown): unknown {
  if (!(error instanceof Error)) return String(error)
  const { status, code } = error as { readonly status?: unknown; readonly code?: unknown }
  return { error: error.constructor.name, status, code, message: error.message }
}

const answers = []
for (const name of (process.argv[2] ?? '').split(',')) {
  const ask = asks[name]
  answers.push(ask ? await ask().catch(shown) : 'no such ask')
}
writeSync(1, JSON.stringify(answers))
process.exit(0)
