import { z } from 'zod'

/** JSON that callers define: arguments of tools and schemas. `findJsonFault` has bounded its depth. */
export const jsonObject = z.record(z.string(), z.unknown())

const REFERENCES: ReadonlySet<string> = new Set(['$ref', '$dynamicRef', '$recursiveRef'])
const IDENTIFIERS: ReadonlySet<string> = new Set(['$id', 'id'])

/** The published drafts, which validators have built in. Any other `$schema` is a document to fetch. */
const DRAFT = /^https?:\/\/json-schema\.org\/(?:schema|draft-0[3-7]\/schema|draft\/20(?:19-09|20-12)\/schema)#?$/
/** With a scheme or a host. Readers of URLs take a backslash for a slash. */
const REMOTE = /^[a-z][a-z0-9+.-]*:|^[/\\]{2}/i

/**
 * A JSON Schema whose references stay within it. Validators of some servers load what `$ref` names, relative to the nearest
 * `$id`; `id` is its name in older drafts.
 */
export const jsonSchema = jsonObject.refine((schema) => !refersOutside(schema), {
  error: 'refers to a schema outside of itself, which a server could fetch. Begin references with "#".',
})

function refersOutside(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(refersOutside)
  if (typeof value !== 'object' || value === null) return false
  return Object.entries(value).some(([key, inner]) => {
    if (typeof inner !== 'string') return refersOutside(inner)
    if (REFERENCES.has(key)) return !inner.startsWith('#')
    if (key === '$schema') return !DRAFT.test(inner)
    return IDENTIFIERS.has(key) && REMOTE.test(withoutBlanks(inner))
  })
}

/** Readers of URLs drop control characters and spaces at the ends, and tabs and line ends everywhere. */
function withoutBlanks(text: string): string {
  return text.replaceAll(/[\p{Cc} ]/gu, '')
}
