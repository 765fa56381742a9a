import { createSocket } from 'node:dgram'
import { once } from 'node:events'

/** A DNS server on loopback that counts its questions. */
export interface DnsServer {
  /** `ip:port` */
  readonly address: string
  /** As `A example.com`, in the order in which they came. */
  readonly questions: readonly string[]
  /** What names lead to; a name that is absent does not exist, and `silent` gets no answer. */
  readonly names: Map<string, readonly string[] | 'silent'>
  close(): void
}

const TYPES: Readonly<Record<number, string>> = { 1: 'A', 28: 'AAAA' }

export async function startDns(host = '127.0.0.1'): Promise<DnsServer> {
  const socket = createSocket('udp4')
  const questions: string[] = []
  const names = new Map<string, readonly string[] | 'silent'>()
  socket.on('message', (query, from) => {
    const { name, type, end } = readQuestion(query)
    questions.push(`${TYPES[type] ?? type} ${name}`)
    const known = names.get(name)
    if (known !== 'silent') socket.send(answerTo(query.subarray(0, end), type, known), from.port, from.address)
  })
  socket.bind(0, host)
  await once(socket, 'listening')
  return { address: `${host}:${socket.address().port}`, questions, names, close: () => socket.close() }
}

function readQuestion(query: Buffer): { readonly name: string; readonly type: number; readonly end: number } {
  const labels: string[] = []
  let at = 12
  for (let size = query[at] ?? 0; size > 0; size = query[at] ?? 0) {
    labels.push(query.subarray(at + 1, at + 1 + size).toString('latin1'))
    at += 1 + size
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 }
}

function answerTo(question: Buffer, type: number, addresses: readonly string[] | undefined): Buffer {
  const isKind = (address: string) => address.includes(':') === (type === 28)
  const records = (addresses ?? []).filter(isKind).map((address) => recordOf(type, address))
  const head = Buffer.from(question)
  head.writeUInt16BE(addresses === undefined ? 0x81_83 : 0x81_80, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(records.length, 6)
  head.writeUInt16BE(0, 8)
  head.writeUInt16BE(0, 10)
  return Buffer.concat([head, ...records])
}

function recordOf(type: number, address: string): Buffer {
  const bytes = type === 28 ? ipv6Bytes(address) : Buffer.from(address.split('.').map(Number))
  const head = Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 1, 0, bytes.length])
  return Buffer.concat([head, bytes])
}

function ipv6Bytes(address: string): Buffer {
  const [left = '', right = ''] = address.split('::')
  const parts = (text: string) => (text === '' ? [] : text.split(':').map((part) => Number.parseInt(part, 16)))
  const [head, tail] = [parts(left), parts(right)]
  const all = [...head, ...Array.from({ length: 8 - head.length - tail.length }, () => 0), ...tail]
  return Buffer.from(all.flatMap((part) => [part >> 8, part & 255]))
}
