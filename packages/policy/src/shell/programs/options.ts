/** Splits the words of a program: its options up to the first operand, and the rest. `valued` take the next word. */
export function splitOptions(
  words: readonly string[],
  valued: readonly string[],
): { readonly options: readonly string[]; readonly rest: readonly string[] } {
  let at = 0
  while (at < words.length) {
    const word = words[at] ?? ''
    if (word === '--') return { options: words.slice(0, at), rest: words.slice(at + 1) }
    if (!word.startsWith('-') || word === '-') break
    at += valued.includes(word) ? 2 : 1
  }
  return { options: words.slice(0, at), rest: words.slice(at) }
}
