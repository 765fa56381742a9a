import { tmpdir } from 'node:os'

/** Where tests keep state that need not survive a power loss: in memory if the machine has room for it. */
export function memoryDir(): string {
  return process.env['TEST_MEMORY'] ?? tmpdir()
}
