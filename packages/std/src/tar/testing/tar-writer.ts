/** One member of an archive, as wrong as a test wants it. */
export interface Member {
  readonly name: string | Buffer
  readonly type?: string
  readonly content?: string | Buffer
  readonly link?: string | Buffer
  readonly mode?: number
  /** What the header claims, when that is not how long the content is. */
  readonly size?: number
  readonly badSum?: boolean
}

const BLOCK = 512

export function tarOf(members: readonly Member[], end = true): Buffer {
  return Buffer.concat([...members.map(blocksOf), ...(end ? [Buffer.alloc(2 * BLOCK)] : [])])
}

/** An extended header for the member after it. */
export function pax(records: Readonly<Record<string, string | Buffer>>, type = 'x'): Member {
  return { name: 'PaxHeader', type, content: Buffer.concat(Object.entries(records).map(paxRecord)) }
}

/** The same as GNU tar writes it: `L` for names, `K` for targets of links. */
export function gnuLong(type: 'L' | 'K', text: string): Member {
  return { name: '././@LongLink', type, content: `${text}\0` }
}

function paxRecord([key, value]: readonly [string, string | Buffer]): Buffer {
  const rest = Buffer.concat([Buffer.from(` ${key}=`), Buffer.from(value), Buffer.from('\n')])
  let length = rest.length + 1
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length
  return Buffer.concat([Buffer.from(String(length)), rest])
}

function blocksOf(member: Member): Buffer {
  const content = Buffer.from(member.content ?? '')
  const header = Buffer.alloc(BLOCK)
  Buffer.from(member.name).copy(header, 0, 0, 100)
  octal(header.subarray(100, 108), member.mode ?? 0o644)
  octal(header.subarray(124, 136), member.size ?? content.length)
  octal(header.subarray(136, 148), 0)
  header.write(member.type ?? '0', 156)
  Buffer.from(member.link ?? '').copy(header, 157, 0, 100)
  header.write('ustar', 257)
  header.write('00', 263)
  header.fill(' ', 148, 156)
  const sum = header.reduce((total, byte) => total + byte, 0) + (member.badSum === true ? 1 : 0)
  octal(header.subarray(148, 156), sum)
  const padding = Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK)
  return Buffer.concat([header, content, padding])
}

function octal(field: Buffer, value: number): void {
  field.write(`${value.toString(8).padStart(field.length - 1, '0')}\0`)
}
