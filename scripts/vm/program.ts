import { spawn } from 'node:child_process'

const TAIL_CHARS = 4_000

/** Runs a program to its end and throws, with the last it said, when it fails or takes too long. */
export async function runProgram(
  [program = '', ...args]: readonly string[],
  options: { readonly limitMs: number; readonly cwd?: string },
): Promise<void> {
  const child = spawn(program, args, {
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: options.limitMs,
    killSignal: 'SIGKILL',
    env: { ...process.env, LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive' },
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (said = (said + chunk.toString()).slice(-TAIL_CHARS)))
  const how = await new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('close', (code, signal) => resolve(signal ?? `exit code ${code}`))
  })
  if (how !== 'exit code 0') throw new TypeError(`${program} ${args.join(' ')} failed (${how}):\n${said}`)
}
