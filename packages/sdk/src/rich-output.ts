import { decodeBase64 } from './transport/base64.ts'

/** What a JSON document can hold. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json }

/** One thing in several forms, by media type: text as it is, PNG and JPEG in base64, JSON as a value. */
export interface MimeBundle {
  readonly 'text/plain'?: string
  readonly 'text/html'?: string
  readonly 'text/markdown'?: string
  readonly 'text/latex'?: string
  readonly 'image/svg+xml'?: string
  readonly 'image/png'?: string
  readonly 'image/jpeg'?: string
  readonly 'application/json'?: Json
  readonly [mediaType: string]: Json | undefined
}

/** Something that code showed beside its text. A form that it does not have is undefined. */
export class RichOutput {
  /** `result` is the value of the last expression, `display` what was shown on the way. */
  readonly kind: 'display' | 'result'
  readonly data: MimeBundle

  /** Of what an event of a step carries. */
  constructor(output: { readonly kind: 'display' | 'result'; readonly data: Readonly<Record<string, unknown>> }) {
    this.kind = output.kind
    this.data = parseBundle(output.data)
  }

  get text(): string | undefined {
    return this.data['text/plain']
  }

  get html(): string | undefined {
    return this.data['text/html']
  }

  get markdown(): string | undefined {
    return this.data['text/markdown']
  }

  get latex(): string | undefined {
    return this.data['text/latex']
  }

  get svg(): string | undefined {
    return this.data['image/svg+xml']
  }

  get json(): Json | undefined {
    return this.data['application/json']
  }

  get png(): Uint8Array | undefined {
    return bytesOf(this.data['image/png'])
  }

  get jpeg(): Uint8Array | undefined {
    return bytesOf(this.data['image/jpeg'])
  }
}

const TEXTS = [
  'text/plain',
  'text/html',
  'text/markdown',
  'text/latex',
  'image/svg+xml',
  'image/png',
  'image/jpeg',
] as const

/** Code in a sandbox chose what is in here: a form of the wrong type is left out. */
function parseBundle(data: Readonly<Record<string, unknown>>): MimeBundle {
  const texts: ReadonlySet<string> = new Set(TEXTS)
  const kept = Object.entries(data).filter(([type, value]) => !texts.has(type) || typeof value === 'string')
  return Object.fromEntries(kept) as MimeBundle
}

function bytesOf(base64: string | undefined): Uint8Array | undefined {
  return base64 === undefined ? undefined : decodeBase64(base64)
}
