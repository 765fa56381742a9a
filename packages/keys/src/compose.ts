import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { KEYS_LIFE_FILE } from '@airlock/contract'
import { dropPrivileges, type Log, NodeClock, randomText } from '@airlock/std'
import { Calls } from './calls.ts'
import type { KeysConfig } from './config.ts'
import { ReservationDesk } from './reservations.ts'
import { throwOnReadable } from './secret/unreadable.ts'
import { listen } from './server.ts'
import { Upstream } from './upstream/upstream.ts'

const LIFE_CHARACTERS = 26

/**
 * The only file that names adapters. Root is needed for the life file and the socket alone: keys are read after it is given
 * up.
 */
export async function compose(config: KeysConfig, log: Log): Promise<{ stop(): Promise<void> }> {
  const { publicDir, socket, socketUid } = config
  const life = randomText(LIFE_CHARACTERS)
  const reservations = new ReservationDesk({ publicDir, life, clock: new NodeClock(publicDir) })
  const upstreams = new Map(Object.entries(config.upstreams).map(([name, one]) => [name, upstreamOf(name, one, log)]))
  const listener = await listen({ calls: new Calls({ reservations, upstreams }), upstreams, socket, socketUid, log })
  tellLife(join(publicDir, KEYS_LIFE_FILE), life)
  dropPrivileges(config.drop ?? undefined)
  if (config.drop) throwOnReadable()
  for (const { health } of upstreams.values())
    if (health.key === 'absent' || health.key === 'malformed')
      log.warn(`upstream ${health.name} has no usable key: write it to its key_file on one line`, { key: health.key })
  return {
    async stop() {
      listener.close()
      await Promise.all([...upstreams.values()].map(async (upstream) => upstream.close()))
    },
  }
}

function upstreamOf(name: string, settings: KeysConfig['upstreams'][string], log: Log): Upstream {
  const { models, maxConcurrent, ...rest } = settings
  return new Upstream({ ...rest, name, models: new Set(models), connections: maxConcurrent, log })
}

/** Whole or not at all: the control plane may be reading it. */
function tellLife(path: string, life: string): void {
  writeFileSync(`${path}.new`, life, { mode: 0o644 })
  renameSync(`${path}.new`, path)
}
