import { randomBytes } from 'node:crypto'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'

/** What is planted on the host for attacks to find: two flags, a server, sockets, a process. */
export interface PlantedHost {
  /** Where the world-readable flag and a socket for everybody are, and where a weakened runtime may be put. */
  readonly directory: string
  /** What the programs are told about it. Nothing in it is a flag. */
  readonly env: Record<string, string>
  /** What must never be seen. */
  readonly flags: { readonly root: string; readonly world: string }
  close(): Promise<void>
}

export async function plantHost(): Promise<PlantedHost> {
  const directory = await mkdtemp(join(tmpdir(), 'al-attacks-'))
  await chmod(directory, 0o755)
  const mark = `airlock-flag-${randomBytes(6).toString('hex')}`
  const flags = {
    root: `${mark}-${randomBytes(9).toString('hex')}`,
    world: `${mark}-${randomBytes(9).toString('hex')}`,
  }
  const [rootFlag, worldFlag] = [`/root/${basename(directory)}`, join(directory, 'world')]
  await writeFile(rootFlag, flags.root, { mode: 0o600 })
  await writeFile(worldFlag, flags.world, { mode: 0o644 })
  await chmod(worldFlag, 0o644)
  const abstract = `al-${randomBytes(6).toString('hex')}`
  const socket = join(directory, 'everybody.sock')
  const tcp = await listen('127.0.0.1:0')
  const servers = [tcp, await listen(`\0${abstract}`), await listen(socket)]
  await chmod(socket, 0o666)
  return {
    directory,
    flags,
    env: {
      HOST_PORT: String((tcp.address() as AddressInfo).port),
      HOST_PID: String(process.pid),
      HOST_MARK: (await readFile('/proc/self/cmdline', 'utf8')).split('\0')[0] ?? '',
      HOST_ABSTRACT: abstract,
      HOST_SOCKET: socket,
      FLAG_ROOT: rootFlag,
      FLAG_WORLD: worldFlag,
      FLAG_MARK: mark,
    },
    close: async () => {
      for (const server of servers) server.close()
      await Promise.all([rm(rootFlag, { force: true }), rm(directory, { recursive: true, force: true })])
    },
  }
}

async function listen(at: string): Promise<Server> {
  const server = createServer((connection) => connection.end())
  await new Promise<void>((resolve) =>
    at === '127.0.0.1:0' ? server.listen(0, '127.0.0.1', resolve) : server.listen(at, resolve),
  )
  return server
}
