import { expect, it } from 'vitest'
import { installService, uninstallService, type ServiceIo } from './install.ts'

/** The real thing is tried in the machine of `npm run test:long -- vm`. */
function someone(env: ServiceIo['env'] = {}): { io: ServiceIo; said: string[] } {
  const said: string[] = []
  return { said, io: { env, uid: 1000, out: (text) => said.push(text), err: (text) => said.push(text) } }
}

it('changes nothing for somebody who is not root or where there is no systemd, and says why', async () => {
  const { io, said } = someone()
  expect(await installService({ program: '/srv/airlock.js', dryRun: false }, io)).toBe(1)
  expect(await uninstallService(io)).toBe(1)
  for (const sentence of said)
    expect(sentence).toMatch(/^(?:This machine does not run systemd: .*|Only root may change .*: use sudo\.)$/u)
})

it('prints the units to whoever asks, with the settings that say where all others are', async () => {
  const { io, said } = someone({ AIRLOCK_HOME: '/srv/state', AIRLOCK_PORT: '8000' })
  expect(await installService({ program: '/srv/airlock.js', dryRun: true }, io)).toBe(0)
  expect(said.join('')).toContain('# /etc/systemd/system/airlock.service\n')
  expect(said.join('')).toContain('\nEnvironment=AIRLOCK_HOME=/srv/state\n')
  expect(said.join('')).toContain(`\nExecStart=${process.execPath} /srv/airlock.js serve --json\n`)
  expect(said.join('')).not.toContain('8000')
})
