import type { Terminal } from './terminal.ts'

const AFTER_MS = 1_000
const EVERY_MS = 120
const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']

/** Does the work; when it takes longer than a second and a person watches, says what is going on. */
export async function withProgress<T>(terminal: Terminal, label: () => string, work: () => Promise<T>): Promise<T> {
  if (!terminal.isWatched) return work()
  let frame = 0
  let shown = false
  const show = (): void => {
    shown = true
    terminal.showProgress(`${FRAMES[frame++ % FRAMES.length]} ${label()}`)
  }
  let ticking: NodeJS.Timeout | undefined
  const starting = setTimeout(() => {
    ticking = setInterval(show, EVERY_MS)
  }, AFTER_MS)
  try {
    return await work()
  } finally {
    clearTimeout(starting)
    clearInterval(ticking)
    if (shown) terminal.showProgress('')
  }
}
