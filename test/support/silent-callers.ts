import { connect, type Socket } from 'node:net'

/**
 * A process that holds connections to a server and shows no key, as `fork` starts it: the port, how many, what each says, and
 * the addresses that they come from. Says `{ opened }` once each was open, and when asked.
 */
const [, , port = '', count = '', text = '', addresses = ''] = process.argv
/** One that is cut off keeps its own half open for so long, as one that means harm would, and comes again. */
const AGAIN_MS = 6_000
/** Few enough at once that the queue of the kernel is not what is tested. */
const AT_ONCE = 200

const from = addresses.split(',')
let opened = 0
let isTold = false

for (let at = 0; at < Number(count); at++)
  setTimeout(() => hold(from[at % from.length] ?? '127.0.0.1'), Math.floor(at / AT_ONCE) * 100)

process.on('message', () => process.send?.({ opened }))
process.on('disconnect', () => process.exit())

function hold(localAddress: string): void {
  const socket: Socket = connect({ host: '127.0.0.1', port: Number(port), localAddress, allowHalfOpen: true })
  socket.once('connect', () => {
    opened += 1
    if (text !== '') socket.write(text)
    if (opened < Number(count) || isTold) return
    isTold = true
    process.send?.({ opened })
  })
  let isOver = false
  const comeAgain = (): void => {
    if (isOver) return
    isOver = true
    setTimeout(() => {
      socket.destroy()
      hold(localAddress)
    }, AGAIN_MS)
  }
  socket.on('end', comeAgain).on('error', comeAgain)
  socket.resume()
}
