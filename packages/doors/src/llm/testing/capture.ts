import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'

/** A request as an SDK made it. */
export interface Captured {
  readonly method: string
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

type Call<Client> = (client: Client) => PromiseLike<unknown>

/** What the unmodified client sends, with the variables that a sandbox has and nothing else. The answer is an error. */
export async function captureOpenAI(call: Call<OpenAI>): Promise<Captured> {
  return capture(async (fetch) =>
    call(new OpenAI({ apiKey: 'placeholder', baseURL: 'http://127.0.0.1:47080/v1', maxRetries: 0, fetch })),
  )
}

export async function captureAnthropic(call: Call<Anthropic>): Promise<Captured> {
  return capture(async (fetch) =>
    call(new Anthropic({ apiKey: 'placeholder', baseURL: 'http://127.0.0.1:47080', maxRetries: 0, fetch })),
  )
}

async function capture(ask: (fetch: typeof globalThis.fetch) => PromiseLike<unknown>): Promise<Captured> {
  const sent: Captured[] = []
  try {
    await ask(async (input, init) => {
      const request = new Request(input, init)
      const { pathname, search } = new URL(request.url)
      const headers = Object.fromEntries(request.headers)
      sent.push({ method: request.method, target: pathname + search, headers, body: await request.text() })
      return Response.json({ error: { message: 'captured' } }, { status: 418 })
    })
  } catch (error) {
    // The status that ends each capture; anything else is a call that the SDK refuses to make.
    if (!(error instanceof Error) || !error.message.includes('captured')) throw error
  }
  const [first, ...others] = sent
  if (!first || others.length > 0) throw new TypeError(`the client sent ${sent.length} requests`)
  return first
}
