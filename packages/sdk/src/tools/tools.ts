import type { Tool, ToolInput } from '../nouns.ts'
import type { Transport } from '../transport/transport.ts'

/** Services that programs in sandboxes call by name. To describe one needs the key of an admin. */
export class Tools {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  async list(signal?: AbortSignal): Promise<readonly Tool[]> {
    return (await this.#transport.json('listTools', { signal })).items
  }

  async get(name: string, signal?: AbortSignal): Promise<Tool> {
    return this.#transport.json('getTool', { params: { name }, signal })
  }

  /** Takes the place of the description before. A sandbox may call it when a rule of the kind `tool` names it. */
  async put(name: string, tool: ToolInput, signal?: AbortSignal): Promise<Tool> {
    return this.#transport.json('putTool', { params: { name }, body: tool, signal })
  }

  async remove(name: string, signal?: AbortSignal): Promise<void> {
    await this.#transport.json('removeTool', { params: { name }, signal })
  }
}
