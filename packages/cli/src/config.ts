import { readFileSync } from 'node:fs'
import { showsPictures } from './text/inline-picture.ts'

export interface CliConfig {
  readonly version: string
  /** Colours are for terminals that can show them and people who want them. */
  readonly allowsColor: boolean
  /** Whether a terminal can be drawn on, not only written to. */
  readonly canDraw: boolean
  /** Whether a terminal shows pictures. */
  readonly showsPictures: boolean
}

export function readConfig(): CliConfig {
  const { version } = parsePackage(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  const { NO_COLOR, TERM } = process.env
  const canDraw = TERM !== undefined && TERM !== 'dumb'
  const allowsColor = (NO_COLOR === undefined || NO_COLOR === '') && TERM !== 'dumb'
  return { version, allowsColor, canDraw, showsPictures: showsPictures(process.env) }
}

function parsePackage(text: string): { readonly version: string } {
  return JSON.parse(text) as { version: string }
}
