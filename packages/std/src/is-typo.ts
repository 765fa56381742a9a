/** Whether one word was meant to be the other: a letter more, less, or other, or two that changed places. */
export function isTypo(word: string, meant: string): boolean {
  if (word.length < SHORT || Math.abs(word.length - meant.length) > 1) return false
  let same = 0
  while (same < word.length && word[same] === meant[same]) same++
  const [a, b] = [word.slice(same), meant.slice(same)]
  const isSwapped = a.length > 1 && a[0] === b[1] && a[1] === b[0] && a.slice(2) === b.slice(2)
  return isSwapped || a.slice(1) === b.slice(1) || a.slice(1) === b || a === b.slice(1)
}

/** A letter of less is half of the word. */
const SHORT = 3
