import { Airlock } from '@airlock/sdk'
import type { Reachable } from './server.ts'

/** For tests that do on purpose what the shipped rules hold up: the kernel is the boundary, and it is what they are about. */
export async function switchShippedRulesOff(server: Reachable): Promise<void> {
  const { guardian, policies } = new Airlock({ url: server.url, apiKey: server.adminKey })
  const shipped = (await guardian.rules()).filter(({ policy }) => policy === 'builtin')
  await policies.put({ name: 'tests', off: shipped.map(({ policy, rule }) => `${policy}/${rule}`), rules: [] })
}
