const STRING = /'[^'\n\\]*'|"[^"\n\\]*"/.source
const NAME = /[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*/u.source
const NAMED = `(?:${NAME}|${STRING})(?:\\s+as\\s+${NAME})?`
const BRACES = `\\{\\s*(?:${NAMED}(?:\\s*,\\s*${NAMED})*\\s*,?)?\\s*\\}`
const STAR = `\\*\\s*as\\s+${NAME}`
const CLAUSE = `(?<initial>${NAME})?(?:(?:\\s*,)?\\s*(?:(?<braces>${BRACES})|(?<star>${STAR})))?`
const STATEMENT = `^import\\s*(?:${CLAUSE}\\s*from\\s*)?(?<from>${STRING})(?:\\s*with\\s*(?<attributes>\\{[^{}]*\\}))?[^\\S\\n]*;?`

/**
 * Makes an assignment of the import statement at `at`, on the same number of lines; undefined where it is not one, or
 * has comments in it.
 */
export function rewriteImport(code: string, at: number, importer: string): string | undefined {
  const match = new RegExp(STATEMENT, 'u').exec(code.slice(at))
  if (!match?.groups) return undefined
  const { from, attributes } = match.groups
  const options = attributes === undefined ? '' : `, { with: ${oneLine(attributes)} }`
  const imported = `await ${importer}(${from}${options})`
  const lines = '\n'.repeat(match[0].split('\n').length - 1)
  return `${code.slice(0, at)}${declare(match.groups, imported)};${lines}${code.slice(at + match[0].length)}`
}

function declare(groups: Readonly<Record<string, string | undefined>>, imported: string): string {
  const { initial, braces, star } = groups
  const names = [...(initial === undefined ? [] : [`default: ${initial}`]), ...named(braces)]
  if (star !== undefined) {
    const space = star.replace(/^\*\s*as\s+/, '')
    return `const ${space} = ${imported}${names.length > 0 ? `, { ${names.join(', ')} } = ${space}` : ''}`
  }
  return initial === undefined && braces === undefined ? imported : `const { ${names.join(', ')} } = ${imported}`
}

function named(braces: string | undefined): readonly string[] {
  if (braces === undefined) return []
  const names = oneLine(braces).slice(1, -1).split(',')
  return names.map((name) => name.trim().replace(/\s+as\s+/, ': ')).filter((name) => name !== '')
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ')
}
