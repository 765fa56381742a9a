import { createPublicKey } from 'node:crypto'
import { closeSync, openSync, renameSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { KEYS_LIFE_FILE, rawPublicKey, SEAL_KEY_FILE } from '@airlock/contract'
import { dropPrivileges, type Log, NodeClock, randomText } from '@airlock/std'
import { Calls } from './calls.ts'
import type { KeysConfig } from './config.ts'
import { ReservationDesk } from './reservations.ts'
import { openSealKey } from './secret/seal-key.ts'
import { throwOnReadable } from './secret/unreadable.ts'
import { listen } from './server.ts'
import { Tools } from './tools/tools.ts'
import { Upstream } from './upstream/upstream.ts'

const LIFE_CHARACTERS = 26

/**
 * The only file that names adapters. Root is needed for the public files and the socket alone: keys are read after it is given
 * up.
 */
export async function compose(config: KeysConfig, log: Log): Promise<{ stop(): Promise<void> }> {
  const { publicDir, socket, socketUid } = config
  const life = randomText(LIFE_CHARACTERS)
  const reservations = new ReservationDesk({ publicDir, life, clock: new NodeClock(publicDir) })
  const upstreams = new Map(Object.entries(config.upstreams).map(([name, one]) => [name, upstreamOf(name, one, log)]))
  const tools = new Tools({ orders: reservations, listed: config.listed, log })
  const calls = new Calls({ reservations, upstreams })
  const listener = await listen({ calls, tools, upstreams, socket, socketUid, log })
  const sealKeyFile = openSync(join(publicDir, SEAL_KEY_FILE), 'w', 0o644)
  publish(join(publicDir, KEYS_LIFE_FILE), life)
  dropPrivileges(config.drop ?? undefined)
  if (config.drop) throwOnReadable()
  const privateKey = await openSealKey(config.sealKeyFile)
  tools.begin(privateKey)
  writeSync(sealKeyFile, rawPublicKey(createPublicKey(privateKey)))
  closeSync(sealKeyFile)
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
function publish(path: string, text: string): void {
  writeFileSync(`${path}.new`, text, { mode: 0o644 })
  renameSync(`${path}.new`, path)
}
