import type { z } from 'zod'
import { refuseField, refuseType } from './reasons.ts'

type Issue = z.core.$ZodIssue
type Path = readonly PropertyKey[]

/** Of a value in a message. */
const SHOWN = 64

/** The first thing that is wrong with a body, by its path. */
export function explain(error: z.ZodError, body: unknown): string {
  const issue = mostTelling(error.issues)
  return issue ? describe(issue, [], body) : 'The body is not valid.'
}

function describe(issue: Issue, above: Path, body: unknown): string {
  const path = [...above, ...issue.path]
  if (issue.code === 'unrecognized_keys') {
    const field = (issue.keys[0] ?? '').slice(0, SHOWN)
    return refuseField(write([...path, field]), field)
  }
  if (issue.code === 'invalid_union') {
    const closest = closestBranch(issue.errors)
    if (closest) return describe(closest, path, body)
    const value = valueAt(body, path)
    if (typeof value === 'string') return refuseType(write(path), value.slice(0, SHOWN))
  }
  // Our own sentences are whole, those of zod follow the name of the field.
  return issue.code === 'custom'
    ? `"${write(path)}" ${issue.message}`
    : `"${write(path)}" is not valid: ${issue.message}.`
}

/** The issue that lies deepest: its branch is what the caller meant. None when no branch fits the value at all. */
function closestBranch(branches: readonly (readonly Issue[])[]): Issue | undefined {
  const firsts = branches.flatMap((issues) => mostTelling(issues) ?? [])
  const deepest = firsts.toSorted((a, b) => depthOf(b) - depthOf(a))[0]
  return deepest && depthOf(deepest) > 0 ? deepest : undefined
}

/** A field that is there says more of what the caller meant than one that is missing. */
function mostTelling(issues: readonly Issue[]): Issue | undefined {
  return issues.find((issue) => issue.code === 'unrecognized_keys') ?? issues[0]
}

function depthOf(issue: Issue): number {
  if (issue.code === 'unrecognized_keys') return issue.path.length + 1
  const inner = issue.code === 'invalid_union' ? issue.errors.flat().map(depthOf) : []
  return issue.path.length + Math.max(0, ...inner)
}

function write(path: Path): string {
  const text = path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('')
  return text.replace(/^\./, '') || 'body'
}

function valueAt(body: unknown, path: Path): unknown {
  let value = body
  for (const part of path) {
    if (typeof value !== 'object' || value === null) return undefined
    value = Reflect.get(value, part)
  }
  return value
}
