import { AirlockError } from '@airlock/contract'
import { createServer, type AddressInfo } from 'node:net'
import type { Settings } from './config.ts'

/** Port 0 becomes a free one here, once, so that a restarted control plane answers where it answered before. */
export async function pinPort(settings: Settings): Promise<Settings> {
  if (settings.config.port !== 0) return settings
  return { ...settings, config: { ...settings.config, port: await freePort(settings.config.host) } }
}

/** Before any process is started: one that cannot listen says so later, and in the words of the kernel. */
export async function assertFreePort({ config: { host, port } }: Settings): Promise<void> {
  try {
    await listen(host, port)
  } catch (cause) {
    if (!(cause instanceof Error) || !('code' in cause) || cause.code !== 'EADDRINUSE')
      // Whatever else is wrong with the address, the process that listens says.
      return
    const hint = `Free it, or take another: AIRLOCK_PORT=${port < MOST ? port + 1 : port - 1} npm start`
    throw new AirlockError('config_invalid', `Port ${port} is in use.`, { cause, hint })
  }
}

const MOST = 65_535

async function freePort(host: string): Promise<number> {
  return listen(host, 0)
}

/** For a moment. Answers the port. */
async function listen(host: string, wanted: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen(wanted, host, () => {
      const { port } = probe.address() as AddressInfo
      probe.close(() => resolve(port))
    })
  })
}
