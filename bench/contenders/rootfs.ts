import { copyFileSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { runProgram } from './program.ts'

const PROGRAMS = ['/bin/echo', '/bin/sleep', '/bin/sh']

/** A root file system with a handful of programs of this host and the libraries that they load. */
export async function makeRootfs(rootfs: string): Promise<string> {
  for (const name of ['bin', 'dev', 'etc', 'proc', 'sys', 'tmp']) mkdirSync(join(rootfs, name), { recursive: true })
  for (const program of PROGRAMS) {
    const listed = await runProgram('ldd', [program])
    const libraries = listed.split(/\s+/u).filter((word) => word.startsWith('/'))
    for (const file of [program, ...libraries]) {
      mkdirSync(join(rootfs, dirname(file)), { recursive: true })
      copyFileSync(file, join(rootfs, file))
    }
  }
  return rootfs
}
