import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Failpoint } from '@airlock/contract'
import { dropPrivileges, type Log, systemClock } from '@airlock/std'
import type { RecorderConfig } from './config.ts'
import { openKeys } from './keys.ts'
import { Recorder } from './recorder.ts'
import { RecorderServer } from './server.ts'

/**
 * Root is needed for the public key and the sockets only: chains are read and written as the recorder's own user.
 * Connections made before the chains are open wait.
 */
export async function compose(
  config: RecorderConfig,
  host: { readonly log: Log; readonly failpoint: Failpoint },
): Promise<{ stop(): Promise<void> }> {
  process.umask(0o077)
  const chainsDir = join(config.stateDir, 'chains')
  const keys = asUser(config.drop, () => {
    mkdirSync(chainsDir, { recursive: true })
    return openKeys(join(config.stateDir, 'keys'))
  })
  const publicKey = join(config.publicDir, 'audit.pub')
  writeFileSync(publicKey, keys.publicPem)
  chmodSync(publicKey, 0o644)

  const { retention } = config
  const recorder = new Recorder({
    ...host,
    chainsDir,
    keys,
    retention,
    clock: systemClock,
    elapsed: () => performance.now(),
  })
  const { promise: ready, resolve: open } = Promise.withResolvers<void>()
  const servers = await Promise.all(
    config.sockets.map((socket) => RecorderServer.listen({ ...socket, recorder, ready, log: host.log })),
  )
  dropPrivileges(config.drop ?? undefined)
  await recorder.open()
  open()
  return {
    async stop() {
      for (const server of servers) server.stopListening()
      await recorder.close()
      for (const server of servers) server.close()
    },
  }
}

/** Our state is ours to change, so root must not touch it: it would follow a link that we could have planted. */
function asUser<T>(user: RecorderConfig['drop'], work: () => T): T {
  if (!user) return work()
  process.setegid?.(user.gid)
  process.seteuid?.(user.uid)
  try {
    return work()
  } finally {
    process.seteuid?.(0)
    process.setegid?.(0)
  }
}
