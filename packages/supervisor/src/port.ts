import { createServer, type AddressInfo } from 'node:net'
import type { Settings } from './config.ts'

/** Port 0 becomes a free one here, once, so that a restarted control plane answers where it answered before. */
export async function pinPort(settings: Settings): Promise<Settings> {
  if (settings.config.port !== 0) return settings
  return { ...settings, config: { ...settings.config, port: await freePort(settings.config.host) } }
}

async function freePort(host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen(0, host, () => {
      const { port } = probe.address() as AddressInfo
      probe.close(() => resolve(port))
    })
  })
}
