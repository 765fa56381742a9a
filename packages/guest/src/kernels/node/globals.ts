import module from 'node:module'
import path from 'node:path'
import vm from 'node:vm'
import { IMPORT } from './prepare-code.ts'
import { makeDescriptor } from './streams.ts'

const createRequire = module.createRequire.bind(module)
const join = path.join.bind(path)
const cwd = process.cwd.bind(process)
const { defineProperty } = Object

type Import = (specifier: string, options?: object) => Promise<unknown>

/** What code finds in a step beside what V8 and Node give it: as in a script that lies in the current directory. */
export function defineGlobals(display: (value: unknown) => void): void {
  define('display', { value: display, writable: true })
  define('require', { get: () => createRequire(join(cwd(), 'step.js')), set: overwrite('require') })
  define(IMPORT, { value: importFromHere })
  for (const name of module.builtinModules) if (/^[a-z]\w*$/.test(name) && !(name in globalThis)) defineBuiltin(name)
}

/** `fs` and the others, as in Node's own console. */
function defineBuiltin(name: string): void {
  define(name, { get: () => process.getBuiltinModule(name), set: overwrite(name) })
}

function overwrite(name: string): (value: unknown) => void {
  return (value) => define(name, { value, writable: true })
}

function define(name: string, fields: PropertyDescriptor): void {
  defineProperty(globalThis, name, makeDescriptor({ configurable: true, ...fields }))
}

/** `import()` as a script of the current directory would do it. */
function importFromHere(specifier: string, options?: object): Promise<unknown> {
  const script = new vm.Script('(specifier, options) => import(specifier, options)', {
    filename: join(cwd(), 'step.js'),
    importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  })
  const warn: unknown = Reflect.get(process, 'emitWarning')
  // That this way is experimental is no news to the author of a step.
  Reflect.set(process, 'emitWarning', () => undefined)
  try {
    return parseImport(script.runInThisContext())(specifier, options)
  } finally {
    Reflect.set(process, 'emitWarning', warn)
  }
}

/** The script above evaluates to it. */
function parseImport(value: unknown): Import {
  return value as Import
}
