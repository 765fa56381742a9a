import { z } from 'zod'
import { because } from './reasons.ts'

const IMAGE_URL = /^data:image\/(?:png|jpeg|gif|webp);base64,/
const FILE_URL = /^data:(?:application\/pdf|text\/plain);base64,/
/** So much of a URL tells whether it is one of bytes. */
const LONGEST_PREFIX = 64

const REMOTE = `is not a data: URL of a type that is passed on: it ${because('model-fetch')}`

export const base64 = z.string().refine(isBase64, { error: 'is not base64.' })

/** The bytes of an image. A URL of another kind would make the provider fetch it. */
export const imageUrl = dataUrl(IMAGE_URL)
export const fileUrl = dataUrl(FILE_URL)

function dataUrl(prefix: RegExp): z.ZodType<string> {
  return z
    .string()
    .refine((url) => prefix.test(url.slice(0, LONGEST_PREFIX)), { error: REMOTE, abort: true })
    .refine((url) => isBase64(url.slice(url.indexOf(',') + 1)), { error: 'is not base64.' })
}

/** Two searches, each once over the text: a pattern for all of it would keep a position for each character. */
function isBase64(text: string): boolean {
  const padding = text.indexOf('=')
  return !/[^A-Za-z0-9+/=]/.test(text) && (padding === -1 || padding >= text.length - 2)
}
