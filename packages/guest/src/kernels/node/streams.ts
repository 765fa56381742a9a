import { Console } from 'node:console'
import fs from 'node:fs'
import { type Readable, Writable } from 'node:stream'

// Taken before user code can replace them.
const { closeSync, createReadStream, openSync, writeSync } = fs
const { O_RDONLY, O_WRONLY } = fs.constants
const { defineProperty, getOwnPropertyDescriptor, hasOwn } = Object
const { ownKeys } = Reflect
const { wait } = Atomics

const NOWHERE = '/dev/null'
const PAUSE_MS = 1

/** What a step reads and writes, by path. */
export interface StreamPaths {
  readonly stdin: string
  readonly stdout: string
  readonly stderr: string
}

type Index = 0 | 1 | 2

/**
 * Fds 0, 1 and 2, and what Node makes of them. Children inherit the fds, so they are really those of the step; what is
 * written through `process` and `console` is asked first whose it is, for a timer may outlive its step.
 */
export class Streams {
  readonly #mayWrite: () => boolean
  readonly #console: Console
  readonly #methods: readonly (readonly [string | symbol, PropertyDescriptor])[]
  /** By index; the number itself, unless another thread was quicker to take it. */
  readonly #fds: [number, number, number] = [0, 1, 2]
  #stdin: Readable | undefined
  // Made before user code can break what makes streams, and again only when a step ended or changed one.
  #stdout = this.#makeOutput(1)
  #stderr = this.#makeOutput(2)

  constructor(mayWrite: () => boolean) {
    this.#mayWrite = mayWrite
    this.#console = new Console({
      stdout: forward((text) => process.stdout.write(text)),
      stderr: forward((text) => process.stderr.write(text)),
    })
    this.#methods = describe(Object.assign(this.#console, { Console }))
  }

  /** Also gives `process` and `console` back what an earlier step may have replaced. */
  open(paths: StreamPaths): void {
    this.#put(0, paths.stdin, O_RDONLY)
    this.#put(1, paths.stdout, O_WRONLY)
    this.#put(2, paths.stderr, O_WRONLY)
    if (!isAsMade(this.#stdout)) this.#stdout = this.#makeOutput(1)
    if (!isAsMade(this.#stderr)) this.#stderr = this.#makeOutput(2)
    this.#restore()
  }

  release(): void {
    this.#stdin?.destroy()
    this.#stdin = undefined
    this.#put(0, NOWHERE, O_RDONLY)
    this.#put(1, NOWHERE, O_WRONLY)
    this.#put(2, NOWHERE, O_WRONLY)
  }

  /** Node cannot dup: a new file gets the lowest free number, which is the one just closed. */
  #put(index: Index, path: string, flags: number): void {
    try {
      closeSync(this.#fds[index])
    } catch {
      // A step closed it.
    }
    this.#fds[index] = openSync(path, flags)
  }

  #restore(): void {
    define(process, 'stdin', () => (this.#stdin ??= this.#makeInput()))
    define(process, 'stdout', () => this.#stdout)
    define(process, 'stderr', () => this.#stderr)
    for (let at = 0; at < this.#methods.length; at++) {
      const method = this.#methods[at]
      if (method) defineProperty(this.#console, method[0], method[1])
    }
    const value = this.#console
    defineProperty(globalThis, 'console', makeDescriptor({ value, writable: true, configurable: true }))
  }

  /** A file of its own: a read that is late must not take from the next step. */
  #makeInput(): Readable {
    return createReadStream('', { fd: openSync(`/proc/self/fd/${this.#fds[0]}`, O_RDONLY), autoClose: true })
  }

  #makeOutput(index: 1 | 2): Writable {
    const stream = new Writable({
      write: (bytes: Buffer, _encoding, done) => {
        if (this.#mayWrite()) writeAll(this.#fds[index], bytes)
        done()
      },
    })
    return Object.assign(stream, { fd: index, _type: 'pipe', _isStdio: true })
  }
}

function isAsMade(stream: Writable): boolean {
  return stream.writable && !hasOwn(stream, 'write') && !hasOwn(stream, 'end')
}

/** The stream that `console` keeps; it goes to where `process` points at that moment. */
function forward(write: (text: string) => void): Writable {
  return new Writable({
    decodeStrings: false,
    write: (text: string, _encoding, done) => {
      try {
        write(text)
      } catch {
        // A step put something there that cannot be written to; `console` never throws.
      }
      done()
    },
  })
}

/** Waits for its reader, as every program does: what is said before the end of a step is of the step. */
function writeAll(fd: number, bytes: Buffer): void {
  const pause = new Int32Array(new SharedArrayBuffer(4))
  for (let at = 0; at < bytes.length;) {
    try {
      at += writeSync(fd, bytes, at)
    } catch (error) {
      // A child that shares it may have made it non-blocking. Anything else means that nobody reads, or a closed fd.
      if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) return
      wait(pause, 0, 0, PAUSE_MS)
    }
  }
}

function define(target: object, name: string, get: () => unknown): void {
  defineProperty(target, name, makeDescriptor({ get, configurable: true, enumerable: true }))
}

/** Without a prototype, which user code may have put anything on. */
export function makeDescriptor(fields: PropertyDescriptor): PropertyDescriptor {
  return { __proto__: null, ...fields } as PropertyDescriptor
}

function describe(target: object): readonly (readonly [string | symbol, PropertyDescriptor])[] {
  return ownKeys(target).flatMap((key) => {
    const descriptor = getOwnPropertyDescriptor(target, key)
    return descriptor?.configurable ? [[key, makeDescriptor(descriptor)] as const] : []
  })
}
