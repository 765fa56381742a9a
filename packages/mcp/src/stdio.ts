import { deadline } from '@airlock/std'
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio'
import { createServer, type McpOptions, type RunningCall } from './server.ts'

/** What is still running when the client goes gets this long to be stopped. */
const END_MS = 20_000

/** Serves on stdin and stdout until the client closes them or `signal` aborts, and whatever was called has ended. */
export async function serveOnStdio(options: McpOptions & { readonly signal: AbortSignal }): Promise<void> {
  const calls = new Set<Promise<unknown>>()
  const onCall = ({ ended }: RunningCall): void => {
    calls.add(ended)
    const forget = (): void => void calls.delete(ended)
    void ended.then(forget, forget)
  }
  const gone = new AbortController()
  const signal = AbortSignal.any([options.signal, gone.signal])
  const handle = serveStdio(() => createServer({ ...options, signal, onCall }), {
    transport: new StdioServerTransport(),
    onerror: options.onFault,
  })
  process.stdin.once('close', () => gone.abort()).once('end', () => gone.abort())
  await aborted(signal)
  await Promise.race([Promise.allSettled(calls), aborted(deadline(END_MS))])
  await handle.close()
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  await new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
