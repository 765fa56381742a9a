import type { Log } from '@airlock/std'
import { listenForConnections, type PrivateListener } from '@airlock/wire'
import type { DoorCalls } from '../doors/door-calls.ts'
import type { DoorNews } from '../doors/door-news.ts'
import { DoorsLine } from './doors-line.ts'

interface DoorsServerOptions {
  readonly calls: Pick<DoorCalls, 'answer' | 'greeted' | 'lost'>
  readonly news: DoorNews
  readonly path: string
  /** Who may open the socket besides us. */
  readonly uid: number
  readonly log: Log
}

/** The doors keep one; while they start anew there may be two for a moment. */
const MAX_CONNECTIONS = 8

/**
 * Hears the doors process, on a socket that nobody else can open: which sandbox a call is from, it says, and only it. What
 * changes is pushed to it. Precondition: root, for the socket changes hands.
 */
export async function listenToDoors({ calls, news, path, uid, log }: DoorsServerOptions): Promise<PrivateListener> {
  const lines = new Set<DoorsLine>()
  const options = {
    calls,
    log,
    onClose: (line: DoorsLine) => void lines.delete(line),
  }
  const listener = await listenForConnections(
    { unix: path, uid },
    {
      maxConnections: MAX_CONNECTIONS,
      onConnection: (socket) => void lines.add(new DoorsLine(socket, options)),
    },
  )
  news.subscribe((change) => {
    for (const line of lines) line.push(change)
  })
  return listener
}
