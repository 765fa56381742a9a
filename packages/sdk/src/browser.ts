import { AirlockClient } from './client.ts'
import { Transport } from './transport/transport.ts'

export type { AirlockClient, SandboxPage } from './client.ts'
export { outputBytes } from './command.ts'
export { AirlockError } from './errors.ts'
export type { Sandbox } from './sandbox.ts'
export type * from './nouns.ts'

/** Shows the server that a script of its own page asks: a page of somebody else cannot send it. */
export const PAGE_HEADER = 'airlock-page'

/** The server that this page is from, with the cookie of its sign-in. Nothing in here needs Node. */
export function connectPage(url: string): AirlockClient {
  const connection = {
    url,
    credentials: () => ({ [PAGE_HEADER]: '1' }),
    explain: <E>(error: E): E => error,
    describeBroken: () => ({
      message: 'The server does not answer.',
      hint: 'See that it runs; this page tries again by itself.',
    }),
  }
  return new AirlockClient(new Transport(connection))
}
