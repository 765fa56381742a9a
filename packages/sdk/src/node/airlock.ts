import { AirlockClient } from '../client.ts'
import { Transport, type TransportOptions } from '../transport/transport.ts'
import type { ConfigOptions } from './config.ts'
import { openConnection } from './connection.ts'
import { LocalSecrets } from './secrets.ts'
import { LocalTemplates } from './templates.ts'

export interface AirlockOptions extends ConfigOptions, TransportOptions {}

/**
 * An Airlock server. Without options it is the one on this machine: AIRLOCK_URL and AIRLOCK_API_KEY, else
 * 127.0.0.1:7070 and the key that the server left beside its state.
 */
export class Airlock extends AirlockClient {
  override readonly templates: LocalTemplates
  override readonly secrets: LocalSecrets

  constructor(options: AirlockOptions = {}) {
    const transport = new Transport(openConnection(options), options)
    super(transport)
    this.templates = new LocalTemplates(transport)
    this.secrets = new LocalSecrets(transport)
  }
}
