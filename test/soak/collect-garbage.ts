import { deadline, sleep, waitFor } from '@airlock/std'

/** Where a Node that gets SIGUSR1 listens for a debugger: one at a time. */
const DEBUGGER = 'http://127.0.0.1:9229/json/list'
const WITHIN_MS = 30_000
/** A debugger that goes and another that comes in the same moment are more than some versions of Node can take. */
const APART_MS = 300
const SHUT = `void setTimeout(() => process.getBuiltinModule('inspector').close(), ${APART_MS})`

/**
 * Has a process collect its garbage, which it otherwise does when it likes: only then can its memory be compared. Answers
 * the bytes of its heap that are in use after that. Others that listen for a debugger are waited for.
 */
export async function collectGarbage(pid: number): Promise<number> {
  const until = { signal: deadline(WITHIN_MS), everyMs: APART_MS }
  await waitFor(isNobody, until)
  process.kill(pid, 'SIGUSR1')
  const url = await waitFor(async () => (await listTargets())[0]?.webSocketDebuggerUrl, until)
  const ask = await connect(url)
  try {
    const found = Number(await ask('Runtime.evaluate', { expression: 'process.pid' }))
    if (found !== pid) throw new TypeError(`Process ${found} has the port of the debugger, not ${pid}.`)
    await ask('HeapProfiler.collectGarbage', {})
    const bytes = Number(await ask('Runtime.evaluate', { expression: 'process.memoryUsage().heapUsed' }))
    await ask('Runtime.evaluate', { expression: SHUT })
    return bytes
  } finally {
    await ask.close()
    await sleep(2 * APART_MS)
  }
}

async function isNobody(): Promise<true | undefined> {
  return (await listTargets()).length === 0 ? true : undefined
}

async function listTargets(): Promise<readonly { readonly webSocketDebuggerUrl?: string }[]> {
  try {
    const answer: unknown = await (await fetch(DEBUGGER, { signal: AbortSignal.timeout(2_000) })).json()
    return Array.isArray(answer) ? (answer as { readonly webSocketDebuggerUrl?: string }[]) : []
  } catch {
    // Nobody listens.
    return []
  }
}

interface Ask {
  (method: string, params: object): Promise<unknown>
  close(): Promise<void>
}

async function connect(url: string): Promise<Ask> {
  const socket = new WebSocket(url)
  const closed = new Promise<void>((resolve) => socket.addEventListener('close', () => resolve()))
  await Promise.race([new Promise((resolve) => socket.addEventListener('open', resolve)), closed])
  let id = 0
  const ask = async (method: string, params: object): Promise<unknown> => {
    const mine = ++id
    const answer = new Promise<unknown>((resolve) =>
      socket.addEventListener('message', ({ data }) => {
        const told = JSON.parse(String(data)) as { id?: number; result?: { result?: { value?: unknown } } }
        if (told.id === mine) resolve(told.result?.result?.value)
      }),
    )
    socket.send(JSON.stringify({ id: mine, method, params }))
    return Promise.race([answer, closed])
  }
  const close = async () => {
    socket.close()
    await closed
  }
  return Object.assign(ask, { close })
}
