/** The archive is damaged, or has an entry that must not be written. */
export class TarError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'TarError'
  }
}

const SHOWN_CHARS = 200

export function refuseEntry(name: string, why: string): TarError {
  return new TarError(`The entry ${JSON.stringify(name.slice(0, SHOWN_CHARS))} ${why}.`)
}

export function damaged(what: string): TarError {
  return new TarError(`The archive is damaged: ${what}.`)
}
