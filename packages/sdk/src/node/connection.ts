import { AirlockError } from '../errors.ts'
import { type Connection, isCausedBy, isRefused } from '../transport/transport.ts'
import { type ClientConfig, type ConfigOptions, isOnThisMachine, resolveConfig } from './config.ts'
import { LOCAL_TREES } from './local-trees.ts'

/** A server, with an API key: as given, from the environment, or found beside a server of this machine. */
export function openConnection(options: ConfigOptions): Connection {
  return new KeyConnection(resolveConfig(options))
}

class KeyConnection implements Connection {
  readonly trees = LOCAL_TREES
  readonly #config: ClientConfig

  constructor(config: ClientConfig) {
    this.#config = config
  }

  get url(): string {
    return this.#config.url
  }

  credentials(): Readonly<Record<string, string>> {
    const { apiKey, noKey } = this.#config
    if (apiKey === undefined) throw new AirlockError('unauthenticated', 'There is no API key.', { hint: noKey })
    return { authorization: `Bearer ${apiKey}` }
  }

  /** A server does not know where a key is from, and we do. */
  explain(error: AirlockError): AirlockError {
    if (error.code !== 'unauthenticated') return error
    const { url, keyFrom } = this.#config
    const { requestId } = error
    return new AirlockError('unauthenticated', `${keyFrom} is no key of ${new URL(url).origin}.`, {
      hint: KEY_HINTS[keyFrom.startsWith('The key') ? 'file' : keyFrom === 'AIRLOCK_API_KEY' ? 'variable' : 'option'],
      ...(requestId === undefined ? {} : { requestId }),
    })
  }

  describeBroken(cause: unknown): { readonly message: string; readonly hint: string } {
    return describeBroken(new URL(this.#config.url), cause)
  }
}

const ASK_ADMIN = 'ask an admin for one: airlock keys create NAME --role developer'
const KEY_HINTS = {
  variable: `On the machine of the server, unset it; elsewhere, ${ASK_ADMIN}`,
  option: `Give another, or ${ASK_ADMIN}`,
  file: 'Another server listens there: set AIRLOCK_URL, or AIRLOCK_HOME to the directory of its state.',
}

/** An answer that is not TLS, or not HTTP. */
const NOT_TLS = /^(?:ERR_SSL_|EPROTO$)/
const NOT_HTTP = /^HPE_/
const UNTRUSTED = /^(?:CERT_|DEPTH_ZERO_|ERR_TLS_CERT|SELF_SIGNED_|UNABLE_TO_)/

function describeBroken(url: URL, cause: unknown): { readonly message: string; readonly hint: string } {
  if (isCausedBy(cause, UNTRUSTED))
    return {
      message: `The certificate of ${url.origin} is not trusted.`,
      hint: 'Set NODE_EXTRA_CA_CERTS to a PEM file with the authority that issued it.',
    }
  if (isCausedBy(cause, NOT_TLS))
    return {
      message: `The server at ${url.host} does not speak https.`,
      hint: `Set AIRLOCK_URL=http://${url.host}`,
    }
  if (isCausedBy(cause, NOT_HTTP))
    return { message: `What listens at ${url.host} does not speak http.`, hint: `Is it https? ${CHECK_URL}` }
  const hint = isOnThisMachine(url) ? 'Start one with "npm start".' : 'Check AIRLOCK_URL, and that the server runs.'
  if (isRefused(cause)) return { message: `No Airlock server answers at ${url.origin}.`, hint }
  return { message: `The connection to ${url.origin} broke.`, hint: `See that the server runs. ${CHECK_URL}` }
}

const CHECK_URL = 'Check AIRLOCK_URL: its port, and whether it is http or https.'
