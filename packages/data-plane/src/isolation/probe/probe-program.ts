import { AirlockError } from '@airlock/contract'
import { FORBIDDEN_CALLS } from './forbidden-calls.ts'

export interface ProbeFinding {
  readonly name: string
  /** What the kernel answered; -1 is EPERM. */
  readonly result: number
}

/**
 * A program that makes every forbidden call once and writes what came of each to its stdout. It is made of bytes, for it must
 * run in any image: it needs no library, no interpreter and no compiler.
 *
 * One segment that is read, written and executed: the header of the file, the code below, and at `TABLE` the number of calls,
 * the bytes that they take, and for each call its number and six arguments. The code puts each result where the number was, and
 * writes the whole table when it is through.
 */
export function makeProbeProgram(arch: string = process.arch): Buffer {
  const machine = machineOf(arch)
  const calls = [...FORBIDDEN_CALLS.map((call) => encodeCall(call.number[machine.name], call.args)), control(machine)]
  const counts = Buffer.alloc(COUNT_BYTES)
  counts.writeBigUInt64LE(BigInt(calls.length), 0)
  counts.writeBigUInt64LE(BigInt(calls.length * CALL_BYTES), 8)
  const body = Buffer.concat([counts, ...calls])
  const file = Buffer.alloc(TABLE + body.length)
  elfHeader(machine.elf).copy(file)
  programHeader(file.length).copy(file, ELF_BYTES)
  Buffer.from(machine.code, 'hex').copy(file, CODE)
  body.copy(file, TABLE)
  return file
}

/** Fails closed: output that is not whole, or of a program whose allowed call failed, says nothing about the others. */
export function readProbeOutput(output: Buffer): readonly ProbeFinding[] {
  const results = Array.from({ length: Math.floor(output.length / CALL_BYTES) }, (_, at) =>
    Number(output.readBigInt64LE(at * CALL_BYTES)),
  )
  const isWhole = output.length === (FORBIDDEN_CALLS.length + 1) * CALL_BYTES && (results.at(-1) ?? 0) > 0
  if (!isWhole) throw new AirlockError('isolation_unavailable', 'The probe of forbidden system calls did not end.')
  return FORBIDDEN_CALLS.map(({ name }, at) => ({ name, result: results[at] ?? 0 }))
}

interface Machine {
  readonly name: 'x64' | 'arm64'
  /** As ELF numbers it. */
  readonly elf: number
  readonly getpid: number
  readonly code: string
}

const BASE = 0x40_00_00
const ELF_BYTES = 64
const CODE = 0x78
/** Where the code looks for it, from `BASE` on. */
const TABLE = 0x1_00
const COUNT_BYTES = 16
const CALL_BYTES = 64

const MACHINES: readonly Machine[] = [
  {
    name: 'x64',
    elf: 62,
    getpid: 39,
    // again: mov rax,[rbx]; mov rdi,[rbx+8]; … mov r9,[rbx+48]; syscall; mov [rbx],rax; add rbx,64; dec r12; jnz again;
    // then write(1, table, its bytes) and exit_group(0). rbx is the first call, r12 their number.
    code: [
      'bb10014000 4c8b242500014000',
      '488b03 488b7b08 488b7310 488b5318 4c8b5320 4c8b4328 4c8b4b30 0f05 488903 4883c340 49ffcc 75d7',
      'b801000000 bf01000000 be10014000 488b142508014000 0f05 b8e7000000 31ff 0f05',
    ]
      .join('')
      .replaceAll(' ', ''),
  },
  {
    name: 'arm64',
    elf: 183,
    getpid: 172,
    // The same: ldp x8,x0,[x19]; ldp x1,x2,…; ldp x3,x4,…; ldr x5,…; svc 0; str x0,[x19],64; subs x20,x20,1; b.ne again.
    code: [
      '132280d2 1308a0f2 152080d2 1508a0f2 b40240f9',
      '680240a9 610a41a9 631242a9 651a40f9 010000d4 600604f8 940600f1 21ffff54',
      '080880d2 200080d2 a1420091 a20640f9 010000d4 c80b80d2 000080d2 010000d4',
    ]
      .join('')
      .replaceAll(' ', ''),
  },
]

function machineOf(arch: string): Machine {
  const machine = MACHINES.find(({ name }) => name === arch)
  if (!machine)
    throw new AirlockError('isolation_unavailable', `There is no probe of forbidden system calls for "${arch}".`)
  return machine
}

/** Allowed: that it works shows that the program ran to its end. */
function control({ getpid }: Machine): Buffer {
  return encodeCall(getpid, [])
}

function encodeCall(number: number, args: readonly number[]): Buffer {
  const bytes = Buffer.alloc(CALL_BYTES)
  for (const [at, value] of [number, ...args].entries()) bytes.writeBigInt64LE(BigInt(value), at * 8)
  return bytes
}

function elfHeader(machine: number): Buffer {
  const header = Buffer.alloc(ELF_BYTES)
  // 64 bits, little-endian, version 1.
  Buffer.from('7f454c46020101', 'hex').copy(header)
  header.writeUInt16LE(2, 16)
  header.writeUInt16LE(machine, 18)
  header.writeUInt32LE(1, 20)
  header.writeBigUInt64LE(BigInt(BASE + CODE), 24)
  header.writeBigUInt64LE(BigInt(ELF_BYTES), 32)
  header.writeUInt16LE(ELF_BYTES, 52)
  header.writeUInt16LE(PROGRAM_HEADER_BYTES, 54)
  header.writeUInt16LE(1, 56)
  return header
}

const PROGRAM_HEADER_BYTES = 56

/** The whole file at `BASE`. */
function programHeader(bytes: number): Buffer {
  const header = Buffer.alloc(PROGRAM_HEADER_BYTES)
  header.writeUInt32LE(1, 0)
  header.writeUInt32LE(7, 4)
  header.writeBigUInt64LE(BigInt(BASE), 16)
  header.writeBigUInt64LE(BigInt(BASE), 24)
  header.writeBigUInt64LE(BigInt(bytes), 32)
  header.writeBigUInt64LE(BigInt(bytes), 40)
  header.writeBigUInt64LE(0x10_00n, 48)
  return header
}
