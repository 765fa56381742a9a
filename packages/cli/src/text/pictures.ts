import { AirlockError, type RichOutput } from '@airlock/sdk'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const MOST = 10_000

/** Pictures of a sandbox become files here, under the next name that is free: nothing is ever overwritten. */
export class Pictures {
  readonly #directory: string
  #next = 1

  constructor(directory: string) {
    this.#directory = directory
  }

  /** Answers the name of the file; undefined when it is no picture. */
  async save(output: RichOutput): Promise<string | undefined> {
    const picture = pictureOf(output)
    if (!picture) return undefined
    while (this.#next <= MOST) {
      const name = `plot-${this.#next++}.${picture.extension}`
      if (await writeNew(join(this.#directory, name), picture.content)) return name
    }
    throw new AirlockError('invalid_request', 'There are too many pictures here.', { hint: 'Remove some of them.' })
  }
}

interface Picture {
  readonly extension: 'png' | 'jpg' | 'svg'
  readonly content: Uint8Array | string
}

function pictureOf(output: RichOutput): Picture | undefined {
  if (output.png) return { extension: 'png', content: output.png }
  if (output.jpeg) return { extension: 'jpg', content: output.jpeg }
  return output.svg === undefined ? undefined : { extension: 'svg', content: output.svg }
}

/** False when there is something of that name, be it only a link that leads nowhere. */
async function writeNew(path: string, content: Uint8Array | string): Promise<boolean> {
  try {
    await writeFile(path, content, { flag: 'wx' })
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  }
}
