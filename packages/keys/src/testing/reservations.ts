import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import type { Reservation } from '@airlock/contract'
import { newId } from '@airlock/std'

/** A reservation that is good for half a minute, each with a call id of its own. */
export function aReservation(changes: Partial<Reservation> = {}): Reservation {
  return {
    callId: newId('cal'),
    node: 'here',
    life: 'a'.repeat(26),
    tenant: 'default',
    agent: 'alice',
    sandbox: 'sbx_0000000000aaaaaaaaaaaaaaaa',
    account: 'default/alice',
    upstream: 'main',
    route: 'chat',
    model: 'gpt-5',
    ceiling: 125_000,
    maxOutputTokens: 1000,
    identity: {
      run_id: 'sbx_0000000000aaaaaaaaaaaaaaaa',
      attempt: 0,
      graph_id: 'base',
      user_id: 'default/alice',
      existing_trace_id: 'trace-1',
      session_id: null,
      trace_user_id: null,
    },
    expiresAt: Date.now() + 30_000,
    ...changes,
  }
}

/** A control plane's pair of keys. */
export function signingKeys(): { readonly privateKey: KeyObject; readonly publicPem: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  return { privateKey, publicPem: String(publicKey.export({ type: 'spki', format: 'pem' })) }
}
