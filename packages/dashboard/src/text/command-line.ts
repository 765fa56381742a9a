const PLAIN = /^[\w./:=@%+,-]+$/

/** The words of a command as a shell would be given them, so that it shows where each begins. A line for the shell is as it was typed. */
export function commandLine(argv: readonly string[]): string {
  const [program, flag, line] = argv
  if (argv.length === 3 && program === '/bin/sh' && flag === '-c' && line !== undefined) return line
  return argv.map((word) => (PLAIN.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`)).join(' ')
}
