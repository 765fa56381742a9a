import { createInterface } from 'node:readline/promises'
import type { Terminal } from './text/terminal.ts'

/** Asks on the terminal. Without a person to ask the answer is no. */
export async function isConfirmed(terminal: Terminal, question: string): Promise<boolean> {
  if (!process.stdin.isTTY || !terminal.isWatched) return false
  const prompt = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return /^y(?:es)?$/i.test((await prompt.question(`${question} [y/N] `)).trim())
  } finally {
    prompt.close()
  }
}
