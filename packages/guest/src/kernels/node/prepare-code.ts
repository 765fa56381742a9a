import { stripTypeScriptTypes } from 'node:module'
import { Script } from 'node:vm'
import type { DriverError } from '../../session/driver.ts'
import type { Prepared } from './messages.ts'
import { rewriteImport } from './rewrite-import.ts'

/** The global that does what `import()` does; V8 evaluates steps without a way to import. */
export const IMPORT = '__import'

/** More than that is left as it is: each costs a compilation. */
const DYNAMIC_IMPORTS = 200

interface Fault {
  readonly error: DriverError
  /** From 1, in the code. */
  readonly line: number
  /** From 0; -1 where V8 does not say. */
  readonly column: number
}

type Compiled = { readonly script: string } | { readonly fault: Fault }

/**
 * Makes a script of a step: TypeScript, static imports and dynamic ones become what V8 can evaluate, on the lines where
 * they were. What is code and what only looks like it is asked of V8, which compiles and does not run.
 */
export function prepareCode(code: string, name: string): Prepared {
  const source = code.startsWith('#!') ? `//${code}` : code
  const plain = compile(source, name)
  if ('script' in plain) return { kind: 'script', script: plain.script }
  const stripped = stripTypes(source, name)
  const typed = 'fault' in stripped ? stripped : compile(stripped.script, name)
  if ('script' in typed) return { kind: 'script', script: typed.script }
  // Who got further has understood more of it.
  return { kind: 'error', error: (typed.fault.line > plain.fault.line ? typed : plain).fault.error }
}

function compile(code: string, name: string): Compiled {
  const literal = asLiteral(code, name)
  if (literal !== undefined) return { script: rewriteDynamicImports(literal, name) }
  let script = code
  // Each round takes one `import` away, or ends it.
  for (;;) {
    const fault = findFault(script, name)
    if (!fault) return { script: rewriteDynamicImports(script, name) }
    const rewritten = isStaticImport(fault) ? rewriteImport(script, positionOf(script, fault), IMPORT) : undefined
    if (rewritten === undefined) return { fault }
    script = rewritten
  }
}

/** `{a: 1}` is meant as an object, though a script would read it as a block. */
function asLiteral(code: string, name: string): string | undefined {
  if (!/^\s*\{/.test(code) || /;\s*$/.test(code)) return undefined
  const literal = `(${code}\n)`
  return findFault(literal, name) ? undefined : literal
}

function rewriteDynamicImports(code: string, name: string): string {
  let script = code
  const candidates = [...code.matchAll(/\bimport\s*\(/g)].map((match) => match.index)
  if (candidates.length > DYNAMIC_IMPORTS) return script
  for (const at of candidates.toReversed()) {
    const before = script.slice(0, at)
    const after = script.slice(at + 'import'.length)
    // Only where it is the keyword of an expression does V8 object in these words.
    const fault = findFault(`${before}import.meta${after}`, name)
    if (fault?.error.message.includes("'import.meta'")) script = `${before}${IMPORT}${after}`
  }
  return script
}

function isStaticImport(fault: Fault): boolean {
  return fault.column >= 0 && fault.error.message === 'Cannot use import statement outside a module'
}

function positionOf(code: string, { line, column }: Fault): number {
  let start = 0
  for (let at = 1; at < line; at++) start = code.indexOf('\n', start) + 1
  return start + column
}

/** In a function, where `await` is allowed as in a step. */
function findFault(code: string, name: string): Fault | undefined {
  try {
    void new Script(`(async () => {\n${code}\n})`, { filename: name, lineOffset: -1 })
    return undefined
  } catch (error) {
    return explain(error, name)
  }
}

function stripTypes(code: string, name: string): Compiled {
  try {
    return { script: stripTypeScriptTypes(code, { mode: 'strip' }) }
  } catch {
    // Enums and the like are more than types: they become code, and lines may move.
  }
  try {
    return { script: stripTypeScriptTypes(code, { mode: 'transform' }) }
  } catch (error) {
    return { fault: explain(error, name) }
  }
}

/** A stack of a syntax error begins with where it is: `name:line`, the line, and carets below it. */
function explain(error: unknown, name: string): Fault {
  if (!(error instanceof SyntaxError)) throw error
  const [where = '', source = '', carets = ''] = (error.stack ?? '').split('\n')
  const line = Number(/:(\d+)$/.exec(where)?.[1] ?? 0)
  const traceback = `${name}:${line}\n${source}\n${carets}\n\nSyntaxError: ${error.message}`
  return { line, column: carets.indexOf('^'), error: { name: 'SyntaxError', message: error.message, traceback } }
}
