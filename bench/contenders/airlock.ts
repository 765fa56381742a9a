import { processesOf } from '../../test/support/leftovers.ts'
import type { BenchServer } from '../server.ts'
import { type Contender, coldThrough, ECHO, type Place, throwOnWrong } from './contender.ts'

const NAME = 'Airlock'

/** Through the public API, by the SDK. */
export function airlock(server: BenchServer): Contender {
  const open = async (): Promise<Place> => {
    const sandbox = await server.client.sandboxes.create()
    return {
      run: async () => throwOnWrong((await sandbox.run(ECHO.argv)).stdout, NAME),
      pids: async () => processesOf(server.home, sandbox.id),
      freezer: {
        pause: async () => void (await sandbox.pause()),
        resume: async () => void (await sandbox.resume()),
      },
      close: async () => void (await sandbox.terminate()),
    }
  }
  return { name: NAME, about: '', open, canPause: true, cold: async () => coldThrough(open), close: async () => {} }
}
