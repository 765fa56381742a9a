import type { RichOutput } from '@airlock/sdk'

const PNG = Buffer.from('\u0089PNG\r\n\u001A\n', 'latin1')
/** The protocol takes at most 4,096 characters of base64 at once. */
const CHUNK = 4096
const MAX_BYTES = 8 * 1024 * 1024

/** Whether a terminal shows pictures that are written to it by the graphics protocol of kitty. */
export function showsPictures(env: Readonly<Record<string, string | undefined>>): boolean {
  const { TERM = '', TERM_PROGRAM = '', KITTY_WINDOW_ID, TMUX } = env
  // A multiplexer stands between and passes nothing on.
  if (TMUX !== undefined) return false
  return KITTY_WINDOW_ID !== undefined || TERM === 'xterm-kitty' || /^(?:ghostty|WezTerm)$/i.test(TERM_PROGRAM)
}

/** The picture as such a terminal wants it; undefined for what is no PNG, or too large. Nothing but base64 of it is written. */
export function inlinePicture({ png }: Pick<RichOutput, 'png'>): string | undefined {
  if (!png || png.length > MAX_BYTES || !PNG.equals(png.subarray(0, PNG.length))) return undefined
  const text = Buffer.from(png).toString('base64')
  const parts: string[] = []
  for (let at = 0; at < text.length; at += CHUNK) {
    const more = at + CHUNK < text.length ? 1 : 0
    const keys = at === 0 ? `a=T,f=100,m=${more}` : `m=${more}`
    parts.push(`\u001B_G${keys};${text.slice(at, at + CHUNK)}\u001B\\`)
  }
  return `${parts.join('')}\n`
}
