import { describe, expect, it } from 'vitest'
import { readArgv, readScript } from './read.ts'

/** What would be started, in the order in which it is found; what is not known is `$`. */
function started(script: string, cwd?: string): readonly string[] {
  const { invocations } = readScript(script, { env: ['SECRET'], ...(cwd === undefined ? {} : { cwd }) })
  return invocations.map(({ traits, text }) => (traits.includes('unreadable') ? '?' : text).trim())
}

const pathsOf = (script: string) => readScript(script, { env: [] }).invocations.flatMap(({ paths }) => paths)
const writesOf = (script: string) => readScript(script, { env: [] }).invocations.flatMap(({ writes }) => writes)

describe('words', () => {
  it.each([
    ['a b  c', 'a b c'],
    [`a 'b c' "d e"`, 'a b c d e'],
    [`r""m -r'f' /`, 'rm -rf /'],
    [String.raw`r\m -rf \/`, 'rm -rf /'],
    [String.raw`$'\x72\155' $'a\tb'`, 'rm a\tb'],
    ['$"a" b', 'a b'],
    ['a \\\n b', 'a b'],
    ['{a,-b,c}', 'a -b c'],
    ['a {1..3} x{p,q}y', 'a 1 2 3 xpy xqy'],
    ['a {b} {} x{', 'a {b} {} x{'],
    ['a{,.bak}', 'a a.bak'],
    ['a ~ ~/b "~" x~', 'a /home/user /home/user/b ~ x~'],
    ['a $HOME "$HOME/b"', 'a /home/user /home/user/b'],
    ['X=rm; $X -rf', 'rm -rf'],
    ['X="a b"; c $X "$X"', 'c a b a b'],
    ['X=a${Y:-b}c; d $X', 'd abc'],
    ['a${IFS}b', 'a b'],
    ['IFS=,; X=a,b; $X', 'a b'],
    ['X=abcdef; a ${X:1:2} ${X#a} ${X%f} ${X/b/x} ${X^^} ${#X}', 'a bc bcdef abcde axcdef ABCDEF 6'],
    ['X=a.tar.gz; b ${X%%.*} ${X##*.}', 'b a gz'],
    ['Y=a; X=Y; ${!X}', 'a'],
    ['A=(rm -rf /); "${A[@]}"', 'rm -rf /'],
    ['set -- rm -rf; "$@"', 'set -- rm -rf|rm -rf'],
    ['a $UNSEEN "$UNSEEN"x', 'a $@ $x'],
    ['a "$@" b', 'a b'],
    ['a # b', 'a'],
    ['a#b', 'a#b'],
    ['a @(x|y) !(z)', 'a @(x|y) !(z)'],
    ['a $((1 + 2))', 'a $@'],
    ['for x in a b; do c $x; done', 'c a|c b'],
  ])('%s', (script, expected) => {
    expect(started(script).join('|')).toBe(expected)
  })
})

describe('commands', () => {
  it.each([
    ['a; b & c && d || e | f', 'a|b|c|d|e|f'],
    ['(a; b) && { c; }', 'a|b|c'],
    ['if a; then b; elif c; then d; else e; fi', 'a|c|b|d|e'],
    ['while a; do b; done; until c; do d; done', 'a|b|c|d'],
    ['case $x in (a|b) c;; *) d;; esac', 'c|d'],
    ['for ((i=0; i<2; i++)); do a; done', 'a'],
    ['select x in a; do b; done', 'b'],
    ['[[ a < b && $(c) ]] && d', 'c|d'],
    ['(( $(a) )) || b', 'a|b'],
    ['! a | b', 'a|b'],
    ['time a', 'a'],
    ['coproc a', 'a'],
    ['f() { a "$1"; }; f b', 'a b'],
    ['function f { a; }; f; f', 'a|a'],
    ['f() { a; }', 'a'],
    ['f() { "$@"; }', ''],
    ['X=1 Y=2 a b', 'a b'],
    ['a > b 2>&1 < c', 'a'],
    ['a "$(b)" `c`', 'b|c|a $ $@'],
    ['a <(b) >(c)', 'b|c|a /dev/fd/63 /dev/fd/64'],
    ['echo "${X:-$(a)}"', 'a|echo $'],
    ['cat <<E\n$(a)\nE\nb', 'a|cat|b'],
    ["cat <<'E'\n$(a)\nE\nb", 'cat|b'],
    ['cat <<-E\n\ta\n\tE\nb', 'cat|b'],
    ['a |& b', 'a|b'],
    ['a\n\n# c\nb', 'a|b'],
  ])('%s', (script, expected) => {
    expect(started(script).join('|')).toBe(expected)
  })
})

describe('what starts others', () => {
  it.each([
    ['sh -c "a b"', 'a b'],
    ['bash -lc a', 'a'],
    ['bash -euo pipefail -c a', 'a'],
    [`sh -c 'sh -c "a"'`, 'a'],
    [`sh -c 'a "$1"' name b`, 'a b'],
    ['echo a b | sh', 'a b'],
    ["sh <<'E'\na\nE", 'a'],
    ['bash <<< a', 'a'],
    ["printf '%s %s' a b | sh", 'a b'],
    ['echo YSBi | base64 -d | sh', 'a b'],
    ['echo b a | rev | sh', 'a b'],
    ['echo 6120 62 | xxd -r -p | sh', 'a b'],
    ['echo n | tr a-z n-za-m | sh', 'a'],
    ['eval a b', 'a b'],
    ['$(echo a) b', 'a b'],
    ['echo a > x; sh x', 'a'],
    ['echo a > x; . ./x; ./x', 'a'],
    ['env -i X=1 a', 'a'],
    ['env -S "a b"', 'a b'],
    ['nice -n 5 nohup timeout -k 1 5 a', 'a'],
    ['command a; command -v b', 'a'],
    ['exec -a name a', 'a'],
    ['sudo -u x a', 'a'],
    ['busybox a b', 'a b'],
    ['echo b c | xargs a', 'a b c'],
    ['echo b | xargs -I{} sh -c "a {}"', 'a b'],
    ['find b -exec a {} +', 'a b'],
    ['find b -name c -exec a {} \\;', 'a b/c'],
    ['find b -delete', 'rm -r -f b'],
    ['find b | xargs a', 'a b'],
    [`awk 'BEGIN { system("a b") }'`, 'a b'],
    [`awk '{ print | "a" }'`, 'a'],
    ["sed 's/x/a b/e'", 'a b'],
    ["git -c alias.x='!a b' x", 'a b'],
    ['git submodule foreach "a b"', 'a b'],
    ['tar -cf x . --checkpoint-action=exec="a b"', 'a b'],
    ['ssh -o ProxyCommand="a b" x', 'a b'],
    ["vim -c ':!a b'", 'a b'],
    ["make --eval='x:;a b' x", 'a b'],
    ["make -f - <<'E'\nx:\n\t@a b\nE", 'a b'],
    ["trap 'a b' EXIT", 'a b'],
    ["alias x='a b'", 'a b'],
    ['python3 -m a b', 'a b'],
    [`python3 -c 'import os; os.system("a b")'`, 'a b'],
    ['uv run a b', 'a b'],
  ])('%s', (script, expected) => {
    expect(started(script)).toContain(expected)
  })

  it('says whose output it interprets', () => {
    const sourcesOf = (script: string) =>
      readScript(script, { env: [] }).invocations.flatMap(({ program, runsOutputOf }) =>
        runsOutputOf.length === 0 ? [] : [`${program}: ${runsOutputOf.join(' ')}`],
      )
    expect(sourcesOf('curl x | sh')).toEqual(['sh: curl'])
    expect(sourcesOf('curl x | gunzip | bash -s')).toEqual(['bash: gunzip curl'])
    expect(sourcesOf('eval "$(curl x)"')).toEqual(['eval: curl'])
    expect(sourcesOf('bash <(curl x)')).toEqual(['bash: curl'])
    expect(sourcesOf('curl -o a x; sh a')).toEqual(['sh: curl'])
    expect(sourcesOf('wget http://x/a; chmod +x a; ./a')).toEqual(['a: wget'])
    expect(sourcesOf('curl x | python3 -')).toEqual(['python3: curl'])
    expect(sourcesOf('curl x | jq .; curl x | python3 -c "print(1)"; cat a | sh -c b')).toEqual([])
  })
})

describe('what cannot be known', () => {
  it.each(['$UNSEEN -rf /', '"$SECRET"', 'eval "$UNSEEN"', 'bash -c "$UNSEEN"', '`cat x`', 'python3 -c "$UNSEEN"'])(
    '%s: what it would run',
    (script) => {
      expect(started(script)).toContain('?')
    },
  )

  it.each(['rm -rf "/', 'a )', 'if a', 'a &&& b', 'a | | b', '${', '$(a', 'case x in'])(
    '%s: it is no script',
    (script) => {
      expect(started(script)).toContain('?')
    },
  )

  it.each(['a "$UNSEEN"', '"$UNSEEN/bin/python" x', './run-$UNSEEN.sh', 'if a; then X=b; fi; echo $X'])(
    '%s: only its arguments',
    (script) => {
      expect(started(script)).not.toContain('?')
    },
  )

  it('is a program that is chosen by one of several ways', () => {
    expect(started('X=ls; if a; then X=rm; fi; $X')).toEqual(['a', '?'])
    expect(started('X=ls; a || X=rm; $X')).toEqual(['a', '?'])
  })
})

describe('paths', () => {
  it.each([
    ['rm //', '/'],
    ['rm /./', '/'],
    ['rm /tmp/../', '/'],
    ['rm ..', '/'],
    ['rm x/../y', '/workspace/y'],
    ['rm ~root', '/root'],
    ['rm "$HOME"/../..', '/'],
    ['cd /; rm x', '/x'],
    ['(cd /; a); rm x', '/workspace/x'],
    ['cd a && cd .. && rm x', '/workspace/x'],
    ['dd if=/a', '/a'],
    ['curl -F f=@/a', '/a'],
    ['tar --file=/a', '/a'],
    ['cat < /a', '/a'],
  ])('%s: %s', (script, expected) => {
    expect(pathsOf(script)).toContain(expected)
  })

  it.each([
    ['a > /x', '/x'],
    ['a &>> x', '/workspace/x'],
    ['> /x', '/x'],
    ['(a) > /x', '/x'],
    ['a | tee /x', '/x'],
    ['dd of=/x', '/x'],
    ['cp a b /x', '/x'],
    ["sed -i 's/a/b/' /x", '/x'],
    ['curl -o /x y', '/x'],
  ])('%s writes %s', (script, expected) => {
    expect(writesOf(script)).toContain(expected)
  })

  it('begin where the command begins', () => {
    const { invocations } = readArgv(['rm', '-rf', '*'], { cwd: '/', env: [] })
    expect(invocations.map(({ paths }) => paths)).toEqual([['/*']])
  })
})

describe('loops and functions', () => {
  const traitsOf = (script: string) => [
    ...new Set(readScript(script, { env: [] }).invocations.flatMap(({ traits }) => traits)),
  ]
  it.each([':(){ :|:& };:', 'f() { f & f & }; f', 'b(){\n b | b &\n}\nb', 'sh -c "x(){ x|x& };x"'])(
    '%s never end',
    (script) => {
      expect(traitsOf(script)).toContain('fork-bomb')
    },
  )

  it.each(['f() { f; }; f', 'f() { echo $(f); }; f', 'f() { a | b; }; f', 'f() { g & }; g() { a; }; f'])(
    '%s end, or only call themselves',
    (script) => {
      expect(traitsOf(script)).not.toContain('fork-bomb')
    },
  )

  it.each([
    'while true; do a & done',
    'while :; do sleep 9 & done',
    'for ((;;)); do a & done',
    'until false; do a & done',
  ])('%s start something every time', (script) => {
    expect(traitsOf(script)).toEqual(expect.arrayContaining(['endless-loop', 'endless-spawn']))
  })

  it.each(['while true; do a & sleep 1; done', 'while true; do a; break; done', 'for i in 1 2; do a & done'])(
    '%s wait or end',
    (script) => {
      expect(traitsOf(script)).toEqual([])
    },
  )
})
