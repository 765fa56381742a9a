import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { sleep } from '@airlock/std'
import { type Contender, coldThrough, ECHO, type Place, throwOnWrong } from './contender.ts'
import { DockerApi } from './docker-api.ts'
import { findProgram } from './program.ts'

const NAME = 'Docker'
const SYSTEM_SOCKET = '/var/run/docker.sock'
const IMAGE = 'airlock-bench'
const READY_TRIES = 300
const READY_EVERY_MS = 100
const PAUSE_TRIES = 1000

/** Docker over the socket of its Engine: create, start, exec, remove. Its daemon is started here when none runs. */
export async function docker(plan: { rootfs: string; scratch: string }): Promise<Contender | string> {
  const isRunning = existsSync(SYSTEM_SOCKET) && (await answers(SYSTEM_SOCKET))
  const path = findProgram('dockerd')
  if (!isRunning && path === undefined) return 'neither is a daemon running nor is dockerd installed'
  const daemon = isRunning || path === undefined ? undefined : await startDaemon(path, plan.scratch)
  const api = new DockerApi(daemon?.socket ?? SYSTEM_SOCKET)
  const close = async () => {
    await api.removeImage(IMAGE)
    api.close()
    await daemon?.stop()
  }
  try {
    await importRootfs(api, plan.rootfs)
    const open = async () => openPlace(api)
    const about = `${await api.version()}, create, start, exec by its API`
    return { name: NAME, about, open, canPause: true, cold: async () => coldThrough(open), close }
  } catch (error) {
    await close()
    return error instanceof Error ? error.message : String(error)
  }
}

async function openPlace(api: DockerApi): Promise<Place> {
  const id = await api.create({ Image: IMAGE, Cmd: ['/bin/sleep', '1000'], HostConfig: { NetworkMode: 'none' } })
  await api.start(id)
  return {
    run: async () => throwOnWrong(await api.exec(id, ECHO.argv), NAME),
    pids: async () => withParent(await api.pid(id)),
    freezer: {
      pause: async () => untilTaken(async () => api.pause(id), 'is already paused'),
      resume: async () => untilTaken(async () => api.unpause(id), 'is not paused'),
    },
    close: async () => api.remove(id),
  }
}

/** Its daemon answers a pause before it knows that the container is paused; a user would have to ask again as well. */
async function untilTaken(ask: () => Promise<void>, notYet: string): Promise<void> {
  for (let tried = 0; ; tried++)
    try {
      return await ask()
    } catch (error) {
      if (tried === PAUSE_TRIES || !String(error).includes(notYet)) throw error
      await sleep(1)
    }
}

/** Each container has a shim of its own. */
function withParent(pid: number): readonly number[] {
  const parent = Number(/^PPid:\s*(\d+)/mu.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0)
  return [pid, parent].filter((each) => each > 1)
}

async function importRootfs(api: DockerApi, rootfs: string): Promise<void> {
  const tar = spawn('tar', ['-C', rootfs, '-c', '.'], { stdio: ['ignore', 'pipe', 'inherit'] })
  await api.importImage(IMAGE, tar.stdout)
}

async function startDaemon(path: string, scratch: string): Promise<{ socket: string; stop(): Promise<void> }> {
  const socket = join(scratch, 'docker.sock')
  const places = { 'data-root': 'docker-data', 'exec-root': 'docker-exec', pidfile: 'docker.pid' }
  const options = Object.entries(places).map(([option, name]) => `--${option}=${join(scratch, name)}`)
  const network = ['--bridge=none', '--iptables=false', '--ip6tables=false', '--ip-forward=false', '--ip-masq=false']
  const child = spawn(path, [`--host=unix://${socket}`, ...options, ...network, '--log-level=error'], {
    stdio: 'ignore',
  })
  const exited = once(child, 'exit')
  for (let tried = 0; !(await answers(socket)); tried++) {
    if (tried === READY_TRIES || !isAlive(child)) throw new TypeError('dockerd did not start.')
    await sleep(READY_EVERY_MS)
  }
  return {
    socket,
    stop: async () => {
      child.kill('SIGTERM')
      await exited
    },
  }
}

async function answers(socket: string): Promise<boolean> {
  const api = new DockerApi(socket)
  return api.version().then(
    () => true,
    () => false,
  )
}

function isAlive(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null
}
