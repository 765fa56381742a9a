/** A ClientHello, written by hand: with whatever a test wants in it. */
interface HelloParts {
  readonly names?: readonly string[]
  /** Type and body of other extensions. */
  readonly extensions?: readonly (readonly [number, Buffer])[]
  /** Bytes behind the message, in the same record. */
  readonly surplus?: Buffer
  /** Longest fragment of a record. */
  readonly recordBytes?: number
}

export function clientHello({
  names = ['example.com'],
  extensions = [],
  surplus,
  recordBytes = 16_384,
}: HelloParts = {}): Buffer {
  const list = Buffer.concat(
    names.map((name) => Buffer.concat([Buffer.from([0]), vector(2, Buffer.from(name, 'latin1'))])),
  )
  const all = [...(names.length > 0 ? [[0, vector(2, list)] as const] : []), ...extensions]
  const block = Buffer.concat(all.map(([type, body]) => Buffer.concat([uint(2, type), vector(2, body)])))
  const body = Buffer.concat([
    Buffer.from([3, 3]),
    Buffer.alloc(32, 7),
    vector(1, Buffer.alloc(32, 9)),
    vector(2, Buffer.from([0x13, 0x01])),
    vector(1, Buffer.from([0])),
    vector(2, block),
  ])
  return records(Buffer.concat([Buffer.from([1]), uint(3, body.length), body, surplus ?? Buffer.alloc(0)]), recordBytes)
}

export function records(message: Buffer, recordBytes = 16_384): Buffer {
  const parts: Buffer[] = []
  for (let at = 0; at < message.length; at += recordBytes)
    parts.push(record(22, message.subarray(at, at + recordBytes)))
  return Buffer.concat(parts)
}

export function record(type: number, body: Buffer): Buffer {
  return Buffer.concat([Buffer.from([type, 3, 1]), vector(2, body)])
}

function vector(lengthSize: 1 | 2 | 3, body: Buffer): Buffer {
  return Buffer.concat([uint(lengthSize, body.length), body])
}

function uint(size: 1 | 2 | 3, value: number): Buffer {
  const bytes = Buffer.alloc(size)
  bytes.writeUIntBE(value, 0, size)
  return bytes
}
