import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { AirlockError, type DoorConfig, type OpenDoors, openDoorsRequest, type UpstreamHealth } from '@airlock/contract'
import { readJson } from '@airlock/wire'
import type { Context } from '../app/context.ts'

/** Remembers which doors are open, and can be killed. It lets nobody in: that is for the real ones. */
export class ScriptedDoors implements Pick<Context['doors'], 'list' | 'open' | 'shut' | 'upstreams' | 'close'> {
  readonly calls: string[] = []
  readonly opened = new Set<string>()
  /** What each sandbox was opened with last. */
  readonly configs = new Map<string, readonly DoorConfig[]>()
  /** Those that were made without a place for doors. */
  readonly doorless = new Set<string>()
  isDead = false
  health: readonly UpstreamHealth[] = []
  #server: Server | undefined

  async list(): Promise<readonly OpenDoors[]> {
    this.#assertAlive()
    return [...this.opened].map((sandbox) => ({ sandbox, doors: [...(this.configs.get(sandbox) ?? [])] }))
  }

  async open(sandbox: string, configs: readonly DoorConfig[]): Promise<void> {
    this.#assertAlive()
    this.calls.push(`open ${sandbox}`)
    if (this.doorless.has(sandbox)) throw new AirlockError('sandbox_not_found')
    this.opened.add(sandbox)
    this.configs.set(sandbox, configs)
  }

  async shut(sandbox: string): Promise<void> {
    this.#assertAlive()
    this.calls.push(`shut ${sandbox}`)
    this.opened.delete(sandbox)
  }

  async upstreams(): Promise<readonly UpstreamHealth[]> {
    this.#assertAlive()
    return this.health
  }

  close(): void {}

  /** Also for a control plane that is a process of its own. */
  async listen(path: string): Promise<void> {
    const server = createServer((request, response) => void this.#answer(request, response))
    this.#server = server
    await new Promise<void>((resolve) => server.listen(path, resolve))
  }

  stop(): void {
    this.#server?.close()
    this.#server?.closeAllConnections()
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, url = '' } = request
    const sandbox = url.split('/')[2] ?? ''
    if (method === 'PUT') await this.open(sandbox, (await readJson(request, openDoorsRequest, 4096)).doors)
    if (method === 'DELETE') await this.shut(sandbox)
    response.end(JSON.stringify(method === 'GET' ? { sandboxes: await this.list() } : {}))
  }

  #assertAlive(): void {
    if (this.isDead) throw new AirlockError('door_unavailable')
  }
}
