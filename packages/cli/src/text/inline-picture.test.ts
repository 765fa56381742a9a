import { describe, expect, it } from 'vitest'
import { inlinePicture, showsPictures } from './inline-picture.ts'

const HEAD = Buffer.from('\u0089PNG\r\n\u001A\n', 'latin1')

describe('a picture on the terminal', () => {
  it('is written in chunks that have nothing in them but base64', () => {
    const png = Buffer.concat([HEAD, Buffer.alloc(5000, '\u001B\\')])
    const parts = inlinePicture({ png })?.replaceAll('\u001B', 'ESC').split('ESC\\') ?? []
    expect(parts).toHaveLength(3)
    const chunks = parts.slice(0, 2).map((part) => /^ESC_G([a-zA-Z0-9=,]+);([A-Za-z0-9+/=]+)$/.exec(part))
    expect(chunks.map((chunk) => chunk?.[1])).toEqual(['a=T,f=100,m=1', 'm=0'])
    expect(Buffer.from(chunks.map((chunk) => chunk?.[2] ?? '').join(''), 'base64').equals(png)).toBe(true)
    expect(parts[2]).toBe('\n')
  })

  it('is none where the bytes are no PNG, or too many', () => {
    expect(inlinePicture({ png: Buffer.from('\u001B]0;x\u0007') })).toBeUndefined()
    expect(inlinePicture({ png: Buffer.concat([HEAD, Buffer.alloc(9 * 1024 * 1024)]) })).toBeUndefined()
    expect(inlinePicture({ png: undefined })).toBeUndefined()
  })

  it('is for terminals that speak the protocol, and not through a multiplexer', () => {
    expect(showsPictures({ TERM: 'xterm-kitty' })).toBe(true)
    expect(showsPictures({ TERM: 'xterm-256color', TERM_PROGRAM: 'ghostty' })).toBe(true)
    expect(showsPictures({ TERM: 'xterm-kitty', TMUX: '/tmp/tmux-0' })).toBe(false)
    expect(showsPictures({ TERM: 'xterm-256color' })).toBe(false)
  })
})
