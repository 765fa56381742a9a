import { inflateSync } from 'node:zlib'

export interface Pixels {
  readonly width: number
  readonly height: number
  /** How many pixels have each colour. */
  readonly colours: ReadonlyMap<string, number>
}

const CHANNELS: Readonly<Record<number, number>> = { 0: 1, 2: 3, 4: 2, 6: 4 }

/** Reads a PNG with eight bits a channel and without interlacing, as matplotlib writes them, to its last pixel. */
export function decodePng(png: Buffer): Pixels {
  if (png.subarray(0, 8).toString('latin1') !== '\u0089PNG\r\n\u001A\n') throw new TypeError('not a PNG')
  const parts: Buffer[] = []
  let header = Buffer.alloc(13)
  for (let at = 8; at < png.length;) {
    const length = png.readUInt32BE(at)
    const type = png.toString('latin1', at + 4, at + 8)
    const data = png.subarray(at + 8, at + 8 + length)
    if (type === 'IHDR') header = Buffer.from(data)
    if (type === 'IDAT') parts.push(data)
    at += length + 12
  }
  const channels = CHANNELS[header[9] ?? -1] ?? 0
  if (header[8] !== 8 || channels === 0 || header[12] !== 0) throw new TypeError('a PNG of another kind')
  const size = { width: header.readUInt32BE(0), height: header.readUInt32BE(4) }
  return { ...size, colours: countColours(inflateSync(Buffer.concat(parts)), { ...size, channels }) }
}

interface Shape {
  readonly width: number
  readonly height: number
  readonly channels: number
}

function countColours(raw: Buffer, { width, height, channels }: Shape): Map<string, number> {
  const colours = new Map<string, number>()
  const stride = width * channels
  let above = Buffer.alloc(stride)
  for (let y = 0; y < height; y++) {
    const start = y * (stride + 1)
    const row = unfilter(raw.subarray(start, start + stride + 1), above, channels)
    for (let x = 0; x < stride; x += channels) {
      const colour = row.toString('hex', x, x + channels)
      colours.set(colour, (colours.get(colour) ?? 0) + 1)
    }
    above = row
  }
  return colours
}

function unfilter(line: Buffer, above: Buffer, channels: number): Buffer<ArrayBuffer> {
  const [filter = 0] = line
  const row = Buffer.from(line.subarray(1))
  for (let i = 0; i < row.length; i++) {
    const left = i < channels ? 0 : (row[i - channels] ?? 0)
    const up = above[i] ?? 0
    const corner = i < channels ? 0 : (above[i - channels] ?? 0)
    row[i] = ((row[i] ?? 0) + predict(filter, { left, up, corner })) & 0xff
  }
  return row
}

interface Around {
  readonly left: number
  readonly up: number
  readonly corner: number
}

function predict(filter: number, { left, up, corner }: Around): number {
  if (filter === 1) return left
  if (filter === 2) return up
  if (filter === 3) return Math.floor((left + up) / 2)
  if (filter !== 4) return 0
  const guess = left + up - corner
  const [a, b, c] = [Math.abs(guess - left), Math.abs(guess - up), Math.abs(guess - corner)]
  return a <= b && a <= c ? left : b <= c ? up : corner
}
