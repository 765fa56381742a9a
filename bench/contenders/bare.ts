import { type Contender, coldThrough, ECHO, type Place, throwOnWrong } from './contender.ts'
import { runProgram } from './program.ts'

const NAME = 'bare process'

/** No wall at all: what the machine needs for a process and its output. */
export function bareProcess(): Contender {
  const open = async (): Promise<Place> => ({
    run: async () => throwOnWrong(await runProgram(ECHO.argv[0], ECHO.argv.slice(1)), NAME),
    pids: async () => [],
    close: async () => {},
  })
  return { name: NAME, about: 'spawn', open, cold: async () => coldThrough(open), close: async () => {} }
}
