import { describe, expect, it } from 'vitest'
import { isIncompleteBash } from './incomplete-bash.ts'
import { isIncompleteNode } from './incomplete-node.ts'
import { isIncompletePython } from './incomplete-python.ts'

describe('Python', () => {
  it.each([
    'def f():',
    'def f():\n    return 1',
    'def f():\n    return 1\n    # and so on',
    'if x: y()',
    'if x:\n    a()\nelse:',
    'class A:  # a comment',
    '@decorated',
    'async def f(): pass',
    'x = [1,',
    'x = [\n  1,  # one ]\n',
    'print("a",\n',
    'd = {"a": (1, [2\n\n',
    'x = """one',
    "x = r'''one\\'''\n",
    'x = 1 + \\',
    "'continued \\",
    'try:\n    pass\nexcept E:\n    pass',
    'with a as b:\n\tb()',
    'match x:',
    'f(lambda: """)""" ',
  ])('goes on after %j', (code) => {
    expect(isIncompletePython(code)).toBe(true)
  })

  it.each([
    '',
    '   ',
    '# only a comment:',
    'x = 1',
    'x = {"a": 1}',
    'print("#", "(", \'[\')',
    'def f():\n    return 1\n',
    'def f():\n    return 1\n    ',
    'def f():\n    return 1\n\nf()',
    'for i in range(3):\n    print(i)\nprint("over")',
    'x = "not closed',
    'x = 1)',
    'x = """one\ntwo"""',
    'x = [1,\n2]',
    'a = 1 + \\\n2',
    'f\'{x["a"]}:\'',
    'iffy = 1',
    'lambda: 1',
    'x[1:]',
    '"a" "b" # :',
  ])('is whole with %j', (code) => {
    expect(isIncompletePython(code)).toBe(false)
  })
})

describe('Node', () => {
  it.each([
    'function f() {',
    'const x =',
    'const x: number =',
    'const f = async (a: string) =>',
    'f(1,',
    'if (x)',
    'if (x) {\n} else',
    'interface A {',
    'interface A {\n  b: string',
    'for await (const x of y) {',
    'const s = `one',
    'const s = `one ${two',
    'const s = `one ${`two ${"}"}` + `',
    '/* a comment',
    'a &&',
    'a +',
    'try {\n}',
    'x.',
    'const r = /[/({]/.test(',
  ])('goes on after %j', (code) => {
    expect(isIncompleteNode(code)).toBe(true)
  })

  it.each([
    '',
    '// only a comment {',
    'const x = 1',
    'await fetch("x")',
    'for await (const x of y) { z() }',
    'interface A { b: string }',
    'type B = Map<string, number>',
    'i++',
    'i--',
    'const s = `one ${`two ${"}"}`} three`',
    "const s = 'not closed",
    "const s = 'it\\'s {'",
    'const r = /[/({]`"/g',
    'x = a / b / c',
    'f() /* ( */',
    'x)',
    'const o = { a: 1 }',
    'let x = y as string',
    'import fs from "node:fs"',
    'return 1',
  ])('is whole with %j', (code) => {
    expect(isIncompleteNode(code)).toBe(false)
  })
})

describe('Bash', () => {
  it.each([
    'if true; then',
    'if true; then\n  echo a',
    'for x in a b; do echo $x',
    'while read -r line',
    'case $x in',
    'case $x in\n  a) echo a ;;',
    'f() {',
    'f()',
    'function f {',
    '{ echo a',
    '(cd /tmp',
    'echo "one',
    "echo 'one",
    'echo `date',
    'echo $(date',
    'echo "$(date',
    'echo "${x',
    'cat <<EOF',
    'cat <<EOF\nif\n',
    "cat <<-'END' | wc\n\tone\n",
    'a |',
    'a &&\n',
    'a ||',
    'echo a \\',
    'echo a \\\n',
    'if a; then if b; then c; fi',
    'x=$(cat <<EOF\none\n',
    'for ((i = 0; i < 3; i++)); do',
  ])('goes on after %j', (code) => {
    expect(isIncompleteBash(code)).toBe(true)
  })

  it.each([
    '',
    'echo a',
    'echo if',
    'echo done; echo fi',
    '# if true; then',
    'echo a # "',
    'if true; then echo a; fi',
    'for x in a b; do echo $x; done',
    'case $x in\n  a|b) echo a ;;\n  *) echo "if" ;;\nesac',
    'f() { echo a; }',
    'f() {\n  echo "${1:-x}"\n}',
    'function f { echo a; }',
    '(cd /tmp && ls)',
    'echo "it\'s" \'a "b"\'',
    'echo "$(date "+%Y")"',
    'cat <<EOF\nif\nEOF',
    "cat <<-'END'\n\tone\n\tEND\n",
    'cat <<< one',
    'a | b',
    'sleep 1 &',
    'a && b || c',
    'x=(1 2 3)',
    'for ((i = 0; i < 3; i++)); do echo $i; done',
    'while read -r a; do echo "$a"; done < file',
    'echo $((1 + 2))',
    '[[ -n $x ]] && echo "}"',
    'echo {a,b}',
  ])('is whole with %j', (code) => {
    expect(isIncompleteBash(code)).toBe(false)
  })
})
