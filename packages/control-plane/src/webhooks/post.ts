import { untilAborted } from '@airlock/std'
import { AirlockError } from '@airlock/contract'
import { createHmac } from 'node:crypto'
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { isIP } from 'node:net'
import { hostOf, webhookAddress } from './address.ts'

export interface Delivery {
  readonly url: string
  readonly secret: string
  /** In epoch seconds: it is signed along, so that an old delivery is known as one. */
  readonly at: number
  readonly body: string
}

export interface PostOptions {
  readonly allowsPrivate: boolean
  readonly signal: AbortSignal
}

/**
 * One try. Resolves when the receiver took it, with any 2xx. The name is resolved once and its address is what is connected to; a
 * redirect is a refusal; what is answered is not read.
 */
export async function postWebhook(delivery: Delivery, options: PostOptions): Promise<void> {
  const url = new URL(delivery.url)
  const address = await untilAborted(webhookAddress(url, options.allowsPrivate), options.signal).catch(
    (error: unknown) => {
      throw options.signal.aborted ? tooSlow(error) : error
    },
  )
  const status = await send(url, address, { delivery, signal: options.signal })
  if (status < 200 || status > 299) throw new AirlockError('server_unreachable', `It answered ${status}.`)
}

/** `t=<seconds>,v1=<HMAC-SHA256 of "seconds.body" with the secret, in hex>`. */
function signatureOf({ secret, at, body }: Delivery): string {
  return `t=${at},v1=${createHmac('sha256', secret).update(`${at}.${body}`).digest('hex')}`
}

async function send(
  url: URL,
  address: string,
  { delivery, signal }: { readonly delivery: Delivery; readonly signal: AbortSignal },
): Promise<number> {
  const isTls = url.protocol === 'https:'
  const options = {
    method: 'POST',
    host: address,
    port: url.port === '' ? (isTls ? 443 : 80) : Number(url.port),
    path: `${url.pathname}${url.search}`,
    headers: headersOf(url, delivery),
    agent: false,
    signal,
    // The certificate is for the name, not for the address; an address has no name.
    ...(isTls && isIP(hostOf(url)) === 0 ? { servername: url.hostname } : {}),
  } as const
  return new Promise<number>((resolve, reject) => {
    const request = (isTls ? requestHttps : requestHttp)(options, (response) => {
      response.on('error', () => undefined)
      resolve(response.statusCode ?? 0)
      request.destroy()
    })
    request.on('error', (error) => reject(signal.aborted ? tooSlow(error) : broken(error)))
    request.end(delivery.body)
  })
}

function headersOf(url: URL, delivery: Delivery): Readonly<Record<string, string | number>> {
  return {
    host: url.host,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(delivery.body),
    'user-agent': 'airlock-webhook',
    'airlock-signature': signatureOf(delivery),
  }
}

function tooSlow(cause: unknown): AirlockError {
  return new AirlockError('timeout', 'It did not answer in time.', { cause })
}

/** Only the code: what a receiver or a resolver says is not shown to whoever made the webhook. */
function broken(error: Error): AirlockError {
  const code = 'code' in error && typeof error.code === 'string' ? ` (${error.code})` : ''
  return new AirlockError('server_unreachable', `The connection failed${code}.`, { cause: error })
}
