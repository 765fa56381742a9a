import { DEFAULTS, type NodeCommandSpec } from '@airlock/contract'
import { FrameDecoder } from '@airlock/contract/guest'
import { createLog, newId, systemClock } from '@airlock/std'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createOciBackend } from '../../packages/data-plane/src/isolation/backends/oci/oci-backend.ts'
import { GuestLink } from '../../packages/data-plane/src/session/guest-link.ts'
import { openVault } from '../../packages/data-plane/src/session/testing/open-vault.ts'
import { UnixListener } from '../../packages/data-plane/src/session/unix-listener.ts'

const GUEST = fileURLToPath(new URL('../../packages/guest/dist/guest.cjs', import.meta.url))

/** Runs programs, one after another, in a sandbox of the real backend with the real guest, but without the checks of the data plane. */
export async function runBare(
  home: string,
  options: {
    readonly runtime: string
    readonly memoryBytes: number
    readonly programs: readonly string[][]
    readonly env: Record<string, string>
  },
): Promise<readonly string[]> {
  const log = createLog({ process: 'test', level: 'warn', write: (line) => void process.stderr.write(line) })
  const common = { log, failpoint: async () => {} }
  const places = { stateDir: join(home, 'state'), runtimeDir: join(home, 'run') }
  const backend = await createOciBackend({
    ...common,
    ...places,
    runtime: options.runtime,
    guestBundle: GUEST,
    node: process.execPath,
    diskReserveBytes: 0,
  })
  const id = newId('sbx')
  const controlDir = join(places.runtimeDir, id)
  await mkdir(controlDir, { recursive: true, mode: 0o711 })
  const spoolDir = join(places.stateDir, 'sandboxes', id, 'commands')
  const link = new GuestLink({
    ...common,
    sandbox: id,
    listener: new UnixListener(controlDir),
    spoolDir,
    vault: (await openVault(join(places.stateDir, 'vault'))).of('default'),
    clock: systemClock,
    onOverdue: () => {},
    usageOf: async () => null,
    strainOf: async () => null,
    isDiskFull: async () => false,
  })
  try {
    await link.listen()
    const limits = { ...LIMITS, memoryBytes: options.memoryBytes }
    const spec = { id, limits, image: 'host', tier: 'standard', controlDir, mounts: [], doors: [] } as const
    await backend.start(spec, AbortSignal.timeout(30_000))
    await link.waitForGuest(AbortSignal.timeout(30_000))
    const outputs: string[] = []
    for (const argv of options.programs)
      outputs.push(await outputOf(link, { ...COMMAND, id: newId('cmd'), argv, env: options.env }))
    return outputs
  } finally {
    await link.close()
    await backend.stop(id)
  }
}

const LIMITS = {
  cpus: 1,
  pids: DEFAULTS.pids.default,
  diskBytes: DEFAULTS.diskBytes.min * 4,
  inodes: DEFAULTS.inodes.min * 4,
  openFiles: DEFAULTS.openFiles.default,
  cpuSeconds: null,
} as const
const COMMAND = { cwd: '/workspace', stdin: 'none', timeoutMs: 60_000, maxOutputBytes: 1024 * 1024 } as const

async function outputOf(link: GuestLink, spec: NodeCommandSpec): Promise<string> {
  await link.commands.run(spec)
  const decoder = new FrameDecoder()
  let text = ''
  for await (const chunk of link.commands.output(spec.id, { from: 0 }))
    for (const frame of decoder.push(chunk)) if (frame.kind === 'data') text += frame.bytes.toString()
  return text
}
