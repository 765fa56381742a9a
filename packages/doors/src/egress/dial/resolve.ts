import { Resolver } from 'node:dns'
import { AirlockError } from '@airlock/contract'

interface ResolveOptions {
  /** `ip:port` of DNS servers; empty takes those of the host. */
  readonly servers: readonly string[]
  /** Lookups of one sandbox at once. */
  readonly atOnce: number
  readonly timeoutMs: number
}

/** Errors by which a DNS server says that a name has no such address. */
const ABSENT: ReadonlySet<string> = new Set(['ENODATA', 'ENOTFOUND'])

/**
 * Resolves names for one sandbox: one A and one AAAA question for the exact name, never a search list, a hosts file or a cache.
 * It has sockets of its own, so questions of other sandboxes do not wait for it.
 */
export class Names {
  readonly #resolver: Resolver
  readonly #atOnce: number
  #underWay = 0

  constructor({ servers, atOnce, timeoutMs }: ResolveOptions) {
    this.#atOnce = atOnce
    this.#resolver = new Resolver({ timeout: timeoutMs, tries: 1 })
    if (servers.length > 0) this.#resolver.setServers(servers)
  }

  /** Its addresses, IPv4 first. Throws `host_unreachable`. */
  async resolve(name: string): Promise<readonly string[]> {
    if (this.#underWay >= this.#atOnce) throw new AirlockError('too_many_requests')
    this.#underWay += 1
    try {
      const answers = await Promise.allSettled([this.#ask('resolve4', name), this.#ask('resolve6', name)])
      const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
      if (addresses.length > 0) return addresses
      throw unresolved(name, answers.find((answer) => answer.status === 'rejected')?.reason)
    } finally {
      this.#underWay -= 1
    }
  }

  /** Ends what is under way. */
  close(): void {
    this.#resolver.cancel()
  }

  async #ask(question: 'resolve4' | 'resolve6', name: string): Promise<readonly string[]> {
    return new Promise((resolve, reject) => {
      this.#resolver[question](name, (error, addresses) => {
        if (!error) resolve(addresses)
        else if (ABSENT.has(error.code ?? '')) resolve([])
        else reject(error)
      })
    })
  }
}

function unresolved(name: string, cause: unknown): AirlockError {
  const why = cause === undefined ? 'has no address' : 'could not be resolved'
  return new AirlockError('host_unreachable', `${name} ${why}.`, { cause })
}
