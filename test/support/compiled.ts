import { fileURLToPath } from 'node:url'

/** For the environment of our programs in tests: what Node compiled for one process it has for the next. */
export const COMPILED = {
  NODE_COMPILE_CACHE: fileURLToPath(new URL('../../node_modules/.cache/airlock/compiled', import.meta.url)),
} as const
