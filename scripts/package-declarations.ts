import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
/** The oldest language that users run, that of Node 20: what is newer is an error here. */
const LIB = ['es2023', 'es2024.string', 'esnext.disposable']

export type Declarations = ReadonlyMap<string, string>

/**
 * The declarations of the SDK as files that stand alone. What callers see of the contract is inferred from schemas: it is
 * written out in full, so that nobody needs their library to read it.
 */
export function sdkDeclarations(): Declarations {
  const nouns = readFileSync(join(ROOT, 'packages/sdk/src/nouns.ts'), 'utf8')
  const names = [...nouns.matchAll(/^ {2}(\w+),$|^export type (\w+) =/gm)].map((match) => match[1] ?? match[2] ?? '')
  return inWorkplace('sdk', (workplace) => {
    writeFileSync(join(workplace, 'plain.ts'), plainModule(names))
    const sources = ['packages/sdk/src/index.ts', 'packages/contract/src/errors.ts']
    const read = emit(workplace, [...sources, relative(ROOT, join(workplace, 'plain.ts'))])
    const own = (name: string): string => {
      if (name === 'contract-errors') return read('packages/contract/src/errors')
      if (name === 'nouns') return plainTypes(read(relative(ROOT, join(workplace, 'plain'))))
      return read(`packages/sdk/src/${name}`)
    }
    const files = reachable('index', own)
    // Callers with an older `lib` get the symbol that `await using` needs.
    const index = `/// <reference lib="esnext.disposable" />\n${files.get('index.d.ts') ?? ''}`
    return new Map([...files, ['index.d.ts', index]])
  })
}

/** The CLI is a program; what it exports is how to start it. */
export function cliDeclarations(): Declarations {
  return inWorkplace('cli', (workplace) => {
    const read = emit(workplace, ['packages/cli/src/main.ts'])
    return reachable('main', (name) => read(`packages/cli/src/${name}`))
  })
}

/** Inside of the package, where imports lead to the other ones, and gone afterwards. */
function inWorkplace<T>(name: string, work: (workplace: string) => T): T {
  const workplace = join(ROOT, 'packages', name, 'dist/.declarations')
  mkdirSync(workplace, { recursive: true })
  try {
    return work(workplace)
  } finally {
    rmSync(workplace, { recursive: true, force: true })
  }
}

/** Compiles, and answers how to read what came out for a source file of the repository, named without `.ts`. */
function emit(workplace: string, files: readonly string[]): (path: string) => string {
  const config = join(workplace, 'tsconfig.json')
  const outDir = join(workplace, 'out')
  const compilerOptions = {
    noEmit: false,
    declaration: true,
    emitDeclarationOnly: true,
    stripInternal: true,
    lib: LIB,
    rootDir: ROOT,
    outDir,
  }
  const paths = files.map((file) => join(ROOT, file))
  writeFileSync(
    config,
    JSON.stringify({ extends: join(ROOT, 'tsconfig.json'), compilerOptions, include: [], files: paths }),
  )
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
  const done = spawnSync(process.execPath, [tsc, '-p', config], { encoding: 'utf8' })
  const errors = `${done.stdout}${done.stderr}`.split('\n').filter((line) => line !== '' && !NOT_PACKED.test(line))
  if (done.error || errors.length > 0) throw new TypeError(`the declarations do not compile:\n${errors.join('\n')}`)
  return (path) => readFileSync(join(outDir, `${path}.d.ts`), 'utf8')
}

/** Errors in the server's part, which the CLI of the repository reaches: it runs on Node 24. */
const NOT_PACKED = /^packages\/(?:supervisor|data-plane|control-plane|doors|recorder)\//

/** The compiler writes out what a value without an annotation is, to the last field. */
function plainModule(names: readonly string[]): string {
  const values = names.map((name) => `export const ${name} = plain<nouns.${name}>()`)
  return `import type * as nouns from '../../src/nouns.ts'\ndeclare function plain<T>(): T\n${values.join('\n')}\n`
}

function plainTypes(declared: string): string {
  const types = declared
    .replaceAll(/^export declare const (\w+): /gm, 'export type $1 = ')
    .replaceAll('import("zod").JSONType', 'JsonValue')
  return `${types}
export type JsonValue = string | number | boolean | null | JsonValue[] | {
    [key: string]: JsonValue;
};
`
}

/** A declaration and what it refers to, with the names that they have where they are installed. */
function reachable(entry: string, read: (name: string) => string): Declarations {
  const files = new Map<string, string>()
  const pending = [entry]
  for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
    if (files.has(`${name}.d.ts`)) continue
    const text = read(name)
      .replaceAll(
        "'@airlock/contract/errors'",
        `'${relative(dirname(`/${name}`), '/contract-errors.js').replace(/^(?!\.)/, './')}'`,
      )
      .replaceAll(OWN, "'$1.js'")
    files.set(`${name}.d.ts`, text)
    for (const match of text.matchAll(/'(\.{1,2}\/[\w./-]+)\.js'/g)) pending.push(join(dirname(name), match[1] ?? ''))
    const foreign = /from '(?!\.)[^']*'|import\("[^"]*"\)/.exec(text)
    if (foreign) throw new TypeError(`${name}.d.ts refers to something that is not packed: ${foreign[0]}`)
  }
  return files
}

const OWN = /'(\.{1,2}\/[\w./-]+)\.ts'/g
